/** Brokered secrets in HTTP/1.1 and HTTP/2, at real TLS servers. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import {
  AUTHORIZED,
  ask,
  askHttp2,
  HOST,
  PLACEHOLDER,
  SECRET,
  serveHttps,
  startBroker,
  VALUE,
  WITH_SECRET,
} from '../../support/brokered.ts'
import { openTunnel, serveTcp } from '../../support/egress.ts'
import { until } from '../../support/processes.ts'

/** A host that tells what it got without the value in it, and then the value. */
async function start(t: TestContext) {
  const seen: { headers: NodeJS.Dict<string | string[]>; url: string; method: string; body: string }[] = []
  const connections = new Set<unknown>()
  const port = await serveHttps(t, async (req, res) => {
    connections.add(req.socket)
    seen.push({ headers: req.headers, url: req.url ?? '', method: req.method ?? '', body: await text(req) })
    res.writeHead(200, `Hello ${req.headers['x-reason'] ?? ''}`, {
      'x-token': VALUE,
      'content-length': 60 + VALUE.length,
    })
    res.end('x'.repeat(30) + VALUE + 'y'.repeat(30))
  })
  const broker = await startBroker(t, { [`${HOST}:443`]: port })
  return { broker, seen, connections }
}
const MASKED = 'x'.repeat(30) + '*'.repeat(VALUE.length) + 'y'.repeat(30)

test('a placeholder becomes the value at the host, and the value never comes back', async (t) => {
  const { broker, seen, connections } = await start(t)
  const socket = await broker.connect()
  for (let i = 0; i < 3; i++) {
    const { status, headers, body } = await ask(socket, `/v1?a=${PLACEHOLDER}`, {
      method: 'POST',
      headers: { ...AUTHORIZED, 'x-other': PLACEHOLDER, 'accept-encoding': 'gzip', range: 'bytes=0-3' },
      body: `body ${PLACEHOLDER}`,
    })
    assert.deepEqual([status, body], [200, MASKED])
    assert.equal(headers['x-token'], '*'.repeat(VALUE.length))
    assert.equal(headers['content-length'], `${MASKED.length}`)
  }
  const [{ headers, url, body } = assert.fail()] = seen
  assert.equal(headers.authorization, `Bearer ${VALUE}`)
  assert.deepEqual(
    [headers['x-other'], url, body],
    [PLACEHOLDER, `/v1?a=${PLACEHOLDER}`, `body ${PLACEHOLDER}`],
  )
  assert.deepEqual([headers['accept-encoding'], headers.range, headers.host], ['identity', undefined, HOST])
  assert.equal(connections.size, 1, 'requests share a connection to the host')
  assert.doesNotMatch(broker.lines.join(''), new RegExp(VALUE))
})

test('requests of HTTP/2 get the value too, several at once', async (t) => {
  const { broker, seen } = await start(t)
  const session = await broker.connectHttp2()
  const answers = await Promise.all(
    ['/a', '/b', '/c'].map((path) =>
      askHttp2(session, path, {
        method: 'POST',
        headers: { ...AUTHORIZED, cookie: ['a=1', 'b=2'] },
        body: path,
      }),
    ),
  )
  for (const { status, headers, body } of answers) {
    assert.deepEqual([status, body], [200, MASKED])
    assert.equal(headers['x-token'], '*'.repeat(VALUE.length))
  }
  assert.deepEqual(seen.map(({ url, body }) => [url, body]).sort(), [
    ['/a', '/a'],
    ['/b', '/b'],
    ['/c', '/c'],
  ])
  for (const { headers, method } of seen)
    assert.deepEqual([headers.authorization, headers.cookie, method], [`Bearer ${VALUE}`, 'a=1; b=2', 'POST'])
})

test('an event stream arrives event by event, masked across its chunks', async (t) => {
  let next = () => {}
  const port = await serveHttps(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    const parts = ['data: 1\n\n', `data: ${VALUE.slice(0, 9)}`, `${VALUE.slice(9)}\n\n`, 'data: 3\n\n']
    next = () => void (parts.length > 0 ? res.write(parts.shift()) : res.end())
    next()
  })
  const broker = await startBroker(t, { [`${HOST}:443`]: port })
  const socket = await broker.connect()
  const req = request({ path: '/', headers: { host: HOST }, createConnection: () => socket })
  req.end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  let body = ''
  res.on('data', (chunk) => {
    body += chunk
  })
  const arrived = (expected: string) => until(expected, () => body === expected)
  await arrived('data: 1\n\n')
  next()
  await arrived('data: 1\n\ndata: ')
  next()
  await arrived(`data: 1\n\ndata: ${'*'.repeat(VALUE.length)}\n\n`)
  next()
  next()
  await once(res, 'end')
  assert.match(body, /data: 3\n\n$/)
})

test('a response that breaks off does not look complete', async (t) => {
  const port = await serveHttps(t, (_req, res) => {
    res.writeHead(200)
    res.write('half', () => res.destroy())
  })
  const broker = await startBroker(t, { [`${HOST}:443`]: port })
  await assert.rejects(ask(await broker.connect()), { code: 'ECONNRESET' })
  const stream = (await broker.connectHttp2()).request({ ':path': '/' })
  await assert.rejects(text(stream), { code: 'ERR_HTTP2_STREAM_ERROR' })
})

test('a host that ends an idle connection ends the client’s, as without a proxy', async (t) => {
  const { broker } = await start(t)
  const socket = await broker.connect()
  await ask(socket)
  // Node's servers close after five seconds; this one is told to.
  const port = await serveHttps(t, (req, res) => res.end('ok', () => req.socket.end()))
  const other = await startBroker(t, { [`${HOST}:443`]: port })
  const closing = await other.connect()
  closing.resume()
  const closed = once(closing, 'close')
  assert.equal((await ask(closing)).status, 200)
  await closed
})

test('other hosts and ports pass untouched, byte for byte', async (t) => {
  const received: string[] = []
  const echo = await serveTcp(t, (socket) => {
    socket.on('data', (data) => received.push(String(data)))
    socket.pipe(socket)
  })
  const broker = await startBroker(t, {
    [`${HOST}:8443`]: echo,
    'api.example.com.evil:443': echo,
    'example.com:443': echo,
    'x.api.example.com:443': echo,
  })
  for (const to of [`${HOST}:8443`, 'api.example.com.evil:443', 'example.com:443', 'x.api.example.com:443']) {
    const { socket } = await openTunnel(broker.port, to, {
      'proxy-authorization': `Basic ${btoa('agent:secret')}`,
    })
    socket.write(`no TLS, Bearer ${PLACEHOLDER} ${VALUE}`)
    assert.equal(String((await once(socket, 'data'))[0]), `no TLS, Bearer ${PLACEHOLDER} ${VALUE}`)
    socket.destroy()
  }
})

test('requests are counted one by one, with their bytes', async (t) => {
  const { broker } = await start(t)
  const socket = await broker.connect()
  for (let i = 0; i < 3; i++) await ask(socket)
  await until(
    'they are counted',
    () => broker.sum('requests') === 3 && broker.sum('bytesReceived') > 3 * MASKED.length,
  )
  assert.ok(broker.sum('bytesSent') > 300)
  assert.equal(broker.sum('denied'), 0)
})

test('a new value counts for the next request, and a detached secret cuts its connections', async (t) => {
  const { broker, seen } = await start(t)
  const [socket, session] = [await broker.connect(), await broker.connectHttp2()]
  await ask(socket)
  const changed = { ...WITH_SECRET, secrets: [{ ...SECRET, value: 'sk-test-another-value-aa' }] }
  broker.web.policy = changed
  await until('the new value is used', async () => {
    await ask(socket)
    return seen.at(-1)?.headers.authorization === 'Bearer sk-test-another-value-aa'
  })
  assert.ok(!socket.destroyed)
  broker.web.policy = { ...changed, secrets: [] }
  const detachedAt = performance.now()
  await Promise.all([once(socket, 'close'), once(session, 'close')])
  assert.ok(performance.now() - detachedAt < 1000)
})
