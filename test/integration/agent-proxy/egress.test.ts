import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { EgressProxy } from '../../../src/agent-proxy/egress.ts'
import { createLogger } from '../../../src/log.ts'
import {
  get,
  listen,
  openTunnel,
  serveHttp,
  serveTcp,
  startProxy,
  statusOf,
  talk,
} from '../../support/egress.ts'
import { freePort, until } from '../../support/processes.ts'

test('a request is forwarded with its path, body and headers, and its response comes back', async (t) => {
  const upstream = await serveHttp(t, async (req, res) => {
    const seen = { method: req.method, url: req.url, headers: req.rawHeaders, body: await text(req) }
    res.writeHead(201, 'Made', [
      ['Set-Cookie', 'a=1'],
      ['Set-Cookie', 'b=2'],
      ['Connection', 'X-Hop'],
      ['X-Hop', '1'],
    ])
    res.end(JSON.stringify(seen))
  })
  const { port } = await startProxy(t, [`127.0.0.1:${upstream}`])
  const body = 'x'.repeat(100_000)
  const req = request({
    host: '127.0.0.1',
    port,
    method: 'POST',
    path: `http://127.0.0.1:${upstream}/a/../b?c=%2F`,
    agent: false,
    headers: {
      host: 'elsewhere.example',
      'proxy-authorization': 'Basic c2VjcmV0',
      'proxy-connection': 'keep-alive',
      connection: 'close, X-Private',
      'x-private': '1',
      'x-kept': 'yes',
      'content-length': body.length,
    },
  })
  req.end(body)
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  const seen = JSON.parse(await text(res))

  assert.equal(res.statusCode, 201)
  assert.equal(res.statusMessage, 'Made')
  assert.deepEqual(res.headers['set-cookie'], ['a=1', 'b=2'])
  assert.equal(res.headers['x-hop'], undefined)
  assert.equal(res.headers.via, '1.1 berth')
  assert.deepEqual({ method: seen.method, url: seen.url }, { method: 'POST', url: '/a/../b?c=%2F' })
  assert.equal(seen.body, body)
  const names = seen.headers
    .filter((_: string, i: number) => i % 2 === 0)
    .map((name: string) => name.toLowerCase())
  assert.deepEqual(names.sort(), ['connection', 'content-length', 'host', 'via', 'x-kept'])
  assert.ok(seen.headers.includes(`127.0.0.1:${upstream}`))
})

test('chunked bodies stay chunked for any method, and one connection carries several requests', async (t) => {
  const upstream = await serveHttp(t, async (req, res) => {
    res.end(`${req.method} ${req.headers['transfer-encoding']} ${await text(req)}`)
  })
  const { port } = await startProxy(t, [`127.0.0.1:${upstream}`])
  const target = `http://127.0.0.1:${upstream}/`
  const chunked = `DELETE ${target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nGET /\r\n0\r\n\r\n`
  const answer = await talk(port, `${chunked}GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  assert.match(answer, /DELETE chunked GET \/[\s\S]*GET undefined /)
})

test('CONNECT joins both sides, keeps early bytes, and lets each side end separately', async (t) => {
  const reply = 'y'.repeat(5_000_000)
  const upstream = await serveTcp(t, (socket) => void text(socket).then((sent) => socket.end(sent + reply)))
  const { port } = await startProxy(t, [`127.0.0.1:${upstream}`])
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(`CONNECT 127.0.0.1:${upstream} HTTP/1.1\r\nHost: x\r\n\r\nearly`)
  const answer = await text(socket)
  assert.equal(answer, `HTTP/1.1 200 Connection Established\r\n\r\nearly${reply}`)
})

test('an upgrade is forwarded with the bytes that follow both heads', async (t) => {
  const server = createHttpServer()
  server.on('upgrade', async (req, socket, head) => {
    const key = req.headers['sec-websocket-key']
    socket.write(
      `HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Key: ${key}\r\n\r\nhello `,
    )
    socket.end(`${req.url} ${req.headers.connection} ${head}${await text(socket)}`)
  })
  const upstream = await listen(t, server)
  const { port } = await startProxy(t, [`127.0.0.1:${upstream}`])
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(
    `GET http://127.0.0.1:${upstream}/ws?t=1 HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\n` +
      'Upgrade: WebSocket\r\nSec-WebSocket-Key: abc\r\n\r\nfirst',
  )
  const [head = '', body] = (await text(socket)).split('\r\n\r\n')
  assert.equal(statusOf(head), 101)
  assert.match(head, /X-Key: abc[\s\S]*Connection: Upgrade\r\nUpgrade: websocket/)
  assert.equal(body, 'hello /ws?t=1 Upgrade first')
})

test('an upgrade that the destination declines gets the destination’s response', async (t) => {
  const upstream = await serveHttp(t, (_req, res) => res.writeHead(401, { 'x-why': 'token' }).end('no'))
  const { port } = await startProxy(t, [`127.0.0.1:${upstream}`])
  const answer = await talk(
    port,
    `GET http://127.0.0.1:${upstream}/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  )
  assert.equal(statusOf(answer), 401)
  assert.match(answer, /x-why: token/)
  assert.match(answer, /no/)
})

test('an h2c upgrade is stripped and the request forwarded without it', async (t) => {
  const upstream = await serveHttp(t, async (req, res) =>
    res.end(`${req.headers.upgrade} ${await text(req)}`),
  )
  const { port } = await startProxy(t, [`127.0.0.1:${upstream}`])
  const headers = 'Host: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\nContent-Length: 4\r\n'
  assert.match(
    await talk(port, `POST http://127.0.0.1:${upstream}/ HTTP/1.1\r\n${headers}\r\nbody`),
    /undefined body/,
  )
})

test('a bad request is rejected', async (t) => {
  const { port } = await startProxy(t)
  const cases: [number, string][] = [
    [400, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
    [400, 'GET https://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n'],
    [400, 'GET http://user:pw@example.com/ HTTP/1.1\r\nHost: x\r\n\r\n'],
    [400, 'CONNECT example.com HTTP/1.1\r\nHost: x\r\n\r\n'],
    [400, 'CONNECT example.com:0 HTTP/1.1\r\nHost: x\r\n\r\n'],
    [400, 'nonsense\r\n\r\n'],
    [400, '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    [
      400,
      'POST http://example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    ],
    [431, `GET http://example.com/ HTTP/1.1\r\nHost: x\r\nX-Big: ${'a'.repeat(20_000)}\r\n\r\n`],
  ]
  for (const [status, bytes] of cases) {
    const answer = await talk(port, bytes)
    assert.equal(statusOf(answer), status, `${bytes.slice(0, 60)} -> ${answer}`)
    assert.match(answer, /Connection: close/)
  }
})

test('a CONNECT behind an unanswered request closes only that connection', async (t) => {
  const upstream = await serveTcp(t, () => {})
  const { port } = await startProxy(t, [`127.0.0.1:${upstream}`])
  const target = `127.0.0.1:${upstream}`
  const get = `GET http://${target}/ HTTP/1.1\r\nHost: x\r\n\r\n`
  assert.equal(await talk(port, `${get}CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`), '')
  assert.equal((await openTunnel(port, target)).status, 200)
})

test('an unreachable destination returns 502', async (t) => {
  const target = `127.0.0.1:${await freePort()}`
  const garbage = await serveTcp(t, (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'))
  const silent = await serveTcp(t, (socket) => socket.end())
  const unasked = await serveTcp(t, (socket) =>
    socket.end('HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
  )
  const allowed = [target, `127.0.0.1:${garbage}`, `127.0.0.1:${silent}`, `127.0.0.1:${unasked}`]
  const { port } = await startProxy(t, allowed)
  for (const name of allowed) assert.equal((await get(port, `http://${name}/`)).status, 502, name)
  assert.equal((await openTunnel(port, target)).status, 502)
  const { status, body } = await until('a name server answers', async () => {
    const answer = await get(port, 'http://no-such-name.invalid/')
    return !answer.body.endsWith('EAI_AGAIN\n') && answer
  })
  assert.deepEqual(
    { status, body },
    { status: 502, body: 'no-such-name.invalid:80 cannot be reached: ENOTFOUND\n' },
  )
})

test('a resolver that does not answer returns 504', async (t) => {
  const { port } = await startProxy(t, [], {
    resolve: () => new Promise(() => {}),
    limits: { connectMs: 50 },
  })
  assert.equal((await get(port, 'http://slow.example/')).status, 504)
  assert.equal((await openTunnel(port, 'slow.example:443')).status, 504)
})

test('a silent destination returns 504, and a silent tunnel is closed', async (t) => {
  const upstream = await serveTcp(t, () => {})
  const { port } = await startProxy(t, [`127.0.0.1:${upstream}`], { limits: { idleMs: 500 } })
  assert.equal((await get(port, `http://127.0.0.1:${upstream}/`)).status, 504)
  const { status, socket } = await openTunnel(port, `127.0.0.1:${upstream}`)
  assert.equal(status, 200)
  socket.resume()
  await once(socket, 'close')
})

test('a client that sends no head, or half of one, is disconnected', async (t) => {
  const { port } = await startProxy(t, [], { limits: { headerMs: 100 } })
  assert.equal(statusOf(await talk(port, 'GET http://example.com/ HTTP/1.1\r\nHost:')), 408)
  assert.equal(statusOf(await talk(port, '')), 408)
})

test('a client that leaves closes the connection to the destination', async (t) => {
  const closed = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const upstream = await serveTcp(t, (socket) => {
    reached.resolve()
    socket.resume()
    socket.once('end', () => closed.resolve())
    socket.once('close', () => closed.resolve())
  })
  const { port } = await startProxy(t, [`127.0.0.1:${upstream}`])
  const req = request({ host: '127.0.0.1', port, path: `http://127.0.0.1:${upstream}/`, agent: false })
  req.on('error', () => {})
  req.end()
  await reached.promise
  req.destroy()
  await closed.promise
})

test('a tunnel beyond the limit returns 503 until another one ends', async (t) => {
  const upstream = await serveTcp(t, () => {})
  const { port, registry } = await startProxy(t, [`127.0.0.1:${upstream}`], { limits: { exchanges: 1 } })
  const target = `127.0.0.1:${upstream}`
  const first = await openTunnel(port, target)
  assert.equal((await openTunnel(port, target)).status, 503)
  first.socket.resetAndDestroy()
  await until('the tunnel is closed', async () => /berth_egress_open 0/.test(await registry.metrics()))
  assert.equal((await openTunnel(port, target)).status, 200)
  const metrics = await registry.metrics()
  assert.match(metrics, /berth_egress_open 1/)
  assert.match(metrics, /berth_egress_exchanges_total\{kind="connect",outcome="503"\} 1/)
})

test('agents that share one address of the proxy each have a share, and others are rejected', async (t) => {
  const upstream = await serveTcp(t, () => {})
  const target = `127.0.0.1:${upstream}`
  const { proxy } = await startProxy(t, [target], { limits: { agentExchanges: 1 } })
  const settings = { host: 'BERTH_EGRESS_HOST', port: 'BERTH_EGRESS_PORT' }
  const binding = { host: '127.0.0.2', port: 0, settings }
  const port = await proxy.listen(binding, { network: '127.0.1.0/24', isOfOne: false })
  const from = (localAddress: string) => {
    const socket = connect({ host: '127.0.0.2', port, localAddress })
    t.after(() => socket.destroy())
    socket.on('error', () => {})
    socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
    const first = new Promise<string>((resolve) => {
      socket.once('data', (data) => resolve(String(data)))
      socket.once('close', () => resolve(''))
    })
    return { socket, first }
  }
  const one = from('127.0.1.1')
  assert.match(await one.first, / 200 /)
  assert.match(await from('127.0.1.2').first, / 200 /, 'another agent')
  assert.match(await from('127.0.1.1').first, / 503 /)
  assert.doesNotMatch(await from('127.0.2.1').first, /HTTP/, 'not an agent')
  one.socket.resetAndDestroy()
  await until('its tunnel is closed', async () => / 200 /.test(await from('127.0.1.1').first))
  await until('idle connections are limited as well', async () => {
    const idle = connect({ host: '127.0.0.2', port, localAddress: '127.0.1.3' })
    t.after(() => idle.destroy())
    idle.on('error', () => {})
    const more = from('127.0.1.3')
    return !/HTTP/.test(await more.first)
  })
})

test('the log has counts at level debug, and no credentials', async (t) => {
  const upstream = await serveHttp(t, (_req, res) => res.end())
  const { port, lines } = await startProxy(t, [`127.0.0.1:${upstream}`])
  const headers = { authorization: 'Bearer hush', 'proxy-authorization': 'Basic hush', cookie: 'hush' }
  await get(port, `http://127.0.0.1:${upstream}/bot-hush?token=hush`, headers)
  await get(port, 'http://10.0.0.1/hush', headers)
  await until('both are logged', () => lines.length === 2)
  assert.deepEqual(
    lines
      .map((line) => JSON.parse(line))
      .map(({ level, destination, outcome }) => [level, destination, outcome]),
    [
      [20, `127.0.0.1:${upstream}`, 'passed'],
      [20, '10.0.0.1:80', '403'],
    ],
  )
  assert.doesNotMatch(lines.join(''), /hush/)
})

test('close lets a request end, cuts tunnels after the drain time and accepts no new connections', async (t) => {
  const answers: (() => void)[] = []
  const upstream = await serveHttp(t, (_req, res) => void answers.push(() => res.end('late')))
  const { port, proxy } = await startProxy(t, [`127.0.0.1:${upstream}`], { limits: { drainMs: 3000 } })
  const { socket } = await openTunnel(port, `127.0.0.1:${upstream}`)
  socket.resume()
  const cut = once(socket, 'close')
  const late = get(port, `http://127.0.0.1:${upstream}/`)
  await until('the request arrives', () => answers.length === 1)
  const closed = proxy.close()
  answers[0]?.()
  assert.equal((await late).body, 'late')
  await Promise.all([closed, cut])
  await assert.rejects(get(port, `http://127.0.0.1:${upstream}/`), { code: 'ECONNREFUSED' })
})

test('the error for a port in use names its setting', async (t) => {
  const taken = await serveTcp(t, () => {})
  const log = createLogger('test', 'silent')
  const proxy = new EgressProxy({ allowed: [], log, registry: new Registry() })
  const settings = { host: 'BERTH_EGRESS_HOST', port: 'BERTH_EGRESS_PORT' }
  await assert.rejects(proxy.listen({ host: '127.0.0.1', port: taken, settings }), {
    name: 'ConfigError',
    message: `BERTH_EGRESS_PORT: ${taken} is in use on 127.0.0.1`,
  })
})
