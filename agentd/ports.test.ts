import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener, request, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { readAll, type ServedAgentd, serveAgentd } from '../test/support/agentd-services.ts'
import { freePort } from '../test/support/processes.ts'
import { portService } from './ports.ts'
import { TUNNEL_UPGRADE } from './protocol.ts'

let program: Server
let listener: RequestListener
let sockets: WebSocketServer
let port: number
let agentd: ServedAgentd
const gateway = { port: 0 }

before(async () => {
  program = createServer((req, res) => listener(req, res))
  sockets = new WebSocketServer({ server: program, perMessageDeflate: true })
  port = await listen(program)
  // Stands in for the gateway, which must stay unreachable.
  const own = createServer((_req, res) => res.end('the gateway'))
  gateway.port = await listen(own)
  agentd = await serveAgentd([portService], gateway)
  after(() => void own.close())
})
beforeEach(() => {
  listener = (req, res) => {
    const { method, url, headers } = req
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify({ method, url, headers }))
  }
})
after(async () => {
  await agentd.close()
  program.closeAllConnections()
  program.close()
})

async function listen(server: Server, host = '127.0.0.1', port = 0): Promise<number> {
  server.listen(port, host)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const ask = (headers: Record<string, string>, to: number | string = port, method = 'GET') =>
  agentd.send(method, `/v1/port/${to}`, { headers: { 'berth-path': '/', ...headers } })

test('a call reaches the port exactly as the visitor made it', async () => {
  const response = await ask({
    'berth-path': '/a/../%2e%2e//b?x=%20&token=t',
    'berth-authorization': 'Basic dmlzaXRvcg==',
    'berth-anything': 'x',
    host: 'shop.example.test:3000',
    cookie: 'a=b',
    'x-forwarded-for': '192.0.2.7',
    connection: 'close, X-Only-Here',
    'x-only-here': '1',
  })
  assert.equal(response.headers['berth-answer'], 'port')
  const { method, url, headers } = JSON.parse(String(await readAll(response)))
  assert.deepEqual([method, url], ['GET', '/a/../%2e%2e//b?x=%20&token=t'])
  assert.deepEqual(headers, {
    host: 'shop.example.test:3000',
    cookie: 'a=b',
    'x-forwarded-for': '192.0.2.7',
    authorization: 'Basic dmlzaXRvcg==',
    connection: 'keep-alive',
  })
})

test('a program on the other loopback address is found as well', async (t) => {
  const six = createServer((_req, res) => res.end('six'))
  t.after(() => void six.close())
  // A port that nobody else uses at the address that is tried first.
  const found = await freePort()
  await listen(six, '::1', found)
  assert.equal(String(await readAll(await ask({}, found))), 'six')
})

test('a body arrives, whatever its framing', async () => {
  listener = (req, res) => req.pipe(res)
  for (const method of ['POST', 'DELETE']) {
    const response = await agentd.send(method, `/v1/port/${port}`, {
      body: 'hello',
      headers: { 'berth-path': '/', 'transfer-encoding': 'chunked' },
    })
    assert.equal(String(await readAll(response)), 'hello', method)
  }
})

test('a connection to a program is reused only for repeatable requests', async () => {
  const seen = new Set<Socket>()
  listener = (req, res) => {
    seen.add(req.socket)
    res.end('x')
  }
  for (const method of ['GET', 'GET', 'HEAD']) await readAll(await ask({}, port, method))
  assert.equal(seen.size, 1)
  await readAll(await ask({}, port, 'DELETE'))
  await readAll(await ask({}, port, 'POST'))
  assert.equal(seen.size, 3)
})

test('a dead kept connection costs one more attempt, and a second failure is reported', async () => {
  listener = (_req, res) => res.end('x')
  await readAll(await ask({}))
  let asked = 0
  listener = (req, res) => (asked++ === 0 ? req.socket.destroy() : res.end('again'))
  assert.equal(String(await readAll(await ask({}))), 'again')
  listener = (_req, res) => res.end('x')
  await readAll(await ask({}))
  asked = 0
  listener = (req) => {
    asked++
    req.socket.destroy()
  }
  assert.equal((await ask({})).statusCode, 502)
  assert.equal(asked, 2)
  assert.equal((await ask({}, port, 'POST')).statusCode, 502)
  assert.equal(asked, 3)
})

test('unsolicited bytes of a program never become a response', async (t) => {
  const answer = (text: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`
  for (const later of [false, true]) {
    const liar = createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', () => {
        socket.write(answer('first') + (later ? '' : answer('lie')))
        if (later) setImmediate(() => socket.write(answer('lie')))
      })
    })
    t.after(() => void liar.close())
    liar.listen(0, '127.0.0.1')
    await once(liar, 'listening')
    const { port: to } = liar.address() as AddressInfo
    for (let i = 0; i < 5; i++) assert.equal(String(await readAll(await ask({}, to))), 'first')
  }
})

test('bytes after a response without a body do not disturb the next call', async (t) => {
  // The forbidden body of a HEAD arrives just before the response to the next request on its connection.
  const careless = createTcpServer((socket) => {
    let late = ''
    socket.on('error', () => {})
    socket.on('data', (head) => {
      const isHead = head.toString().startsWith('HEAD')
      socket.write(`${late}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n${isHead ? '' : 'body'}`)
      late = isHead ? 'late' : ''
    })
  })
  t.after(() => void careless.close())
  careless.listen(0, '127.0.0.1')
  await once(careless, 'listening')
  const { port: to } = careless.address() as AddressInfo
  await readAll(await ask({}, to, 'HEAD'))
  const next = await ask({}, to)
  assert.deepEqual([next.statusCode, String(await readAll(next))], [200, 'body'])
})

test('a connection is not reused if the visitor did not read the whole response', async () => {
  const seen = new Set<Socket>()
  let isClosed: Promise<unknown> | undefined
  listener = (req, res) => {
    seen.add(req.socket)
    isClosed ??= once(res, 'close')
    res.write('something')
    if (seen.size > 1) res.end()
  }
  const left = await ask({})
  await once(left, 'data')
  left.destroy()
  await isClosed
  assert.equal(String(await readAll(await ask({}))), 'something')
  assert.equal(seen.size, 2)
})

test('agentd, the gateway and system ports cannot be reached', async () => {
  for (const other of [agentd.port, gateway.port, 80, 1024, 65_536, 0, `${port}/x`, `${port}%2f`, 'x', '']) {
    const response = await ask({}, other)
    assert.equal(response.statusCode, 400, String(other))
    assert.equal(response.headers['berth-answer'], undefined)
    response.destroy()
  }
  assert.equal((await ask({ 'berth-path': 'x' })).statusCode, 400)
  for (const other of [agentd.port, gateway.port]) {
    const socket = open(other)
    const [, response] = await once(socket, 'unexpected-response')
    assert.equal(response.statusCode, 400)
    socket.terminate()
  }
})

test('a port without a listener, or without HTTP, returns an error', async (t) => {
  const free = await freePort()
  const answers = ['HTTP/1.1 101 Hm\r\n\r\n', 'SSH-2.0-x\r\n', '', 'HTTP/1.1 200 OK\r\n\r\n']
  const odd = createTcpServer((socket) => void socket.on('error', () => {}).end(answers.shift() ?? ''))
  odd.listen(0, '127.0.0.1')
  await once(odd, 'listening')
  t.after(() => void odd.close())
  for (const [to, expected] of [
    [free, [503, 'not_ready']],
    ...answers.slice(0, 2).map(() => [(odd.address() as AddressInfo).port, [502, 'engine']] as const),
  ] as const) {
    const response = await ask({}, to)
    const { error } = JSON.parse(String(await readAll(response)))
    assert.deepEqual([response.statusCode, error], expected)
    assert.equal(response.headers['berth-answer'], undefined)
    const socket = open(to)
    const [, refused] = await once(socket, 'unexpected-response')
    assert.equal(refused.statusCode, expected[0])
    socket.terminate()
  }
})

test('a tunnel is a connection to the port whose bytes agentd does not read', async () => {
  const socket = await tunnel(port)
  for (const path of ['/a', '/b']) {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    const [answer] = await once(socket, 'data')
    assert.match(String(answer), new RegExp(`"url":"${path}","headers":{"host":"x"}`))
  }
  const isClosed = once(socket, 'close')
  socket.write('no HTTP\r\n\r\n')
  await isClosed
})

test('a tunnel passes every byte in order, even to a slow client', async (t) => {
  const sent = randomBytes(8_000_000)
  const talker = createTcpServer((socket) => void socket.on('error', () => {}).end(sent))
  talker.listen(0, '127.0.0.1')
  await once(talker, 'listening')
  t.after(() => void talker.close())
  const socket = await tunnel((talker.address() as AddressInfo).port)
  const chunks: Buffer[] = []
  for await (const chunk of socket) {
    chunks.push(chunk)
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.ok(Buffer.concat(chunks).equals(sent))
})

test('agentd closes upgraded connections when it stops', async () => {
  const stopped = await serveAgentd([portService], gateway)
  const socket = await tunnel(port, stopped)
  const isClosed = once(socket.resume(), 'close')
  await stopped.close()
  await isClosed
})

test('a tunnel leads to neither agentd, the gateway, nor a port without a listener', async () => {
  for (const other of [agentd.port, gateway.port, 80, 0])
    await assert.rejects(tunnel(other), { message: '400 bad_request' }, String(other))
  await assert.rejects(tunnel(await freePort()), { message: '503 not_ready' })
})

/** @throws Error with agentd's status and code. */
async function tunnel(to: number, through = agentd): Promise<Socket> {
  const headers = { ...through.headers, connection: 'Upgrade', upgrade: TUNNEL_UPGRADE }
  const asked = request({ port: through.port, path: `/v1/tunnel/${to}`, headers }).end()
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  asked.once('upgrade', (_response, socket, head) => {
    if (head.length > 0) socket.unshift(head)
    resolve(socket)
  })
  asked.once('response', (response) => {
    readAll(response).then((body) => {
      reject(new Error(`${response.statusCode} ${JSON.parse(String(body)).error}`))
    }, reject)
  })
  return promise
}

function open(to: number): WebSocket {
  const headers = { ...agentd.headers, 'berth-path': '/live?x=1', origin: 'https://shop.example.test' }
  const socket = new WebSocket(`ws://127.0.0.1:${agentd.port}/v1/port/${to}`, 'chat', { headers })
  socket.on('error', () => {})
  return socket
}

test('a WebSocket is joined with everything that both sides agreed on', async () => {
  const asked = once(sockets, 'connection')
  const socket = open(port)
  const [side, req] = await asked
  side.on('message', (data: Buffer) => side.send(data))
  await once(socket, 'open')
  assert.deepEqual([req.url, req.headers.origin], ['/live?x=1', 'https://shop.example.test'])
  assert.equal(req.headers.authorization, undefined)
  assert.deepEqual([socket.protocol, socket.extensions], ['chat', 'permessage-deflate'])
  const message = Buffer.alloc(1_000_000, 'x')
  socket.send(message)
  const [echo] = await once(socket, 'message')
  assert.equal(echo.length, message.length)
  socket.close(4001)
  const [code] = await once(side, 'close')
  assert.equal(code, 4001)
})
