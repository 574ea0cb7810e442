/** agentd belongs to the agent, so it may return anything, in any form, or nothing at all. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import type { Agent } from '../../../src/agents/agent.ts'
import { AgentdClient, AgentdError } from '../../../src/agents/agentd-client.ts'
import { toAnswer } from '../../../src/agents/engine-call.ts'
import { passAtOnce } from '../../support/clock.ts'
import { listen, serveTcp } from '../../support/egress.ts'
import { until } from '../../support/processes.ts'
import { AGENT_PROXY_KEY, startTunnelServer } from '../../support/tunnel-server.ts'

const agentId = 'x0000001'

async function startClient(t: TestContext, limits = {}): Promise<AgentdClient> {
  const { port } = await startTunnelServer(t, { limits })
  const client = new AgentdClient({ hostname: '127.0.0.1', port, key: AGENT_PROXY_KEY })
  t.after(() => client.close())
  return client
}

const target = (port: number) => ({ agentId, address: `127.0.0.1:${port}` })
const failsWith = (code: string, work: Promise<unknown>) =>
  assert.rejects(work, (error) => {
    assert.ok(error instanceof AgentdError, `${error}`)
    assert.equal(error.code, code, error.message)
    return true
  })

/** An agentd that answers every connection with these bytes. */
const answering = (t: TestContext, bytes: string) =>
  serveTcp(t, (socket) => {
    socket.once('data', () => socket.write(bytes))
  })

test('a request has its token, epoch and body, and its response comes back', async (t) => {
  const client = await startClient(t)
  const port = await listen(
    t,
    createServer(async (req, res) => {
      const { method, url, headers } = req
      res.end(JSON.stringify({ method, url, headers, body: await text(req) }))
    }),
  )
  const seen = await client.json<Record<string, any>>(target(port), {
    method: 'POST',
    path: '/v1/x?y=1',
    json: { a: 1 },
    epoch: 7,
  })
  assert.deepEqual([seen.method, seen.url, seen.body], ['POST', '/v1/x?y=1', '{"a":1}'])
  assert.equal(seen.headers.authorization, `Bearer ${client.token(agentId)}`)
  assert.equal(seen.headers['berth-epoch'], '7')
  assert.equal(seen.headers['proxy-authorization'], undefined)
  assert.notEqual(client.token(agentId), client.token('x0000002'))
})

test('a failure has the code that agentd sent, or one that the client assigns', async (t) => {
  const client = await startClient(t)
  const bodies: [expected: string, status: number, body: string][] = [
    ['not_ready', 503, '{"error": "not_ready", "message": "soon"}'],
    ['bad_answer', 500, '<html>'],
    ['bad_answer', 500, '{"error": {"message": "x"}}'],
    ['bad_answer', 500, 'null'],
    ['bad_answer', 302, ''],
    ['bad_answer', 500, 'x'.repeat(1_000_000)],
  ]
  for (const [expected, status, body] of bodies) {
    const handler: RequestListener = (_req, res) => res.writeHead(status, { location: 'http://x/' }).end(body)
    const port = await listen(t, createServer(handler))
    await failsWith(expected, client.json(target(port), { path: '/' }))
  }
  await failsWith('unreachable', client.json({ agentId, address: null }, { path: '/' }))
  await failsWith('unreachable', client.json(target(1), { path: '/' }))
  const stranger = new AgentdClient({ hostname: '127.0.0.1', port: 1, key: AGENT_PROXY_KEY })
  await failsWith('unreachable', stranger.json(target(1), { path: '/' }))
})

test('a malformed response is rejected, and nothing waits forever', async (t) => {
  const client = await startClient(t)
  const ok = 'HTTP/1.1 200 OK\r\n'
  const lies: [expected: string, bytes: string][] = [
    ['bad_answer', 'garbage\r\n\r\n'],
    ['bad_answer', `${ok}Content-Length: -1\r\n\r\n`],
    ['bad_answer', `${ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`],
    ['bad_answer', `${ok}Transfer-Encoding: chunked\r\n\r\nzz\r\n`],
    ['bad_answer', `${ok}X: ${'x'.repeat(100_000)}\r\n\r\n`],
    ['bad_answer', `${ok}Content-Length: 3\r\n\r\nno!`],
    ['bad_answer', 'HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['timeout', `${ok}Content-Length: 10\r\n\r\nshort`],
    ['bad_answer', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['bad_answer', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(10_000)],
    ['bad_answer', 'HTTP/1.1 099 Odd\r\n\r\n'],
    ['bad_answer', 'HTTP/1.1 999 Odd\r\n\r\n'],
    ['timeout', ''],
  ]
  for (const [expected, bytes] of lies) {
    const port = await answering(t, bytes)
    const timeoutMs = expected === 'timeout' ? 300 : 30_000
    await failsWith(expected, client.json(target(port), { path: '/', timeoutMs }))
  }
  // A body longer than declared: its remainder is not read as the next response.
  const long = await answering(t, `${ok}Content-Length: 2\r\n\r\n{}${ok}Content-Length: 5\r\n\r\n"lie"`)
  assert.deepEqual(await client.json(target(long), { path: '/' }), {})
  const closing = await serveTcp(t, (socket) => {
    socket.once('data', () => socket.end(`${ok}Content-Length: 10\r\n\r\nshort`))
  })
  await failsWith('bad_answer', client.json(target(closing), { path: '/' }))
})

test('endless and trickling responses are cut off and their connections closed', async (t) => {
  const client = await startClient(t)
  const open = new Set<Socket>()
  const port = await serveTcp(t, (socket) => {
    let timer: NodeJS.Timeout
    socket.once('close', () => {
      open.delete(socket)
      clearInterval(timer)
    })
    socket.once('data', (head) => {
      open.add(socket)
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const [chunk, ms] = `${head}`.includes('/endless') ? ['x'.repeat(65_536), 1] : ['x', 20]
      timer = setInterval(() => socket.write(chunk), ms)
    })
  })
  await failsWith('too_large', client.bytes(target(port), { path: '/endless', maxBytes: 1_000_000 }))
  await failsWith('timeout', client.bytes(target(port), { path: '/drip', timeoutMs: 200 }))
  await until('nothing is open', () => open.size === 0)
  const gone = new AbortController()
  const waiting = client.bytes(target(port), { path: '/drip', signal: gone.signal })
  await until('it is asked', () => open.size > 0)
  gone.abort(new Error('the client left'))
  await assert.rejects(waiting, /the client left/)
  await until('nothing is open', () => open.size === 0)
})

test('a response whose head never comes times out a stream', async (t) => {
  const client = await startClient(t)
  const port = await answering(t, '')
  await failsWith('timeout', client.stream(target(port), { path: '/', timeoutMs: 100 }))
})

test('commands that must not run twice go only to a responsive agentd [report: broken sandboxes]', async (t) => {
  const client = await startClient(t)
  let received = ''
  // Like a paused container: its kernel accepts the connection, and nobody reads.
  const port = await serveTcp(t, (socket) => socket.on('data', (bytes) => (received += bytes)))
  const command = { method: 'POST', path: '/v1/exec', json: { command: 'rm once' }, timeoutMs: 65_000 }
  passAtOnce(t, 10_000)
  const failure = await client.json<AgentdError>(target(port), command).catch((error: AgentdError) => error)
  assert.equal(failure.code, 'unreachable', String(failure))
  const answer = toAnswer({ status: 'running' } as Agent, 'Execution failed', failure)
  assert.deepEqual([answer.status, answer.headers], [503, { 'retry-after': '5' }])
  assert.doesNotMatch(received, /rm once/)
})

test('a read that times out returns a retryable 503, and a write 500 [report: broken sandboxes]', async (t) => {
  const client = await startClient(t)
  const port = await answering(t, '')
  const failed = async (method: string) => {
    const failure = await client
      .bytes(target(port), { method, path: '/', timeoutMs: 50 })
      .catch((error) => error)
    assert.equal(failure.code, 'timeout')
    return toAnswer({ status: 'running' } as Agent, 'Failed', failure)
  }
  assert.equal((await failed('GET')).status, 503)
  assert.equal((await failed('POST')).status, 500)
  const streamed = await client.stream(target(port), { path: '/', timeoutMs: 50 }).catch((error) => error)
  assert.equal(toAnswer({ status: 'running' } as Agent, 'Failed', streamed).status, 503)
})

test('connections are reused; one that died unnoticed costs a retry and never repeats a write', async (t) => {
  const client = await startClient(t)
  const sockets: Socket[] = []
  const requests: string[] = []
  const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
    requests.push(`${req.method}`)
    res.setHeader('Keep-Alive', 'timeout=60')
    res.end('{}')
  })
  server.on('connection', (socket) => sockets.push(socket))
  const port = await listen(t, server)
  await client.json(target(port), { path: '/' })
  await client.json(target(port), { method: 'PUT', path: '/', json: {} })
  assert.equal(sockets.length, 1)
  // A request that is not idempotent gets a new connection, which cannot be stale.
  await client.json(target(port), { method: 'POST', path: '/', json: {} })
  assert.equal(sockets.length, 2)
  server.removeAllListeners('request')
  server.once('request', (req) => req.socket.destroy())
  server.on('request', (_req, res) => res.end('{"again": true}'))
  assert.deepEqual(await client.json(target(port), { path: '/' }), { again: true })
  await client.json(target(port), { path: '/' })
  server.prependOnceListener('request', (req) => req.socket.destroy())
  const reading = { method: 'POST', path: '/', json: {}, isRepeatable: true }
  assert.deepEqual(await client.json(target(port), reading), { again: true }, 'a POST that changes nothing')
  server.removeAllListeners('request')
  server.on('request', (req) => {
    requests.push('lost')
    req.socket.destroy()
  })
  await failsWith('unreachable', client.json(target(port), { method: 'POST', path: '/', json: {} }))
  assert.deepEqual(requests, ['GET', 'PUT', 'POST', 'lost'])
})

test('a kept connection carries only one agent’s requests', async (t) => {
  const client = await startClient(t)
  const seen: [socket: number, authorization: string | undefined][] = []
  const sockets: Socket[] = []
  const server = createServer((req, res) => {
    seen.push([sockets.indexOf(req.socket), req.headers.authorization])
    res.end('{}')
  })
  server.on('connection', (socket) => sockets.push(socket))
  const { address } = target(await listen(t, server))
  for (const id of ['x0000001', 'x0000002', 'x0000001'])
    await client.json({ agentId: id, address }, { path: '/' })
  const [one, two] = ['x0000001', 'x0000002'].map((id) => `Bearer ${client.token(id)}`)
  assert.deepEqual(seen, [
    [0, one],
    [1, two],
    [0, one],
  ])
})

/** An agentd that opens tunnels: each connection leads to `program`. */
async function startTunnels(t: TestContext, program: (socket: Socket, path: string) => void) {
  const opened: string[] = []
  const server = createServer()
  server.on('upgrade', (req, socket) => {
    opened.push(`${req.url} ${req.headers.authorization}`)
    socket.on('error', () => {})
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
    program(socket as Socket, req.url ?? '')
  })
  return { opened, port: await listen(t, server) }
}

test('connections to a program are reused per agent and port, and omit the agentd token', async (t) => {
  const client = await startClient(t)
  const program = createServer((req, res) => res.end(JSON.stringify({ url: req.url, headers: req.headers })))
  const { opened, port } = await startTunnels(t, (socket) => void program.emit('connection', socket))
  const get = async (agentId: string, to: number) => {
    const request = { method: 'GET', path: '/x', headers: { host: 'shop.example.test', a: 'b' } }
    const answer = await client.sendToProgram({ agentId, address: `127.0.0.1:${port}` }, to, request)
    return JSON.parse(await text(answer))
  }
  for (const [id, to] of [
    ['x0000001', 3000],
    ['x0000001', 3000],
    ['x0000001', 3001],
    ['x0000002', 3000],
    ['x0000001', 3000],
  ] as const)
    assert.deepEqual(await get(id, to), {
      url: '/x',
      headers: { host: 'shop.example.test', a: 'b', connection: 'keep-alive' },
    })
  const [one, two] = ['x0000001', 'x0000002'].map((id) => `Bearer ${client.token(id)}`)
  assert.deepEqual(opened, [`/v1/tunnel/3000 ${one}`, `/v1/tunnel/3001 ${one}`, `/v1/tunnel/3000 ${two}`])
})

test('unsolicited bytes and endless early hints of a program never become a response', async (t) => {
  const client = await startClient(t)
  const answer = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const { port } = await startTunnels(t, (socket, path) =>
    socket.on('data', () => {
      if (path.endsWith('/3000')) socket.write(`${answer('first')}${answer('lie')}`)
      else if (path.endsWith('/3001')) {
        socket.write(answer('first'))
        setImmediate(() => socket.write(answer('lie')))
      } else if (path.endsWith('/3002'))
        socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(16) + answer('first'))
      else socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(17))
    }),
  )
  const get = (to: number) => client.sendToProgram(target(port), to, { path: '/', headers: { host: 'x' } })
  for (const to of [3000, 3001, 3002])
    for (let i = 0; i < 5; i++) assert.equal(await text(await get(to)), 'first', String(to))
  await failsWith('bad_answer', get(3003))
})

test('failed tunnels and stale connections are distinguished from a program that fails', async (t) => {
  const client = await startClient(t)
  let asked = 0
  const { port } = await startTunnels(t, (socket) =>
    socket.on('data', () => {
      if (asked++ === 0) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx')
      else socket.destroy()
    }),
  )
  const get = (to: number) => client.sendToProgram(target(to), 3000, { path: '/', headers: { host: 'x' } })
  assert.equal(await text(await get(port)), 'x')
  await failsWith('unreachable', get(port))
  await failsWith('engine', get(port))
  const older = await listen(
    t,
    createServer((_req, res) => res.writeHead(404).end('{"error":"not_found","message":"no"}')),
  )
  await failsWith('unreachable', get(older))
})

test('a response that comes before the end of a body ends the body', async (t) => {
  const client = await startClient(t)
  const server = createServer((_req, res) => res.writeHead(413).end('{"error":"too_large","message":"no"}'))
  const port = await listen(t, server)
  const endless = Readable.from(
    (async function* () {
      for (;;) yield Buffer.alloc(65_536)
    })(),
  )
  await failsWith('too_large', client.json(target(port), { method: 'PUT', path: '/', body: endless }))
  endless.destroy()
})

test('an upgrade returns the connection, or the reason for its failure', async (t) => {
  const client = await startClient(t)
  const port = await answering(
    t,
    'HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-A: b\r\n\r\nhello',
  )
  const { response, socket, head } = await client.upgrade(target(port), { path: '/v1/gateway/' })
  assert.deepEqual([response.headers['x-a'], `${head}`], ['b', 'hello'])
  socket.destroy()
  const refusing = await answering(
    t,
    'HTTP/1.1 503 No\r\nContent-Length: 41\r\n\r\n{"error": "not_ready", "message": "soon"}\n',
  )
  await failsWith('not_ready', client.upgrade(target(refusing), { path: '/' }))
  const garbage = await answering(t, 'garbage\r\n\r\n')
  await failsWith('bad_answer', client.upgrade(target(garbage), { path: '/' }))
})

test('close ends calls in progress', async (t) => {
  const client = await startClient(t)
  const server = createServer(() => {})
  const port = await listen(t, server)
  const waiting = failsWith('unreachable', client.json(target(port), { path: '/' }))
  await once(server, 'request')
  client.close()
  await waiting
})
