/** Chat of clients that send their token in the first message, like the engine's own clients. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { WebSocket } from 'ws'
import { AgentSocket } from '../../../support/agent-host.ts'
import { disableTimeouts } from '../../../support/clock.ts'
import { clientFrame as frame } from '../../../support/frames.ts'
import { until } from '../../../support/processes.ts'
import { startWorld, type TestAgent, type World } from './world.ts'

const FAILURES = 3
const OF_ADDRESS = 8
const OF_AGENT = 16
/**
 * The time allowed for a first message. It passes only in the test about it, because a busy machine sometimes needs
 * longer.
 */
const MESSAGE_MS = 10_000

let world: World
before(async () => {
  world = await startWorld({
    BERTH_TRUST_PROXY: '1',
    BERTH_ADDRESS_LIMITS: `failedLogins=${FAILURES}`,
  })
})
after(() => world?.stop())

let last = 0
/** An address that has not been seen yet. */
const newAddress = () => `203.0.113.${++last}`
const nothingIsOpen = () =>
  until('nothing is open', async () => /berth_agent_connections 0\n/.test(await world.metrics()))

/** An agent whose gateway sends a challenge, and the messages that reached it. */
async function challenging(): Promise<TestAgent & { reached: string[]; origins: unknown[] }> {
  const agent = await world.agent()
  const reached: string[] = []
  const origins: unknown[] = []
  agent.sockets.on('connection', (socket, req) => {
    origins.push(req.headers.origin)
    socket.send('{"event":"connect.challenge"}')
    socket.on('message', (data) => reached.push(String(data)))
  })
  return Object.assign(agent, { reached, origins })
}

interface Visitor extends AgentSocket {
  /** The underlying connection. */
  socket: Socket
}

/** A client without a token in its request. */
function visit(agent: TestAgent, headers: Record<string, string> = {}, address = newAddress()): Visitor {
  const { hostname, port } = new URL(world.url)
  const socket = connect(Number(port), hostname).setNoDelay(true)
  const raw = new WebSocket(world.url.replace('http', 'ws'), {
    headers: { host: agent.host.host, 'x-forwarded-for': address, ...headers },
    createConnection: () => socket,
  })
  return Object.assign(new AgentSocket(raw), { socket })
}

async function challenged(agent: TestAgent, address?: string): Promise<Visitor> {
  const client = visit(agent, {}, address)
  await client.opened
  await until('the challenge came', () => client.messages.length === 1)
  return client
}

const hello = (token: unknown, more: object = {}) => ({
  type: 'req',
  id: '1',
  method: 'connect',
  params: { maxProtocol: 4, client: { id: 'cli', mode: 'cli' }, auth: { token }, ...more },
})

describe('a client without a token in its request', () => {
  it('a client without a token in its request is challenged, and admitted by its first message', async () => {
    const agent = await challenging()
    for (const token of [agent.token, agent.token.toUpperCase()]) {
      const client = await challenged(agent)
      client.send(hello(token))
      await until('it came back', () => client.messages.length === 2)
      assert.equal(client.messages[1].method, 'connect')
      const long = { text: 'x'.repeat(3_000_000) }
      client.send(long)
      await until('it came back', () => client.messages.length === 3)
      assert.deepEqual(client.messages[2], long)
      client.raw.close(4000, 'bye')
      assert.deepEqual(await client.closed, { code: 4000, reason: 'bye' })
    }
    await nothingIsOpen()
  })
  it('a client without a token in its request cannot send anything before its token was checked', async () => {
    const agent = await challenging()
    const client = await challenged(agent)
    const bytes = Buffer.concat([
      frame('early', { opcode: 9 }),
      frame(JSON.stringify(hello(agent.token)).slice(0, 50), { fin: false }),
    ])
    client.socket.write(bytes)
    const bystander = await challenged(agent)
    assert.deepEqual(agent.reached, [])
    const rest = Buffer.concat([
      frame(JSON.stringify(hello(agent.token)).slice(50), { opcode: 0 }),
      frame('"second"'),
      frame('"third"'),
    ])
    for (const byte of rest) client.socket.write(Buffer.from([byte]))
    await until('all came back', () => client.messages.length === 4)
    assert.deepEqual(client.messages.slice(2), ['second', 'third'])
    assert.deepEqual([agent.reached.length, JSON.parse(agent.reached[0] ?? '').method], [3, 'connect'])
    for (const { raw } of [client, bystander]) raw.terminate()
  })
  it('a client without a token in its request may be a page of any origin', async () => {
    const agent = await challenging()
    for (const headers of [{ origin: 'https://elsewhere.example' }, {}] as Record<string, string>[]) {
      const client = visit(agent, headers)
      await client.opened
      client.send(hello(agent.token))
      await until('it came back', () => client.messages.length === 2)
      client.raw.terminate()
    }
    assert.match(String(agent.origins[0]), /^http:\/\/127\.0\.0\.1:\d+$/)
    assert.equal(agent.origins[1], undefined)
  })
  it('a client without a token in its request gets 1013 if the agent is not ready', async () => {
    const agent = await challenging()
    agent.setGateway('starting')
    assert.equal((await visit(agent).closed).code, 1013)
  })
  it('a client without a token in its request can only chat', async () => {
    const agent = await challenging()
    const { port } = new URL(world.url)
    for (const path of ['/v0/logs', `/v0/agents/${agent.agentId}/logs`])
      assert.equal(await agent.stranger.socket(path).refused(), 401, `${path} on ${port}`)
    assert.equal(await agent.stranger.socket('/nowhere').refused(), 401)
  })
})

describe('a first message', () => {
  const WRONG = 'This is not the gateway token of the agent'
  const NO_TOKEN = 'The first message is no connect request with the gateway token'
  const refusals: [what: string, reason: string, send: (client: Visitor, agent: TestAgent) => unknown][] = [
    ['with a wrong token', WRONG, (client) => client.send(hello(randomUUID()))],
    ['with a list for a token', NO_TOKEN, (client, { token }) => client.send(hello([token]))],
    ['without a token', NO_TOKEN, (client) => client.send(hello(undefined))],
    ['that is no JSON', NO_TOKEN, (client) => client.raw.send('{')],
    [
      'that is another request',
      NO_TOKEN,
      (client, { token }) => client.send({ ...hello(token), method: 'health' }),
    ],
    [
      'that is too large',
      'The first message is no text of at most 16 KiB',
      (client, { token }) => client.send(hello(token, { more: 'x'.repeat(16_384) })),
    ],
    [
      'that takes too long',
      'No message came within 10 seconds',
      (client, { token }) => client.socket.write(frame(JSON.stringify(hello(token))).subarray(0, 100)),
    ],
  ]
  for (const [what, reason, send] of refusals)
    it(`a first message ${what} closes with 1008, and counts as a failed login`, async (t) => {
      if (what !== 'that takes too long') disableTimeouts(t, MESSAGE_MS)
      const agent = await challenging()
      const address = newAddress()
      const client = await challenged(agent, address)
      send(client, agent)
      assert.deepEqual(await client.closed, { code: 1008, reason })
      assert.deepEqual(agent.reached, [])
      for (let i = 1; i < FAILURES; i++) {
        const next = await challenged(agent, address)
        next.send(hello(randomUUID()))
        assert.equal((await next.closed).code, 1008)
      }
      assert.equal(await visit(agent, {}, address).refused(), 429)
    })

  it('a first message with a wrong token gets the engine’s response, so that clients stop trying', async (t) => {
    disableTimeouts(t, MESSAGE_MS)
    const agent = await challenging()
    const address = newAddress()
    const answers: unknown[] = []
    const clients = [...Array(FAILURES + 1)].map(() => challenged(agent, address))
    for (const client of await Promise.all(clients)) {
      client.send(hello(randomUUID()))
      await client.closed
      const { error, ...answer } = client.messages[1]
      assert.deepEqual(answer, { type: 'res', id: '1', ok: false })
      answers.push(error.details.code)
    }
    assert.deepEqual(answers, [...Array(FAILURES).fill('AUTH_TOKEN_MISMATCH'), 'AUTH_RATE_LIMITED'])
  })
  it('a first message with the token of another agent, or with a key, is rejected', async () => {
    const agent = await challenging()
    const other = await world.agent()
    for (const token of [other.token, (await world.key()).token]) {
      const client = await challenged(agent)
      client.send(hello(token))
      assert.equal((await client.closed).code, 1008)
    }
    assert.deepEqual(agent.reached, [])
  })
  it('a first message with a rotated token is rejected, and one with the new token accepted', async () => {
    const agent = await challenging()
    const [before, after] = [await challenged(agent), await challenged(agent)]
    const old = agent.token
    const token = await agent.rotate(false)
    before.send(hello(old))
    assert.equal((await before.closed).code, 1008)
    after.send(hello(token))
    await until('it came back', () => after.messages.length === 2)
    after.raw.terminate()
  })
  it('a missing first message does not count as a failed login if the client leaves', async () => {
    const agent = await challenging()
    const address = newAddress()
    for (let i = 0; i <= FAILURES; i++) {
      const client = await challenged(agent, address)
      if (i % 2) client.raw.close()
      else client.raw.terminate()
      await client.closed
    }
    await nothingIsOpen()
    const client = await challenged(agent, address)
    client.raw.terminate()
  })
  it('no first message is awaited from an address with too many failed logins', async (t) => {
    disableTimeouts(t, MESSAGE_MS)
    const agent = await challenging()
    const address = newAddress()
    const fail = () =>
      agent.stranger.get('/v0/logs', { 'x-forwarded-for': address, authorization: `Bearer ${randomUUID()}` })
    const open = await challenged(agent, address)
    for (let i = 0; i < FAILURES; i++) assert.equal((await fail()).status, 401)
    assert.equal(await visit(agent, {}, address).refused(), 429)
    assert.equal(agent.sockets.clients.size, 1)
    // The message of a connection that is already open is still read, but its client learns nothing from it.
    open.send(hello(agent.token))
    assert.equal((await open.closed).code, 1013)
    const elsewhere = await challenged(agent)
    elsewhere.raw.terminate()
  })
  it('a first message never appears in the log', () => {
    assert.ok(!world.lines.join('').includes('"auth"'))
  })
})

describe('chat that was admitted by its first message', () => {
  it('chat that was admitted by its first message ends with a rotated token or a deleted agent', async () => {
    const ends: ((own: TestAgent) => Promise<unknown>)[] = [
      (own) => own.rotate(),
      (own) => own.rotate(false),
      (own) => own.set('deleted_at', new Date()),
    ]
    for (const end of ends) {
      const agent = await challenging()
      const client = await challenged(agent)
      client.send(hello(agent.token))
      await until('it came back', () => client.messages.length === 2)
      await end(agent)
      assert.equal((await client.closed).code, 1008)
      await until('the gateway has no socket', () => agent.sockets.clients.size === 0)
    }
    await nothingIsOpen()
  })
  it('a client that is not identified yet is disconnected when the agent is deleted', async () => {
    const agent = await challenging()
    const client = await challenged(agent)
    await agent.set('deleted_at', new Date())
    assert.equal((await client.closed).code, 1008)
    await nothingIsOpen()
  })
  it('a client that is not identified yet is told when the gateway leaves', async () => {
    const agent = await challenging()
    const client = await challenged(agent)
    for (const side of agent.sockets.clients) side.terminate()
    assert.equal((await client.closed).code, 1012)
    await nothingIsOpen()
  })
})

describe('clients that are not identified yet', () => {
  it('clients that are not identified yet are limited per agent, apart from other clients', async (t) => {
    disableTimeouts(t, MESSAGE_MS)
    const agent = await challenging()
    const waiting = await Promise.all(Array.from({ length: OF_AGENT }, () => challenged(agent)))
    assert.equal(await visit(agent).refused(), 429)
    const owner = agent.host.socket('/')
    await owner.opened
    const other = await challenged(await challenging())
    // A place is free once the token was accepted.
    waiting[0]?.send(hello(agent.token))
    await until('it came back', () => waiting[0]?.messages.length === 2)
    const next = await challenged(agent)
    for (const { raw } of [...waiting, owner, other, next]) raw.terminate()
    await nothingIsOpen()
  })
  it('clients that are not identified yet are limited per address', async (t) => {
    disableTimeouts(t, MESSAGE_MS)
    const [first, second, third] = [await challenging(), await challenging(), await challenging()]
    const address = newAddress()
    const waiting = await Promise.all(
      Array.from({ length: OF_ADDRESS }, (_, i) => challenged(i % 2 ? first : second, address)),
    )
    assert.equal(await visit(third, {}, address).refused(), 429)
    const elsewhere = await challenged(third)
    for (const { raw } of [...waiting, elsewhere]) raw.terminate()
    await nothingIsOpen()
  })
  it('clients that are not identified yet are disconnected by a shutdown', async () => {
    const own = await startWorld()
    try {
      const agent = await own.agent()
      const client = agent.stranger.socket('/')
      await client.opened
      const start = performance.now()
      await own.stopWeb()
      assert.equal((await client.closed).code, 1001)
      assert.ok(performance.now() - start < 5000)
    } finally {
      await own.stop()
    }
  })
})
