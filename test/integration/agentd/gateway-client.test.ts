import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { type WebSocket, WebSocketServer } from 'ws'
import { GatewayClient } from '../../../agentd/gateway-client.ts'
import type { GatewayHandle } from '../../../agentd/server.ts'

/** Listens in place of the engine's gateway, to misbehave in ways that the real one does not. */
let server: WebSocketServer
let client: GatewayClient
let connections = 0
const gateway = { state: 'ready', token: 'right' } as {
  -readonly [K in keyof GatewayHandle]: GatewayHandle[K]
}

before(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  gateway.port = (server.address() as AddressInfo).port
})
beforeEach(() => {
  connections = 0
  client = new GatewayClient(gateway)
})
afterEach(() => {
  client.close()
  server.removeAllListeners('connection')
})
after(() => {
  for (const socket of server.clients) socket.terminate()
  server.close()
})

interface Request {
  id: string
  method: string
  params: { auth?: { token: string } }
}

/** Accepts clients with the right token; `answer` handles their later requests. */
function serve(answer: (request: Request, socket: WebSocket) => void): void {
  server.on('connection', (socket) => {
    connections++
    socket.send(JSON.stringify({ type: 'event', event: 'connect.challenge', payload: {} }))
    socket.on('message', (data) => {
      const request: Request = JSON.parse(String(data))
      if (request.method !== 'connect') return answer(request, socket)
      const ok = request.params.auth?.token === gateway.token
      socket.send(JSON.stringify({ type: 'res', id: request.id, ok, error: { message: 'wrong token' } }))
    })
  })
}

const reply = (socket: WebSocket, id: string, payload: unknown) =>
  socket.send(JSON.stringify({ type: 'res', id, ok: true, payload }))

test('one connection carries many calls, whose responses may come in any order', async () => {
  const waiting: [WebSocket, string, string][] = []
  serve(({ id, method }, socket) => {
    waiting.push([socket, id, method])
    if (waiting.length === 3) for (const [to, ...call] of waiting.reverse()) reply(to, call[0], call[1])
  })
  const answers = await Promise.all(['a', 'b', 'c'].map((method) => client.call(method, {}, 5000)))
  assert.deepEqual(
    answers,
    ['a', 'b', 'c'].map((payload) => ({ ok: true, payload })),
  )
  assert.equal(connections, 1)
})

test('messages that are not responses are skipped', async () => {
  serve(({ id }, socket) => {
    socket.send('no JSON')
    socket.send('null')
    socket.send(Buffer.from([1, 2, 3]))
    reply(socket, 'another id', 'wrong')
    socket.send(JSON.stringify({ type: 'event', event: 'tick', id }))
    reply(socket, id, 'right')
    reply(socket, id, 'twice')
  })
  assert.deepEqual(await client.call('x', {}, 5000), { ok: true, payload: 'right' })
})

test('a refusal has the most specific code', async () => {
  const errors = [
    [
      { code: 'A', message: 'm', details: { code: 'B' } },
      { code: 'B', message: 'm' },
    ],
    [
      { code: 'A', message: 'm' },
      { code: 'A', message: 'm' },
    ],
    [undefined, { code: 'undefined', message: 'undefined' }],
  ] as const
  for (const [error, expected] of errors) {
    server.removeAllListeners('connection')
    serve(({ id }, socket) => socket.send(JSON.stringify({ type: 'res', id, ok: false, error })))
    client.close()
    client = new GatewayClient(gateway)
    assert.deepEqual(await client.call('x', {}, 5000), { ok: false, error: expected })
  }
})

test('an unanswered call times out, and the connection stays open', async () => {
  serve(({ id, method }, socket) => method === 'answered' && reply(socket, id, 1))
  // The timeout includes the handshake, so complete it first.
  await client.call('answered', {}, 5000)
  await assert.rejects(client.call('silent', {}, 100), { code: 'engine' })
  assert.deepEqual(await client.call('answered', {}, 5000), { ok: true, payload: 1 })
  assert.equal(connections, 1)
})

test('if the gateway leaves during a call, its outcome stays open and the next call reconnects', async () => {
  serve(({ id, method }, socket) => (method === 'die' ? socket.terminate() : reply(socket, id, 1)))
  await assert.rejects(client.call('die', {}, 5000), { code: 'engine' })
  assert.deepEqual(await client.call('x', {}, 5000), { ok: true, payload: 1 })
  assert.equal(connections, 2)
})

test('a call fails with not_ready if the gateway accepts no connection', async () => {
  server.on('connection', () => {})
  await assert.rejects(client.call('x', {}, 100), { code: 'not_ready' })
  server.removeAllListeners('connection').on('connection', (socket) => socket.close(1013))
  client = new GatewayClient(gateway)
  await assert.rejects(client.call('x', {}, 5000), { code: 'not_ready' })
  const { port } = gateway
  gateway.port = 1
  client = new GatewayClient(gateway)
  await assert.rejects(client.call('x', {}, 5000), { code: 'not_ready' })
  gateway.port = port
  gateway.state = 'starting'
  await assert.rejects(client.call('x', {}, 5000), { code: 'not_ready' })
  gateway.state = 'ready'
})

test('a wrong token returns not_ready; a new one is used at once', async () => {
  serve(({ id }, socket) => reply(socket, id, 1))
  await client.call('x', {}, 5000)
  gateway.token = 'newer'
  await client.call('x', {}, 5000)
  assert.equal(connections, 2)
  server.removeAllListeners('connection').on('connection', (socket) => {
    socket.send(JSON.stringify({ type: 'event', event: 'connect.challenge' }))
    socket.on('message', (data) => {
      const { id } = JSON.parse(String(data))
      socket.send(JSON.stringify({ type: 'res', id, ok: false, error: { message: 'wrong token' } }))
    })
  })
  client.close()
  await assert.rejects(client.call('x', {}, 5000), { code: 'not_ready', message: /wrong token/ })
})

test('a call beyond the gateway’s limit of concurrent calls returns busy', async () => {
  serve(() => {})
  const results = await Promise.allSettled(Array.from({ length: 80 }, () => client.call('x', {}, 300)))
  const codes = results.map((result) => (result.status === 'rejected' ? result.reason.code : 'ok'))
  assert.equal(codes.filter((code) => code === 'busy').length, 16)
})
