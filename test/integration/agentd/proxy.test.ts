import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { BROWSER_HEADER } from '../../../agentd/protocol.ts'
import { proxyService } from '../../../agentd/proxy.ts'
import type { GatewayHandle } from '../../../agentd/server.ts'
import { readAll, type ServedAgentd, serveAgentd } from '../../support/agentd-services.ts'

const TOKEN = 'token of the gateway'
/** Listens in place of the engine's gateway; each test decides how it responds. */
let upstream: Server
let listener: RequestListener
let sockets: WebSocketServer
let agentd: ServedAgentd
const gateway = { port: 0, state: 'ready', token: TOKEN } as {
  -readonly [K in keyof GatewayHandle]: GatewayHandle[K]
}

before(async () => {
  upstream = createServer((req, res) => listener(req, res))
  sockets = new WebSocketServer({ server: upstream, perMessageDeflate: true })
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  gateway.port = (upstream.address() as AddressInfo).port
  agentd = await serveAgentd([proxyService], gateway)
})
beforeEach(() => {
  listener = (req, res) => req.pipe(res)
  sockets.removeAllListeners('connection')
})
after(async () => {
  await agentd.close()
  upstream.closeAllConnections()
  upstream.close()
})

test('a request is forwarded with the gateway’s token and without headers not meant for it', async () => {
  let seen: IncomingMessage | undefined
  listener = (req, res) => {
    seen = req
    res.writeHead(418, { 'x-answer': 'yes', 'keep-alive': 'timeout=99', 'set-cookie': ['a=1', 'b=2'] })
    req.pipe(res)
  }
  const response = await agentd.send('PUT', '/v1/gateway/v1/x%2Fy/../z?q=%20a&q=2', {
    body: 'hello',
    headers: {
      'x-mine': '1',
      accept: 'text/event-stream',
      cookie: 'gw_token=x',
      origin: 'https://elsewhere.example',
      'x-forwarded-for': '203.0.113.9',
      'x-only-here': '1',
      connection: 'close, X-Only-Here',
    },
  })
  assert.equal(response.statusCode, 418)
  assert.equal((await readAll(response)).toString(), 'hello')
  assert.equal(response.headers['x-answer'], 'yes')
  assert.notEqual(response.headers['keep-alive'], 'timeout=99')
  assert.deepEqual(response.headers['set-cookie'], ['a=1', 'b=2'])
  assert.deepEqual([seen?.method, seen?.url], ['PUT', '/v1/z?q=%20a&q=2'])
  const { host, authorization, connection: _, ...others } = seen?.headers ?? {}
  assert.deepEqual([host, authorization], [`127.0.0.1:${gateway.port}`, `Bearer ${TOKEN}`])
  assert.deepEqual(others, { 'x-mine': '1', accept: 'text/event-stream', 'content-length': '5' })
})

test('the gateway’s work ends when the client leaves, before and during the response', async () => {
  for (const answers of [false, true]) {
    const closed = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    listener = (_req, res) => {
      res.once('close', closed.resolve)
      if (answers) res.write('something')
      asked.resolve()
    }
    const sent = request({ port: agentd.port, path: '/v1/gateway/slow', headers: agentd.headers })
    sent.on('error', () => {})
    sent.end()
    if (answers) await once(sent, 'response')
    await asked.promise
    sent.destroy()
    await closed.promise
  }
})

test('an unavailable gateway returns 503, and one that closes its connection returns 502', async () => {
  const code = async () => {
    const { status, body } = await agentd.json('GET', '/v1/gateway/x')
    return `${status} ${body.error}`
  }
  listener = (_req, res) => res.destroy()
  assert.equal(await code(), '502 engine')
  gateway.state = 'starting'
  assert.equal(await code(), '503 not_ready')
  gateway.state = 'ready'
  gateway.token = null
  assert.equal(await code(), '503 not_ready')
  gateway.token = TOKEN
  const { port } = gateway
  gateway.port = 1
  assert.equal(await code(), '503 not_ready')
  gateway.port = port
})

function open(path = '', headers = {}): WebSocket {
  return new WebSocket(`ws://127.0.0.1:${agentd.port}/v1/gateway/${path}`, {
    headers: { ...agentd.headers, ...headers },
  })
}

test('a WebSocket passes through, with its first message rewritten', async () => {
  const seen: { req?: IncomingMessage; messages: string[] } = { messages: [] }
  sockets.on('connection', (socket, req) => {
    seen.req = req
    socket.send('challenge')
    socket.on('message', (data) => {
      seen.messages.push(String(data))
      socket.send(`got ${data}`)
    })
  })
  const client = open('chat?x=1', { origin: 'https://elsewhere.example' })
  assert.equal(String((await once(client, 'message'))[0]), 'challenge')
  const connect = {
    type: 'req',
    id: '1',
    method: 'connect',
    params: { minProtocol: 3, maxProtocol: 3, auth: {} },
  }
  client.send(JSON.stringify(connect))
  await once(client, 'message')
  client.send(JSON.stringify(connect))
  await once(client, 'message')
  const { url, headers } = seen.req ?? { headers: {} as Record<string, undefined> }
  assert.deepEqual(
    [url, headers.authorization, headers.origin, headers['sec-websocket-extensions']],
    ['/chat?x=1', `Bearer ${TOKEN}`, undefined, undefined],
  )
  const [first = '', second = ''] = seen.messages
  assert.deepEqual(JSON.parse(first).params, { minProtocol: 3, maxProtocol: 4, auth: { token: TOKEN } })
  assert.deepEqual(JSON.parse(second), connect)
  client.close(1000, 'done')
  const [code] = await once(client, 'close')
  assert.equal(code, 1000)
})

test('a browser that sends the token itself appears to the gateway as a local page', async () => {
  const origins: unknown[] = []
  sockets.on('connection', (socket, { headers }) => {
    origins.push(headers.origin, headers[BROWSER_HEADER])
    socket.close()
  })
  await once(open('', { origin: 'https://elsewhere.example', [BROWSER_HEADER]: '1' }), 'close')
  assert.deepEqual(origins, [`http://127.0.0.1:${gateway.port}`, undefined])
})

test('the gateway’s close code and reason are passed on', async () => {
  sockets.on('connection', (socket) => socket.on('message', () => socket.close(1008, 'not like this')))
  for (let i = 0; i < 20; i++) {
    const client = open()
    await once(client, 'open')
    client.send('x')
    client.send('y'.repeat(100_000))
    const [code, reason] = await once(client, 'close')
    assert.deepEqual([code, String(reason)], [1008, 'not like this'])
  }
})

test('an upgrade that the gateway does not make is rejected', async () => {
  const refused = async () => {
    const client = open()
    client.on('error', () => {})
    const [, response] = await once(client, 'unexpected-response')
    return response.statusCode
  }
  gateway.state = 'starting'
  assert.equal(await refused(), 503)
  gateway.state = 'ready'
  const { port } = gateway
  gateway.port = 1
  assert.equal(await refused(), 503)
  gateway.port = port
  sockets.options.verifyClient = (_info, done) => done(false, 401)
  assert.equal(await refused(), 502)
  // As while the engine restarts by itself, after a change of its config.
  sockets.options.verifyClient = (_info, done) => done(false, 503)
  assert.equal(await refused(), 503)
  sockets.options.verifyClient = ({ req }: { req: IncomingMessage }) => req.socket.destroy().writable
  assert.equal(await refused(), 503)
  sockets.options.verifyClient = undefined
})

test('a client that leaves during an upgrade leaves nothing behind', async () => {
  const closed = Promise.withResolvers<void>()
  const seen = Promise.withResolvers<void>()
  const silent = createServer().on('upgrade', (_req, socket) => {
    seen.resolve()
    socket
      .on('error', () => {})
      .on('end', closed.resolve)
      .resume()
  })
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = gateway
  gateway.port = (silent.address() as AddressInfo).port
  const client = connect(agentd.port, '127.0.0.1')
  client.write(
    `GET /v1/gateway/ HTTP/1.1\r\nhost: x\r\nauthorization: ${agentd.headers.authorization}\r\n` +
      'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: eA==\r\nsec-websocket-version: 13\r\n\r\n',
  )
  await seen.promise
  client.destroy()
  await closed.promise
  gateway.port = port
  silent.close()
})
