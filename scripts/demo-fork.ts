/**
 * `npm run demo:fork`: an agent on the real engine, and two forks of it that go their own ways.
 *
 * Berth starts on this machine with two spare agents. An agent writes a file; its forks have it without waiting for an
 * engine to boot. One of them changes it, and the others keep theirs.
 *
 * The engine, `-- --runtime docker` or `process`, and the clean-up are as in `npm run demo:agent`.
 */
import { text } from 'node:stream/consumers'
import { ENGINE_VERSION } from '../test/support/engines.ts'
import { until } from '../test/support/processes.ts'
import { type AgentView, DemoAgent } from './demo/agent.ts'
import { AGENT_DOMAIN, createAgent, removeAgent, startWithModel } from './demo/agent-steps.ts'
import { type Demo, runDemo } from './demo/run.ts'

const LIMIT_MS = 6 * 60_000
const FORKS = 2
const NOTE = 'workspace/note.txt'

await runDemo({ title: 'An agent and its forks', limitMs: LIMIT_MS }, demo)

async function demo(of: Demo): Promise<void> {
  const { screen, signal, stack } = of
  const began = performance.now()
  const env = { BERTH_POOL: String(FORKS) }
  const { berth } = await startWithModel(of, { versions: [ENGINE_VERSION], env })
  const parent = await createAgent(of, berth, { name: 'Demo', vibe: 'curious', emoji: '🌱' })
  const write = (agent: DemoAgent, words: string) =>
    agent.call('POST', '/console/exec', { command: `echo '${words}' > ${NOTE}` })
  const note = async (agent: DemoAgent) => (await agent.readFile(NOTE)).toString('utf8').trim()
  await screen.step('Note', async () => {
    await write(parent, 'one idea')
    return [undefined, `“${await note(parent)}” in ${NOTE}`]
  })
  await screen.step('Spares', async () => {
    const ready = `${FORKS} of ${FORKS} ready`
    await until(
      ready,
      async () => {
        const response = await berth.request('GET', '/v0/admin/health', { signal })
        const { data } = (await response.json()) as { data: { parts: { name: string; detail: string }[] } }
        return data.parts.some(({ name, detail }) => name === 'pool' && detail === ready)
      },
      LIMIT_MS,
    )
    return [undefined, ready]
  })

  screen.section('Two forks')
  const forks = await screen.step('Fork', async () => {
    const asked = performance.now()
    const { forks: made } = await parent.call<{ forks: { agent: AgentView }[] }>('POST', '/fork', {
      count: FORKS,
    })
    const seconds = ((performance.now() - asked) / 1000).toFixed(1)
    const agents = made.map(({ agent }) => {
      const fork = new DemoAgent(berth, agent, { domain: AGENT_DOMAIN, signal })
      stack.defer(() => removeAgent(berth, fork))
      if (agent.status !== 'running') throw new Error(`${agent.name} is ${agent.status}`)
      return fork
    })
    const names = made.map(({ agent }) => `${agent.name} (${agent.agentId})`)
    return [agents, `${names.join(' and ')} run after ${seconds} s`]
  })
  const [first, second] = forks
  if (!first || !second) throw new Error(`there are ${forks.length} forks`)
  await screen.step('Difference', async () => {
    await write(first, 'another idea')
    const notes = [await note(parent), await note(first), await note(second)]
    if (notes.join() !== 'one idea,another idea,one idea') throw new Error(`the notes are ${notes.join()}`)
    return [undefined, `the agent and its forks now have “${notes.join('”, “')}”`]
  })
  await screen.step('Turn', async () => {
    const messages = [{ role: 'user', content: 'Who are you?' }]
    const response = await first.onHost('POST', '/v1/chat/completions', { model: 'openclaw', messages })
    const body = await text(response)
    if (response.statusCode !== 200) throw new Error(`the fork's turn got ${response.statusCode}: ${body}`)
    return [undefined, 'the first fork answers on its own host, with its own token']
  })
  screen.summary(`Two forks, each its own agent, in ${((performance.now() - began) / 1000).toFixed(1)} s.`)
}
