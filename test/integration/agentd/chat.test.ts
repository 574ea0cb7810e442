/** Reply streams that agentd follows, on a gateway that the test controls. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type WebSocket, WebSocketServer } from 'ws'
import { chatService } from '../../../agentd/chat.ts'
import { type ChatEvent, NO_MODEL } from '../../../agentd/protocol.ts'
import { serveAgentd } from '../../support/agentd-services.ts'
import { onDemand, passAtOnce } from '../../support/clock.ts'
import { until } from '../../support/processes.ts'

const KEY = 'agent:main:berth:1'

interface Told {
  /** Sends an event of the conversation, as the gateway does. */
  tell(event: string, payload: object): void
  gateway: WebSocket
  /** Whether the engine reports that it is still replying. */
  isReplying: boolean
  /** How often the engine was asked whether it is still replying. */
  asked: number
  events: ChatEvent[]
  /** Empty lines so far. */
  blanks: number
  /** Resolves when the stream has ended. */
  ended: Promise<unknown>
}

/** Sends a message to an agent, and follows the reply. */
async function say(t: TestContext): Promise<Told> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const told = { isReplying: false, asked: 0, events: [] as ChatEvent[], blanks: 0 } as Told
  server.on('connection', (socket) => {
    told.gateway = socket
    const send = (frame: object) => socket.send(JSON.stringify(frame))
    told.tell = (event, payload) =>
      send({ type: 'event', event, payload: { sessionKey: KEY, runId: 'run', ...payload } })
    send({ type: 'event', event: 'connect.challenge', payload: {} })
    socket.on('message', (data) => {
      const { id, method } = JSON.parse(String(data))
      const history = { sessionInfo: { hasActiveRun: told.isReplying }, messages: [{}] }
      if (method === 'chat.history') told.asked++
      if (method === 'chat.send') told.isReplying = true
      send({ type: 'res', id, ok: true, payload: method === 'chat.history' ? history : { runId: 'run' } })
    })
  })
  const { port } = server.address() as AddressInfo
  const agentd = await serveAgentd([chatService], { port, state: 'ready', token: 'right' })
  t.after(async () => {
    for (const socket of server.clients) socket.terminate()
    server.close()
    await agentd.close()
  })
  const body = JSON.stringify({ sessionKey: KEY, message: 'hello' })
  const response: IncomingMessage = await agentd.send('POST', '/v1/chat', { body })
  assert.equal(response.statusCode, 200)
  response.setEncoding('utf8').on('data', (text: string) => {
    for (const line of text.split('\n').slice(0, -1))
      if (line === '') told.blanks++
      else told.events.push(JSON.parse(line))
  })
  told.ended = once(response, 'end')
  return told
}

/** Makes every silence so far appear `ms` longer. */
function wait({ mock }: TestContext, ms: number): void {
  const now = performance.now.bind(performance)
  mock.method(performance, 'now', () => now() + ms)
}

const finish = (told: Told) => {
  told.isReplying = false
  told.tell('chat', { state: 'final' })
  return told.ended
}

test('a reply that takes several minutes is followed to its end [report: idle streams]', async (t) => {
  // The timeout of an unused connection has the same length.
  passAtOnce(t, 60_000)
  const told = await say(t)
  for (const word of ['one ', 'two ']) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    told.tell('agent', { stream: 'assistant', data: { itemId: 'a', delta: word } })
  }
  await finish(told)
  const text = told.events.flatMap((event) => (event.type === 'text' ? event.text : []))
  assert.equal(text.join(''), 'one two ')
  assert.deepEqual(told.events.at(-1), { type: 'end', state: 'done' })
})

test('a silent tool call keeps its reply stream open [report: idle streams]', async (t) => {
  const keepAlive = onDemand(t, 10_000)
  const look = onDemand(t, 30_000)
  const told = await say(t)
  told.tell('session.tool', { data: { toolCallId: 'c', phase: 'start' } })
  await until('the call is reported', () => told.events.length === 1)
  wait(t, 600_000)
  for (let i = 1; i <= 6; i++) {
    keepAlive()
    const { asked } = told
    look()
    await until(
      'the engine is asked, and the line has arrived',
      () => told.asked > asked && told.blanks === i,
    )
  }
  await finish(told)
  assert.deepEqual(told.events.at(-1), { type: 'end', state: 'done' })
})

test('a stream ends with a reason if the end of its reply was missed [report: idle streams]', async (t) => {
  const look = onDemand(t, 30_000)
  const told = await say(t)
  told.isReplying = false
  wait(t, 60_000)
  for (let i = 0; i < 2; i++) {
    const { asked } = told
    look()
    await until('the engine is asked', () => told.asked > asked)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await told.ended
  const error = 'The reply has ended, but its end was not reported: read it'
  assert.deepEqual(told.events, [{ type: 'error', error }])
})

for (const [what, end, error] of [
  [
    'the reason of a gateway that closes is passed on',
    (gateway: WebSocket) => gateway.close(1012, 'service restart'),
    "The agent's gateway closed the connection: service restart (1012)",
  ],
  [
    'a gateway that breaks off is named',
    (gateway: WebSocket) => gateway.terminate(),
    "The agent's gateway broke off the connection",
  ],
] as const)
  test(`${what} at the end of a stream [report: idle streams]`, async (t) => {
    const told = await say(t)
    end(told.gateway)
    await told.ended
    assert.deepEqual(told.events, [{ type: 'error', error }])
  })

for (const [what, detail, error] of [
  ['a provider’s refusal keeps its wording', '429 Slow down', '429 Slow down'],
  [
    'a reply without a model names what is missing',
    'No route-compatible authentication source is configured for openai.',
    NO_MODEL,
  ],
] as const)
  test(`${what} [report: no model]`, async (t) => {
    const told = await say(t)
    const data = { phase: 'fallback_step', fallbackStepFromFailureDetail: detail }
    told.tell('agent', { stream: 'lifecycle', data })
    told.isReplying = false
    told.tell('chat', { state: 'error', errorMessage: 'LLM request failed' })
    await told.ended
    assert.deepEqual(told.events, [{ type: 'end', state: 'failed', error }])
  })
