/** Failures of chat with the real engine through agentd. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { NO_MODEL } from '../../agentd/protocol.ts'
import { TOKEN } from '../integration/agentd/agentd.ts'
import { type EngineTest, startEngine } from './engine.ts'

let engine: EngineTest

before(async () => {
  engine = await startEngine()
})
after(() => engine.close())

const authorization = `Bearer ${TOKEN}`
/** A first turn on a busy machine. */
const TURN_MS = 120_000

async function post(path: string, json: object): Promise<Response> {
  return await fetch(engine.agentd.url(`/v1/gateway${path}`), {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify(json),
    signal: AbortSignal.timeout(TURN_MS),
  })
}

const question = { model: 'openclaw/default', messages: [{ role: 'user', content: 'how are you' }] }

/** The last event of a reply to a message in a new conversation. */
async function lastOfReply(): Promise<unknown> {
  const response = await fetch(engine.agentd.url('/v1/chat'), {
    method: 'POST',
    headers: { authorization },
    body: JSON.stringify({ sessionKey: `agent:main:berth:${randomUUID()}`, message: 'hello' }),
    signal: AbortSignal.timeout(TURN_MS),
  })
  assert.equal(response.status, 200)
  return JSON.parse((await response.text()).trim().split('\n').at(-1) ?? '')
}

/** The error of a chat, whole and as a stream. */
async function chatErrors(): Promise<{ status: number; whole: any; streamed: any }> {
  const whole = await post('/v1/chat/completions', question)
  const streamed = await post('/v1/chat/completions', { ...question, stream: true })
  const event = (await streamed.text()).split('\n\n').find((event) => event.includes('"error"')) ?? ''
  const { error } = (await whole.json()) as any
  return { status: whole.status, whole: error, streamed: JSON.parse(event.slice('data: '.length)).error }
}

test("a provider's refusals reach chat at once in the provider's words [report: no model]", async (t) => {
  const { model } = engine
  t.after(() => {
    model.refusal = undefined
  })
  for (const [status, message] of [
    [429, 'Slow down: too many tokens a minute'],
    [401, 'Incorrect API key provided'],
  ] as const) {
    model.refusal = { status, message, headers: { 'retry-after': '60' } }
    const before = model.requests.length
    for (let i = 0; i < 2; i++) {
      const errors = await chatErrors()
      assert.equal(errors.status, status)
      for (const error of [errors.whole, errors.streamed]) assert.match(error.message, new RegExp(message))
    }
    const { state, error } = (await lastOfReply()) as any
    assert.equal(state, 'failed')
    assert.match(error, new RegExp(message))
    // Each request was tried once.
    assert.equal(model.requests.length - before, 5)
  }
  model.refusal = undefined
  assert.equal((await post('/v1/chat/completions', question)).status, 200)
})

test('a gateway without a model names what is missing, and so does chat [report: no model]', async () => {
  // An agent that never had a model names none.
  const { text } = (await engine.agentd.call<any>('GET', '/v1/config')).body
  const config = JSON.parse(text)
  delete config.agents.defaults.model
  await engine.agentd.call('PUT', '/v1/config', { json: { text: JSON.stringify(config) } })
  await engine.run(false)
  assert.equal((await engine.agentd.status()).gateway.reason, NO_MODEL)
  const { status, whole, streamed } = await chatErrors()
  assert.deepEqual([status, whole.code], [409, 'no_model'])
  for (const error of [whole, streamed]) assert.equal(error.message, NO_MODEL)
  assert.deepEqual(await lastOfReply(), { type: 'end', state: 'failed', error: NO_MODEL })
})
