/** WebSockets on an agent's own host: chat, which is forwarded, and the log, which Berth serves. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, it, mock } from 'node:test'
import type { WebSocket } from 'ws'
import { AgentHost, type AgentSocket } from '../../../support/agent-host.ts'
import { onDemand } from '../../../support/clock.ts'
import { sendRaw } from '../../../support/gateway.ts'
import { until, untilStill } from '../../../support/processes.ts'
import { startWorld, type TestAgent, type World } from './world.ts'

let world: World
let agent: TestAgent
/** Makes the web process ping clients, as it does every 30 seconds. */
let ping: () => number
/** Makes the web process check its open connections, as it does every three seconds. */
let look: () => number
before(async () => {
  look = onDemand({ mock }, 3000)
  ping = onDemand({ mock }, 30_000)
  world = await startWorld()
  agent = await world.agent()
})
after(() => world?.stop())

const metrics = () => world.metrics()
const nothingIsOpen = () =>
  until('nothing is open', async () => /berth_agent_connections 0\n/.test(await metrics()))
/** The gateway's socket for a client's socket. */
const gatewaySide = (own: TestAgent) =>
  until('the gateway has it', () =>
    [...own.sockets.clients].findLast((side) => side.readyState === side.OPEN),
  )

async function openChat(own: TestAgent, path = '/'): Promise<AgentSocket> {
  const chat = own.host.socket(path)
  await chat.opened
  return chat
}

describe('chat', () => {
  it('chat forwards messages both ways', async () => {
    for (const path of ['/', '/chat', `/?token=${agent.token}`]) {
      const chat = await openChat(agent, path)
      const long = { text: 'x'.repeat(3_000_000) }
      for (const message of [{ a: 1 }, long, { b: 'ü' }]) chat.send(message)
      await until('all came back', () => chat.messages.length === 3)
      assert.deepEqual(chat.messages, [{ a: 1 }, long, { b: 'ü' }])
      chat.raw.close(4000, 'bye')
      assert.deepEqual(await chat.closed, { code: 4000, reason: 'bye' })
    }
    await nothingIsOpen()
  })
  it('chat is closed with the gateway’s code and reason', async () => {
    const chat = await openChat(agent)
    const side = await gatewaySide(agent)
    side.close(1008, 'no')
    assert.deepEqual(await chat.closed, { code: 1008, reason: 'no' })
  })
  it('chat that breaks off is closed with 1012', async () => {
    const chat = await openChat(agent)
    const side = await gatewaySide(agent)
    side.terminate()
    assert.equal((await chat.closed).code, 1012)
    await nothingIsOpen()
  })
  it('chat ends at the gateway when the client leaves', async () => {
    const chat = await openChat(agent)
    const side = await gatewaySide(agent)
    const closed = once(side, 'close')
    chat.raw.terminate()
    await closed
    await nothingIsOpen()
  })
  it('silent chat is kept open by pings [report: idle streams]', async () => {
    const chat = await openChat(agent)
    const side = (await gatewaySide(agent)) as WebSocket
    for (let i = 0; i < 15; i++) {
      const ponged = Promise.all([once(chat.raw, 'ping'), once(side, 'pong')])
      ping()
      await ponged
    }
    chat.send({ still: 'open' })
    await until('it came back', () => chat.messages.length === 1)
    chat.raw.terminate()
    await nothingIsOpen()
  })
  it('chat is closed with a reason if its client answers no ping [report: idle streams]', async () => {
    const chat = agent.host.socket('/', {}, { autoPong: false })
    await chat.opened
    for (let i = 0; i < 12; i++) ping()
    assert.deepEqual(await chat.closed, { code: 1008, reason: 'The client answered no ping for 5 minutes' })
    await nothingIsOpen()
  })
  it('chat waits for a client that reads slowly', async () => {
    const chat = await openChat(agent)
    const side = (await gatewaySide(agent)) as WebSocket
    chat.raw.pause()
    const message = Buffer.alloc(1_000_000)
    for (let i = 0; i < 100; i++) side.send(message)
    const waiting = await untilStill('what waits at the gateway', () => side.bufferedAmount)
    assert.ok(waiting > 50_000_000, `only ${waiting} bytes wait at the gateway`)
    chat.raw.terminate()
    await nothingIsOpen()
  })
})

describe('an upgrade', () => {
  it('an upgrade without a valid token returns 401', async () => {
    assert.equal(await agent.stranger.socket('/?token=wrong').refused(), 401)
    assert.equal(await agent.stranger.socket('/v0/logs').refused(), 401)
    const foreign = await world.agent()
    assert.equal(await agent.stranger.socket(`/?token=${foreign.token}`).refused(), 401)
    assert.equal(await agent.host.socket(`/v0/agents/${foreign.agentId}/logs`).refused(), 401)
  })
  it('an upgrade with a cookie must come from a page of the same host', async () => {
    const cookie = `gw_token=${agent.token}`
    const own = agent.stranger.socket('/', { cookie, origin: `http://${agent.host.host}` })
    await own.opened
    own.raw.close()
    const foreign: Record<string, string>[] = [{}, { origin: 'http://evil.example' }, { origin: 'null' }]
    for (const headers of foreign)
      assert.equal(await agent.stranger.socket('/', { cookie, ...headers }).refused(), 403)
  })
  it('an upgrade on any other path is rejected', async () => {
    for (const path of ['/nowhere', '/v0/status', '/api/v1/admin/rpc', '/v1/models', '//'])
      assert.equal(await agent.host.socket(path).refused(), 404, path)
    assert.equal(await new AgentHost(world.url, 'xzzzzzzz').socket('/').refused(), 404)
    const api = (path: string, host = '127.0.0.1') =>
      sendRaw(
        world.url,
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      )
    assert.match(await api('/'), /^HTTP\/1.1 400 /)
    assert.match(await api('/healthz'), /^HTTP\/1.1 400 /)
    assert.match(await api('/', 'x.gateway.localhost'), /^HTTP\/1.1 4\d\d /)
  })
  it('an upgrade to something other than a WebSocket is an ordinary request', async () => {
    const h2c =
      'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nConnection: close'
    const answer = await sendRaw(world.url, `GET /healthz HTTP/1.1\r\nHost: x\r\n${h2c}\r\n\r\n`)
    assert.match(answer, /^HTTP\/1.1 200 /)
  })
  it('an upgrade without a valid handshake returns 400', async () => {
    const request = `GET /v0/logs HTTP/1.1\r\nHost: ${agent.host.host}\r\nAuthorization: Bearer ${agent.token}`
    const answer = await sendRaw(world.url, `${request}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
    assert.match(answer, /^HTTP\/1.1 4(00|26) /)
    await nothingIsOpen()
  })
  it('an upgrade whose client leaves at once leaves nothing behind', async () => {
    const { port, hostname } = new URL(world.url)
    for (let i = 0; i < 20; i++) {
      const socket = connect(Number(port), hostname)
      socket.write(
        `GET / HTTP/1.1\r\nHost: ${agent.host.host}\r\nAuthorization: Bearer ${agent.token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      )
      await new Promise((resolve) => setTimeout(resolve, i))
      socket.destroy()
    }
    await nothingIsOpen()
    await until('the gateway has no socket', () => agent.sockets.clients.size === 0)
  })
})

describe('an agent that is not ready', () => {
  it('an agent that is not ready accepts the upgrade and closes with 1013', async () => {
    const cases: ((agent: TestAgent) => unknown)[] = [
      (agent) => agent.setGateway('starting'),
      (agent) => agent.set('status', 'starting'),
      (agent) => agent.set('address', '127.0.0.1:1'),
      (agent) => agent.set('address', null),
    ]
    for (const change of cases) {
      const own = await world.agent()
      await change(own)
      assert.equal((await own.host.socket('/').closed).code, 1013)
    }
    const gone = await world.agent()
    await gone.set('address', null)
    assert.equal((await gone.host.socket('/v0/logs').closed).code, 1013)
  })
})

describe('an open connection', () => {
  it('an open connection is closed at once when the token is rotated or the agent deleted', {
    timeout: 60_000,
  }, async () => {
    const ends: ((own: TestAgent) => Promise<unknown>)[] = [
      (own) => own.rotate(),
      (own) => own.set('deleted_at', new Date()),
    ]
    for (const end of ends) {
      const own = await world.agent()
      const sockets = [await openChat(own), await openChat(own, '/v0/logs')]
      const bystander = await openChat(agent)
      await end(own)
      // Without waiting for a check.
      for (const { closed } of sockets) assert.equal((await closed).code, 1008)
      assert.equal(bystander.raw.readyState, bystander.raw.OPEN)
      bystander.raw.close()
    }
    await nothingIsOpen()
  })
  it('an open connection is closed when the key that opened it is revoked', async () => {
    const { id, token } = await world.key()
    const owners = new AgentHost(world.url, agent.agentId, token).socket('/')
    await owners.opened
    const bystander = await openChat(agent)
    await world.revoke(id)
    assert.equal((await owners.closed).code, 1008)
    assert.equal(bystander.raw.readyState, bystander.raw.OPEN)
    bystander.raw.close()
  })
  it('an open connection is closed when the key that opened it expires', { timeout: 120_000 }, async (t) => {
    const expiresAt = new Date(Date.now() + 3_600_000)
    const { token } = await world.key({ expiresAt })
    const chat = new AgentHost(world.url, agent.agentId, token).socket('/')
    await chat.opened
    look()
    const bystander = await openChat(agent)
    assert.equal(chat.raw.readyState, chat.raw.OPEN)
    t.mock.timers.enable({ apis: ['Date'], now: expiresAt })
    look()
    assert.equal((await chat.closed).code, 1008)
    bystander.raw.close()
    await nothingIsOpen()
  })
  it('an open connection is closed even in the middle of a message', async () => {
    const own = await world.agent()
    const chat = await openChat(own)
    const side = (await gatewaySide(own)) as WebSocket
    chat.raw.pause()
    for (let i = 0; i < 40; i++) side.send(JSON.stringify('x'.repeat(1_000_000)))
    await until('the connection is full', async () => side.bufferedAmount > 1_000_000)
    await own.rotate()
    await until('the gateway has no socket', () => own.sockets.clients.size === 0)
    chat.raw.resume()
    assert.ok([1006, 1008].includes((await chat.closed).code))
  })
  it('an open connection is closed if the news of its end was lost with a broken connection', async () => {
    const own = await world.agent()
    const chat = await openChat(own)
    await own.rotate(false)
    await world.pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'berth-listen' AND datname = current_database()`,
    )
    assert.equal((await chat.closed).code, 1008)
  })
  it('an open connection is closed if the news of its end was lost silently', {
    timeout: 60_000,
  }, async () => {
    const own = await world.agent()
    const chat = await openChat(own)
    await own.rotate(false)
    look()
    assert.equal((await chat.closed).code, 1008)
  })
  it('open connections are limited per key', async () => {
    const own = await world.agent()
    const sockets = await Promise.all(Array.from({ length: 128 }, () => openChat(own)))
    assert.equal(await own.host.socket('/').refused(), 429)
    // Requests are limited separately.
    assert.equal((await own.host.post('/v1/chat/completions', {})).status, 200)
    const others = await openChat(agent)
    for (const { raw } of [...sockets, others]) raw.terminate()
    await nothingIsOpen()
  })
})

describe('the log', () => {
  it('the log of an agent sends its last lines and then line by line', async () => {
    const own = await world.agent()
    for (let i = 0; i < 150; i++) own.log.info(`line ${i}`)
    const log = await openChat(own, '/v0/logs')
    await until('the last lines came', () => log.messages.length === 100)
    assert.equal(log.messages[0].message, 'line 50')
    own.log.add({ level: 'WARN', source: 'gateway/ws', message: 'new' })
    await until('the new line came', () => log.messages.length === 101)
    const { timestamp, ...line } = log.messages[100]
    assert.deepEqual(line, { level: 'WARN', source: 'gateway/ws', message: 'new' })
    assert.match(timestamp, /^\d{4}-\d\d-\d\dT.*Z$/)
    const { status, body } = await own.host.get('/v0/logs')
    assert.equal(status, 200)
    const lines = body.logs.split('\n')
    assert.deepEqual([lines.length, lines[0].endsWith('INFO agentd line 51')], [100, true])
    log.raw.close()
    await until('agentd has no reader', () => own.log.followers === 0)
    await nothingIsOpen()
  })
  it('the log of an agent buffers nothing for a reader that does not read', async () => {
    const own = await world.agent()
    const log = await openChat(own, '/v0/logs')
    log.raw.pause()
    const message = 'x'.repeat(4000)
    for (let i = 0; i < 20_000; i++) {
      own.log.info(message)
      if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    log.raw.resume()
    const said = () => log.messages.find(({ message }) => /lines were left out/.test(message))
    await until('the reader learns what it missed', said)
    assert.ok(log.messages.length < 10_000, `${log.messages.length} lines were kept`)
    log.raw.terminate()
    await nothingIsOpen()
  })
  it('a log is closed with a reason if its reader answers no ping [report: idle streams]', async () => {
    const own = await world.agent()
    const log = own.host.socket('/v0/logs', {}, { autoPong: false })
    await log.opened
    ping()
    ping()
    assert.deepEqual(await log.closed, { code: 1008, reason: 'The client answered no ping' })
  })
  it('the log of an agent ends with 1012 when the agent leaves', async () => {
    const own = await world.agent()
    const log = await openChat(own, `/v0/agents/${own.agentId}/logs`)
    await own.stopAgentd()
    assert.equal((await log.closed).code, 1012)
  })
})

describe('a shutdown', () => {
  it('a shutdown closes everything with 1001, without unnecessary delay', async () => {
    const own = await startWorld()
    try {
      const agent = await own.agent()
      const sockets = [await openChat(agent), await openChat(agent, '/v0/logs')]
      const start = performance.now()
      await own.stopWeb()
      for (const { closed } of sockets) assert.equal((await closed).code, 1001)
      assert.ok(performance.now() - start < 10_000)
    } finally {
      await own.stop()
    }
  })
})
