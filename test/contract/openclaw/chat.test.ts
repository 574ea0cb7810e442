/** Chat with a real engine: by HTTP like OpenAI's clients, and by WebSocket. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { AgentHost, type AgentSocket } from '../../support/agent-host.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { openChat, patientHost, sharedAgent, whenReady } from './context.ts'

/** The first turn of a gateway takes seconds, and much longer on a busy machine. */
const TURN_MS = 120_000

const context = await openContext()
const agent = await sharedAgent(context)
const { agentId, record } = agent
const token: string = record.gatewayToken
const host = patientHost(context.url, agent)

/** Connects to the gateway as the official command line does. */
async function greet(
  socket: AgentSocket,
  maxProtocol: number,
  auth: object,
): Promise<AgentSocket['messages'][0]> {
  socket.send({
    type: 'req',
    id: 'connect-1',
    method: 'connect',
    params: {
      minProtocol: 3,
      maxProtocol,
      client: { id: 'cli', version: '1.0.0', platform: 'linux', mode: 'cli' },
      role: 'operator',
      scopes: ['operator.read', 'operator.write'],
      caps: [],
      commands: [],
      permissions: {},
      auth,
    },
  })
  return until('the gateway responds', () => socket.messages.find(({ id }) => id === 'connect-1'))
}

async function connect(open: () => AgentSocket, maxProtocol: number): Promise<AgentSocket> {
  const socket = await openChat(open)
  const hello = await greet(socket, maxProtocol, { token })
  assert.equal(hello.ok, true, JSON.stringify(hello))
  assert.equal(hello.payload.type, 'hello-ok')
  return socket
}

/** Sends a message; resolves to the agent's reply once it is complete. */
async function say(socket: AgentSocket, message: string): Promise<string> {
  const id = randomUUID()
  const params = { message, idempotencyKey: id, sessionKey: `agent:main:${id}` }
  socket.send({ type: 'req', id, method: 'chat.send', params })
  const started = await until('the reply begins', () => socket.messages.find((one) => one.id === id))
  assert.equal(started.ok, true, JSON.stringify(started))
  const isLast = ({ event, payload }: AgentSocket['messages'][number]) =>
    event === 'chat' && payload.runId === started.payload.runId && payload.state === 'final'
  const final = await until('the reply is complete', () => socket.messages.find(isLast), TURN_MS)
  return final.payload.message.content.map(({ text }: { text: string }) => text).join('')
}

describe('chat by WebSocket', () => {
  it('chat by WebSocket responds with every protocol version', async () => {
    for (const [path, maxProtocol] of [
      ['/', 4],
      ['/chat', 3],
      [`/?token=${token}`, 3],
    ] as const) {
      const socket = await connect(() => host.socket(path, { origin: 'https://agents.example' }), maxProtocol)
      assert.match(await say(socket, 'ping'), /pong: .*ping/s)
      socket.raw.close(1000)
      assert.equal((await socket.closed).code, 1000)
    }
  })
  it('chat by WebSocket also accepts the token in the first message', async () => {
    const socket = await connect(() => new AgentHost(context.url, agentId).socket('/'), 4)
    assert.match(await say(socket, 'ping'), /pong: .*ping/s)
    socket.raw.close()
  })
  it('chat by WebSocket is closed with 1008 without a valid token in the first message', async () => {
    for (const auth of [{}, { token: randomUUID() }]) {
      const socket = await openChat(() => new AgentHost(context.url, agentId).socket('/'))
      const { ok, error } = await greet(socket, 4, auth)
      assert.deepEqual([ok, error.details.code], [false, 'AUTH_TOKEN_MISMATCH'])
      assert.equal((await socket.closed).code, 1008)
    }
  })
})

describe('chat by HTTP', () => {
  const messages = [{ role: 'user', content: 'ping' }]

  it('chat by HTTP responds in one piece', async () => {
    const { status, body, text } = await host.post('/v1/chat/completions', {
      model: 'openclaw/default',
      messages,
    })
    assert.equal(status, 200, text)
    assert.match(body.choices[0].message.content, /pong: .*ping/s)
  })
  it('chat by HTTP streams its response', async () => {
    const json = { model: 'openclaw/default', messages, stream: true }
    const response = await whenReady(async () => {
      const begun = await host.stream('POST', '/v1/chat/completions', { json })
      // A refused response must be consumed, or it would hold its connection.
      if (begun.statusCode !== 200) begun.resume()
      return begun
    })
    assert.equal(response.statusCode, 200)
    assert.match(response.headers['content-type'] ?? '', /^text\/event-stream/)
    let chunks = 0
    let all = ''
    // Not by iteration, which joins chunks that arrive in between.
    response.on('data', (chunk) => {
      chunks++
      all += chunk
    })
    await once(response, 'end')
    assert.ok(chunks > 1, 'the response came in chunks')
    const events = all.split('\n\n').flatMap((event) => /^data: (\{.*)$/.exec(event)?.[1] ?? [])
    const said = events.map((event) => JSON.parse(event).choices[0]?.delta?.content ?? '').join('')
    assert.match(said, /pong: .*ping/s)
    assert.match(all, /data: \[DONE\]/)
  })
  it('chat by HTTP supports /v1/responses and lists models', async () => {
    const { status, text } = await host.post('/v1/responses', { model: 'openclaw/default', input: 'ping' })
    assert.equal(status, 200, text)
    assert.match(text, /pong: /)
    const models = await host.get('/v1/models')
    assert.ok(models.body.data.some(({ id }: { id: string }) => id === 'openclaw/default'))
  })
  it('chat by HTTP forwards the engine’s own errors', async () => {
    const { status, body } = await host.post('/v1/chat/completions', { model: 'openclaw/default' })
    assert.equal(status, 400)
    assert.equal(typeof body.error.message, 'string')
  })
})
