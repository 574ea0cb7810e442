/**
 * `npm run demo:budget`: an agent on the real engine that cannot overspend.
 *
 * Berth starts on this machine, with a small model server on loopback as the default model, and with a price for it. An
 * agent gets a budget of one cent a day. Its first turn passes, the second one would be too expensive and never reaches
 * the model, and the third passes once the budget is raised.
 *
 * The engine, `-- --runtime docker` or `process`, and the clean-up are as in `npm run demo:agent`.
 */
import { text } from 'node:stream/consumers'
import { ENGINE_VERSION } from '../test/support/engines.ts'
import { MODEL } from '../test/support/model.ts'
import { until } from '../test/support/processes.ts'
import type { DemoAgent } from './demo/agent.ts'
import { createAgent, startWithModel } from './demo/agent-steps.ts'
import { type Demo, runDemo } from './demo/run.ts'

const LIMIT_MS = 5 * 60_000
/**
 * US dollars per million tokens. The engine sends about 44 kB for a short message and allows replies of 8192 tokens, so
 * a turn reserves nearly a cent.
 */
const PRICE = { input: 0.1, output: 0.5 }
/** A reply after much thought, which costs a third of a cent. */
const USAGE = { prompt_tokens: 11_000, completion_tokens: 4000 }

await runDemo({ title: 'An agent that cannot overspend', limitMs: LIMIT_MS }, demo)

async function demo(of: Demo): Promise<void> {
  const { screen, signal } = of
  const began = performance.now()
  const { berth, model } = await startWithModel(of, { versions: [ENGINE_VERSION] })
  model.usage = USAGE
  await screen.step('Price', async () => {
    await berth.request('PUT', `/v0/admin/model/prices/berth/${MODEL}`, { signal, body: PRICE })
    return [undefined, `$${PRICE.input} and $${PRICE.output} per million tokens of requests and replies`]
  })
  const agent = await createAgent(of, berth, { name: 'Demo', vibe: 'short and thrifty', emoji: '🪙' })

  screen.section('A budget of one cent')
  const budget = (usd: string) =>
    screen.step('Budget', async () => {
      await agent.call('PUT', '/model/budget', { day: { usd } })
      return [undefined, `$${usd} per day for this agent`]
    })
  const turn = (label: string, message: string, expected: 200 | 429) =>
    screen.step(label, async () => {
      const before = model.requests.length
      const { status, said } = await ask(agent, message)
      if (status !== expected) throw new Error(`the turn got ${status}, not ${expected}: ${said}`)
      const calls = model.requests.length - before
      if (calls !== (expected === 200 ? 1 : 0)) throw new Error(`the model was called ${calls} times`)
      return [said, `“${said}”, the model was ${calls ? 'called once' : 'not called'}`]
    })

  await budget('0.01')
  await turn('First turn', 'May I spend a cent?', 200)
  const refusal = await turn('Second turn', 'And another one?', 429)
  if (!refusal.includes('Budget spent: $0.01 per day for this agent'))
    throw new Error('the refusal does not name the budget')
  await spending(of, agent, 1)

  screen.section('A budget of one dollar')
  await budget('1.00')
  await turn('Third turn', 'And now?', 200)
  await spending(of, agent, 2)
  screen.summary(`The budget held, in ${((performance.now() - began) / 1000).toFixed(1)} s.`)
}

/** One turn of the agent over HTTP. */
async function ask(agent: DemoAgent, content: string): Promise<{ status: number; said: string }> {
  const messages = [{ role: 'user', content }]
  const response = await agent.onHost('POST', '/v1/chat/completions', { model: 'openclaw', messages })
  const { choices, error } = JSON.parse(await text(response))
  return { status: response.statusCode ?? 0, said: error?.message ?? choices?.[0]?.message?.content ?? '' }
}

/** Waits for the report of this many calls, and compares their cost. */
async function spending({ screen }: Demo, agent: DemoAgent, calls: number): Promise<void> {
  await screen.step('Spending', async () => {
    const total = await until('the calls are reported', async () => {
      const { data } = await agent.call<{ data: { total: { usd: string; requests: number } } }>(
        'GET',
        '/spending?groupBy=model',
      )
      return data.total.requests >= calls && data.total
    })
    const usd = (calls * (USAGE.prompt_tokens * PRICE.input + USAGE.completion_tokens * PRICE.output)) / 1e6
    if (Number(total.usd) !== usd) throw new Error(`$${total.usd} for ${total.requests} calls, not $${usd}`)
    return [undefined, `$${total.usd} for ${calls === 1 ? 'one call' : `${calls} calls`} of the model`]
  })
}
