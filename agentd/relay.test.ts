import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { listen, serveHttp, serveTcp, talk } from '../test/support/egress.ts'
import { untilStill } from '../test/support/processes.ts'
import {
  bodyFrame,
  endToEnd,
  type JoinOptions,
  joinSockets,
  type PassOptions,
  passBody,
  passTo,
  rawEndToEnd,
  switchingProtocols,
} from './relay.ts'

/** A message with these headers, as Node parses it. */
function message(...rawHeaders: [name: string, value: string][]) {
  const headers: Record<string, string> = {}
  for (const [name, value] of rawHeaders) {
    const key = name.toLowerCase()
    headers[key] = key in headers ? `${headers[key]}, ${value}` : value
  }
  return { headers, rawHeaders: rawHeaders.flat() } as Pick<IncomingMessage, 'headers' | 'rawHeaders'>
}

test('hop-by-hop headers, and those that Connection names, are not forwarded', () => {
  const hostile = message(
    ['Connection', 'close, X-Secret'],
    ['x-secret', '1'],
    ['CONNECTION', ',x-Other ,'],
    ['X-Other', '2'],
    ['TE', 'trailers'],
    ['Trailer', 'Expires'],
    ['Keep-Alive', 'timeout=5'],
    ['Upgrade', 'h2c'],
    ['Proxy-Authorization', 'Basic eDp5'],
    ['Proxy-Authenticate', 'Basic'],
    ['Proxy-Authentication-Info', 'nextnonce=""'],
    ['Transfer-Encoding', 'chunked'],
    ['Proxy-Connection', 'close'],
    ['Accept', '*/*'],
    ['Host', 'x'],
  )
  assert.deepEqual(endToEnd(hostile.headers), { accept: '*/*', host: 'x' })
  assert.deepEqual(rawEndToEnd(hostile), ['Accept', '*/*', 'Host', 'x'])
  assert.deepEqual(
    endToEnd(hostile.headers, (name) => name !== 'host'),
    { accept: '*/*' },
  )
  assert.deepEqual(
    rawEndToEnd(hostile, (name) => name !== 'host'),
    ['Accept', '*/*'],
  )
})

test('raw headers keep their order, case and repetitions', () => {
  const several = message(['Set-Cookie', 'a=1'], ['x-B', '2'], ['Set-Cookie', 'c=3'])
  assert.deepEqual(rawEndToEnd(several), several.rawHeaders)
})

test('a body never loses its length, even if Connection names it', () => {
  const hostile = message(['Connection', 'Content-Length'], ['Content-Length', '5'])
  assert.deepEqual(endToEnd(hostile.headers), { 'content-length': '5' })
  assert.deepEqual(rawEndToEnd(hostile), ['Content-Length', '5'])
})

test('a body keeps its framing for any method', () => {
  const frame = (...headers: [string, string][]) => bodyFrame(message(...headers) as IncomingMessage)
  assert.deepEqual(frame(), {})
  assert.deepEqual(frame(['Content-Length', '0']), {})
  assert.deepEqual(frame(['Content-Length', '5']), { 'content-length': '5' })
  assert.deepEqual(frame(['Transfer-Encoding', 'chunked']), { 'transfer-encoding': 'chunked' })
})

/** A relay in front of a server. @returns its port. */
async function relay(t: TestContext, listener: RequestListener, options?: PassOptions): Promise<number> {
  const port = await serveHttp(t, listener)
  return listen(
    t,
    createServer((req, res) => {
      const headers = { ...endToEnd(req.headers), ...bodyFrame(req), connection: 'close' }
      const sent = request({ port, method: req.method, path: req.url, headers })
      sent.once('response', (answer) => {
        res.writeHead(answer.statusCode ?? 0, endToEnd(answer.headers))
        void passBody(answer, res, options)
      })
      sent.once('error', () => res.destroy())
      req.pipe(sent)
    }),
  )
}

const get = async (port: number): Promise<IncomingMessage> =>
  (await once(request({ port }).end(), 'response'))[0]

test('the body of a hostile request does not become the next request', async (t) => {
  const seen: string[] = []
  const port = await relay(t, async (req, res) => {
    seen.push(`${req.method} ${req.url} ${await text(req)}`)
    res.writeHead(200, { connection: 'content-length', 'content-length': 2 }).end('ok')
  })
  const inner = 'GET /inner HTTP/1.1\r\nHost: x\r\n\r\n'
  const answer = await talk(
    port,
    `DELETE / HTTP/1.1\r\nHost: x\r\nConnection: close, Content-Length\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
  )
  assert.deepEqual(seen, [`DELETE / ${inner}`])
  assert.match(answer, /\r\ncontent-length: 2\r\n[\s\S]*\r\n\r\nok$/)
})

test('the head of a response arrives before its body, and each part as it is written', async (t) => {
  let write = (_part: string) => {}
  const port = await relay(t, (_req, res) => {
    res.flushHeaders()
    write = (part) => void res.write(part)
  })
  const answer = await get(port)
  for (const part of ['one', 'two']) {
    write(part)
    assert.equal(String((await once(answer, 'data'))[0]), part)
  }
  answer.destroy()
})

test('a response that breaks off does not look complete, whatever its framing', async (t) => {
  for (const head of [{ 'content-length': 100 }, {}]) {
    const port = await relay(t, (_req, res) => {
      res.writeHead(200, head).write('half')
      setImmediate(() => res.destroy())
    })
    await assert.rejects(text(await get(port)), { code: 'ECONNRESET' })
  }
})

test('a client that leaves, a signal, and a stall end the response on both sides', async (t) => {
  const leave = new AbortController()
  for (const [options, end] of [
    [{}, (answer: IncomingMessage) => answer.destroy()],
    [{ signal: leave.signal }, () => leave.abort()],
    [{ idleMs: 50 }, () => {}],
  ] as const) {
    const closed = Promise.withResolvers<void>()
    const sender: RequestListener = (_req, res) => void res.once('close', closed.resolve).write('half')
    const answer = await get(await relay(t, sender, options))
    const over = Promise.withResolvers<void>()
    answer.on('error', () => {}).once('close', over.resolve)
    answer.resume()
    end(answer)
    await Promise.all([closed.promise, over.promise])
  }
})

test('a slow reader blocks the sender and does not fill memory', async (t) => {
  let written = 0
  const port = await relay(t, (_req, res) => {
    const chunk = Buffer.alloc(1_000_000)
    const write = () => {
      while (written < 200_000_000 && !res.destroyed) {
        written += chunk.length
        if (!res.write(chunk)) return void res.once('drain', write)
      }
    }
    write()
  })
  const answer = await get(port)
  await untilStill('what is written', () => written)
  assert.ok(written < 50_000_000, `${written} bytes were taken`)
  answer.destroy()
})

test('a switch of protocols keeps the bytes of its headers', () => {
  const head = switchingProtocols('websocket', ['X-Name', 'é'])
  const lines = 'X-Name: é\r\nConnection: Upgrade\r\nUpgrade: websocket'
  assert.equal(head.toString('latin1'), `HTTP/1.1 101 Switching Protocols\r\n${lines}\r\n\r\n`)
})

/** Joins a client with a server. @returns both ends, and the end of the joining. */
async function joined(t: TestContext, options?: JoinOptions, changes = false) {
  const server = Promise.withResolvers<Socket>()
  const target = await serveTcp(t, server.resolve)
  const over = Promise.withResolvers<void>()
  const port = await serveTcp(t, (client) => {
    const upstream: Socket = connect({
      port: target,
      allowHalfOpen: true,
      onread: passTo(client, () => upstream.resume()),
    })
    upstream.on('error', () => {})
    const from = changes ? client.pipe(new PassThrough()) : client
    once(upstream, 'connect')
      .catch(() => 'joined all the same')
      .then(() => joinSockets(client, upstream, { ...options, from }))
      .then(over.resolve, over.reject)
  })
  const client = connect({ port, allowHalfOpen: true })
  t.after(() => client.destroy())
  client.on('error', () => {})
  return { client, server: await server.promise, over: over.promise }
}

test('each direction of a joined connection ends on its own', async (t) => {
  const sent = Buffer.alloc(5_000_000, 'x')
  for (const first of ['client', 'server'] as const) {
    const { client, server, over } = await joined(t)
    const [one, other] = first === 'client' ? [client, server] : [server, client]
    one.end(sent)
    assert.equal((await buffer(other)).length, sent.length)
    other.end(sent)
    assert.equal((await buffer(one)).length, sent.length)
    await over
  }
})

test('a joined connection that breaks takes the other with it', async (t) => {
  for (const changes of [false, true])
    for (const breaking of ['client', 'server'] as const) {
      const { client, server, over } = await joined(t, {}, changes)
      const [broken, other] = breaking === 'client' ? [client, server] : [server, client]
      const ended = once(other.resume(), 'end')
      broken.resetAndDestroy()
      await Promise.all([ended, over])
    }
})

test('a half-open connection that breaks takes the other with it, even if its bytes are changed', async (t) => {
  const { client, server, over } = await joined(t, {}, true)
  server.end()
  await once(client.resume(), 'end')
  client.resetAndDestroy()
  await over
})

test('joined connections end when they are silent or half open for too long', async (t) => {
  for (const options of [{ idleMs: 50 }, { halfOpenMs: 50 }]) {
    const { client, server, over } = await joined(t, options)
    if ('halfOpenMs' in options) client.end()
    const closed = [once(client.resume(), 'end'), once(server.resume(), 'end')]
    await Promise.all([over, ...closed])
  }
})
