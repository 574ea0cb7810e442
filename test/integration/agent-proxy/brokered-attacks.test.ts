/** Attempts to get the value of a brokered secret, or to bring it elsewhere, with the agent's own credential. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { agentAuthority } from '../../../src/agent-proxy/tls/authority.ts'
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
import { get, openTunnel, serveHttp } from '../../support/egress.ts'

const AS_AGENT = { 'proxy-authorization': `Basic ${btoa('agent:secret')}` }

/** A host that returns the headers, target and body of requests as JSON. */
async function startEcho(t: TestContext, more: Record<string, number> = {}) {
  const seen: IncomingMessage[] = []
  const port = await serveHttps(t, async (req, res) => {
    seen.push(req)
    res.end(JSON.stringify({ headers: req.rawHeaders, url: req.url, body: await text(req) }))
  })
  const broker = await startBroker(t, { [`${HOST}:443`]: port, ...more })
  return { broker, seen, port }
}

/** Sends bytes on an open connection, and resolves with what comes back until it ends. */
async function talk(socket: TLSSocket, bytes: string): Promise<string> {
  socket.write(bytes, 'latin1')
  return text(socket).catch(() => '')
}
const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])

test('a host that returns the request shows stars, in every encoding', async (t) => {
  const encodings = [
    (value: string) => JSON.stringify({ access_token: value, token_type: 'Bearer' }),
    (value: string) => `access_token=${encodeURIComponent(value)}&token_type=bearer`,
    (value: string) => btoa(`{"access_token":"${value}"}`),
    (value: string) => btoa(`x-access-token:${value}`),
  ]
  const port = await serveHttps(t, (req, res) => {
    const value = /^Bearer (.*)$/.exec(req.headers.authorization ?? '')?.[1] ?? ''
    const encoded = encodings[Number(req.url?.slice(1))]?.(value) ?? ''
    res.writeHead(200, {
      'set-cookie': [`a=${value}`, 'b=2'],
      [`x-${value}`]: 'name',
      location: `/?t=${value}`,
    })
    res.end(encoded)
  })
  const broker = await startBroker(t, { [`${HOST}:443`]: port })
  const [socket, session] = [await broker.connect(), await broker.connectHttp2()]
  for (const [i] of encodings.entries())
    for (const { status, headers, body } of [await ask(socket, `/${i}`), await askHttp2(session, `/${i}`)]) {
      assert.equal(status, 200)
      const all = JSON.stringify(headers) + body
      for (const leak of [VALUE, encodeURIComponent(VALUE), VALUE.slice(8), btoa(VALUE).slice(4, 16)])
        assert.ok(!all.includes(leak), all)
      assert.ok(!Buffer.from(body, 'base64').toString().includes(VALUE.slice(8)), body)
      assert.match(String(headers.location), /^\/\?t=\*+$/)
    }
})

test('a placeholder stays one at other hosts, addresses and ports, and behind a redirect', async (t) => {
  const received: string[] = []
  const other = await serveHttps(
    t,
    (req, res) => {
      received.push(JSON.stringify(req.rawHeaders))
      res.end()
    },
    'evil.example',
  )
  const plain = await serveHttp(t, (req, res) => {
    received.push(JSON.stringify(req.rawHeaders))
    res.end()
  })
  const names = ['evil.example', `${HOST}.evil.example`, '192.0.2.7', `x${HOST}`]
  const { broker } = await startEcho(t, {
    ...Object.fromEntries(names.map((name) => [`${name}:443`, other])),
    ...{ [`${HOST}:8443`]: other, [`${HOST}:80`]: plain },
  })
  for (const to of [...names.map((name) => `${name}:443`), `${HOST}:8443`]) {
    // A client that an attacker wrote verifies nothing, and claims the name of the secret's host.
    const socket = await broker.connect(to, { servername: HOST, rejectUnauthorized: false })
    assert.equal(socket.getPeerX509Certificate()?.subject, 'CN=evil.example', `${to} is untouched`)
    assert.equal((await ask(socket)).status, 200)
  }
  assert.equal((await get(broker.port, `http://${HOST}/`, { ...AS_AGENT, ...AUTHORIZED })).status, 200)
  assert.equal(received.length, 6)
  for (const headers of received) assert.ok(headers.includes(PLACEHOLDER) && !headers.includes(VALUE))
})

test('names in TLS, Host and :authority that disagree with the tunnel get 421', async (t) => {
  const { broker, seen } = await startEcho(t)
  const trusting = { rejectUnauthorized: false }
  for (const servername of ['evil.example', `${HOST}.evil.example`, '']) {
    const socket = await broker.connect(`${HOST}:443`, { ...trusting, servername })
    assert.equal((await ask(socket)).status, 421, servername)
    const session = await broker.connectHttp2(`${HOST}:443`, { ...trusting, servername })
    assert.equal(
      (await askHttp2(session, '/', { headers: { ':authority': HOST, ...AUTHORIZED } })).status,
      421,
    )
  }
  for (const host of [
    'evil.example',
    `${HOST}:8443`,
    `${HOST}.evil.example`,
    `${HOST}@evil.example`,
    '192.0.2.1',
    '',
  ])
    assert.equal(
      (await ask(await broker.connect(), '/', { headers: { ...AUTHORIZED, host } })).status,
      421,
      host,
    )
  const twice = await talk(
    await broker.connect(),
    `GET / HTTP/1.1\r\nHost: ${HOST}\r\nHost: evil.example\r\nConnection: close\r\n\r\n`,
  )
  assert.ok([400, 421].includes(statusOf(twice)), twice)
  const session = await broker.connectHttp2()
  for (const headers of [
    { ':authority': 'evil.example' },
    { ':authority': HOST, host: 'evil.example' },
    { ':authority': `${HOST}:444` },
  ])
    assert.equal((await askHttp2(session, '/', { headers })).status, 421, JSON.stringify(headers))
  assert.equal(seen.length, 0)
  const same = await ask(await broker.connect(), '/', {
    headers: { ...AUTHORIZED, host: `${HOST.toUpperCase()}.:443` },
  })
  assert.deepEqual([same.status, seen[0]?.headers.host], [200, HOST])
})

test('targets that servers may read differently, and methods that return requests, are refused', async (t) => {
  const { broker, seen } = await startEcho(t)
  for (const path of ['/v1/..%2fadmin', '/v1/%2e%2e/admin', '/v1/../admin', '/v1/..%5cadmin', '/v1/%00'])
    assert.equal((await ask(await broker.connect(), path)).status, 400, path)
  assert.equal((await ask(await broker.connect(), '/', { method: 'TRACE' })).status, 405)
  for (const target of [`https://${HOST}/`, 'https://evil.example/', `${HOST}:443`]) {
    const head = `GET ${target} HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`
    assert.equal(statusOf(await talk(await broker.connect(), head)), 400, target)
  }
  const connect = `CONNECT evil.example:443 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`
  assert.equal(statusOf(await talk(await broker.connect(), connect)), 405)
  const same = `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`
  assert.equal(statusOf(await talk(await broker.connect(), same)), 405)
  const upgrade = `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`
  assert.equal(statusOf(await talk(await broker.connect(), upgrade)), 400)
  const session = await broker.connectHttp2()
  assert.equal((await askHttp2(session, '/v1/..%2fadmin')).status, 400)
  assert.equal((await askHttp2(session, '/', { method: 'TRACE' })).status, 405)
  assert.equal(seen.length, 0)
  assert.equal((await ask(await broker.connect(), '/@scope%2fname')).status, 200)
})

test('ambiguous requests of HTTP/1.1 are refused, and nothing is smuggled behind them', async (t) => {
  const { broker, seen } = await startEcho(t)
  const smuggled = `GET /smuggled HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`
  const head = `POST / HTTP/1.1\r\nHost: ${HOST}\r\n`
  for (const request of [
    `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    `${head}Content-Length: 0\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    `${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
    `${head}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    `${head}X: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    `${head}X: a\rb\r\n\r\n${smuggled}`,
    `${head}Content-Length: +4\r\n\r\nabcd${smuggled}`,
    `${head}Transfer-Encoding: chunked\r\n\r\n4;\nabcd\r\n0\r\n\r\n${smuggled}`,
  ])
    assert.equal(statusOf(await talk(await broker.connect(), request)), 400, request)
  assert.deepEqual(
    seen.map(({ url }) => url).filter((url) => url !== '/'),
    [],
  )
})

/** A frame of HTTP/2 (RFC 9113, 4.1). */
const frame = (type: number, flags: number, stream: number, payload: Buffer) =>
  Buffer.concat([
    Buffer.from([0, payload.length >> 8, payload.length & 255, type, flags, 0, 0, 0, stream]),
    payload,
  ])
/** A header in HPACK, as a literal that is not indexed. */
const literal = (name: string, value: string) =>
  Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value, 'latin1'),
  ])

/** True if the host's answer is a reset of the stream or the connection, or a status other than 200. */
async function isRefused(socket: TLSSocket): Promise<boolean> {
  let bytes = Buffer.alloc(0)
  for await (const chunk of socket) {
    bytes = Buffer.concat([bytes, chunk])
    for (let at = 0; at + 9 < bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
      const type = bytes[at + 3]
      if (type === 3 || type === 7) return true
      // Status 200 has an index of its own in HPACK.
      if (type === 1) return bytes[at + 9] !== 0x88
    }
  }
  return true
}

test('requests of HTTP/2 that would be others in HTTP/1.1 are refused', async (t) => {
  const { broker, seen } = await startEcho(t)
  const pseudo: [string, string][] = [
    [':method', 'POST'],
    [':scheme', 'https'],
    [':path', '/'],
    [':authority', HOST],
  ]
  const smuggled = `0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`
  for (const [headers, body] of [
    [[...pseudo, ['x-a', 'b\r\nx-injected: 1']]],
    [[...pseudo, ['x-a', 'b\nx-injected: 1']]],
    [[...pseudo, ['x-a', 'b\rc']]],
    [[...pseudo, ['x-a\r\nx-injected', 'b']]],
    [[...pseudo, ['transfer-encoding', 'chunked']], smuggled],
    [[...pseudo, ['connection', 'keep-alive']]],
    [[...pseudo, ['content-length', '0']], smuggled],
    [[...pseudo, ['x-a', '1'], [':path', '/late']]],
    [[...pseudo, [':path', '/twice']]],
    [[...pseudo.filter(([name]) => name !== ':path'), [':path', '/ HTTP/1.1\r\nx-injected: 1\r\nx: y']]],
    [
      [
        ...pseudo.filter(([name]) => name !== ':method'),
        [':method', 'GET / HTTP/1.1\r\nx-injected: 1\r\n\r\nGET'],
      ],
    ],
    [[...pseudo.filter(([name]) => name !== ':authority'), [':authority', `${HOST}\r\nx-injected: 1`]]],
    [[...pseudo, ['X-Upper', '1']]],
  ] as [[string, string][], string?][]) {
    const socket = await broker.connect(`${HOST}:443`, { ALPNProtocols: ['h2'] })
    const block = Buffer.concat(headers.map(([name, value]) => literal(name, value)))
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    socket.write(frame(4, 0, 0, Buffer.alloc(0)))
    socket.write(frame(1, body === undefined ? 5 : 4, 1, block))
    if (body !== undefined) socket.write(frame(0, 1, 1, Buffer.from(body)))
    // A header whose value could end it may also be dropped.
    const isDropped = () => seen.at(-1)?.rawHeaders.every((text) => !/^x-(a|injected|upper)/i.test(text))
    assert.ok((await isRefused(socket)) || isDropped(), JSON.stringify(headers))
    socket.destroy()
  }
  for (const { url, headers } of seen) assert.ok(url === '/' && !('x-injected' in headers), url)
})

test('responses that cannot be masked are refused', async (t) => {
  const heads: Record<string, [Record<string, string>, Buffer | string]> = {
    '/gzip': [{ 'content-encoding': 'gzip' }, gzipSync(VALUE)],
    '/unknown': [{ 'content-encoding': 'identity, x' }, 'x'],
    '/transfer': [{ 'transfer-encoding': 'gzip, chunked' }, 'x'],
  }
  const port = await serveHttps(t, (req, res) => {
    const [headers, body] = heads[req.url ?? ''] ?? assert.fail()
    res.writeHead(200, headers).end(body)
  })
  const broker = await startBroker(t, { [`${HOST}:443`]: port })
  const session = await broker.connectHttp2()
  for (const path of Object.keys(heads)) {
    const refused = await ask(await broker.connect(), path)
    assert.equal(refused.status, 502, path)
    assert.match(refused.body, /compressed response/)
    assert.equal((await askHttp2(session, path)).status, 502)
  }
})

test('hosts without a valid certificate, or at a private address, get no request', async (t) => {
  let requests = 0
  const serve = (host: string, roots?: ReturnType<typeof agentAuthority>) =>
    serveHttps(
      t,
      (_req, res) => {
        requests++
        res.end()
      },
      host,
      roots,
    )
  const evil = agentAuthority('evil', 'evil')
  for (const [port, reason] of [
    [await serve('evil.example'), /verified TLS: ERR_TLS_CERT_ALTNAME_INVALID/],
    [await serve(HOST, evil), /verified TLS: /],
    [await serve(HOST, agentAuthority('the key of this proxy', 'xaaaaaaa')), /verified TLS: /],
    [await serveHttp(t, () => requests++), /verified TLS: /],
  ] as const) {
    const broker = await startBroker(t, { [`${HOST}:443`]: port })
    const refused = await ask(await broker.connect())
    assert.equal(refused.status, 502)
    assert.match(refused.body, reason)
  }
  // DNS rebinding: the name leads into the machine's network at the second lookup.
  const addresses = ['10.0.0.1', '::1', '169.254.169.254', 'fd00::1']
  for (const address of addresses) {
    const resolve = async () => [{ address, family: address.includes(':') ? 6 : 4 }]
    const broker = await startBroker(t, {}, { resolve })
    const refused = await ask(await broker.connect())
    assert.deepEqual([refused.status, refused.body], [403, `${HOST}:443 is not on the public internet\n`])
  }
  assert.equal(requests, 0)
})

test('without the agent’s own credential no value is inserted', async (t) => {
  const { broker, seen } = await startEcho(t)
  assert.equal(
    (await openTunnel(broker.port, `${HOST}:443`, { 'proxy-authorization': `Basic ${btoa('agent:other')}` }))
      .status,
    407,
  )
  const { status, socket } = await openTunnel(broker.port, `${HOST}:443`)
  assert.equal(status, 200)
  const secure = connectTls({ socket, servername: HOST, rejectUnauthorized: false })
  await once(secure, 'secureConnect')
  assert.equal((await ask(secure)).status, 200)
  assert.equal(seen[0]?.headers.authorization, `Bearer ${PLACEHOLDER}`)
  assert.notEqual(secure.getPeerX509Certificate()?.issuer, `CN=Berth egress of agent ${WITH_SECRET.agentId}`)
})

test('a secret of a suffix is for names below it', async (t) => {
  const port = await serveHttps(
    t,
    (req, res) => res.end(String(req.headers.authorization === `Bearer ${VALUE}`)),
    'a.example.org',
  )
  const broker = await startBroker(t, { 'a.example.org:443': port })
  broker.web.policy = { ...WITH_SECRET, secrets: [{ ...SECRET, hosts: ['*.example.org'] }] }
  const socket = await broker.connect('a.example.org:443')
  assert.equal((await ask(socket, '/', { headers: { ...AUTHORIZED, host: 'a.example.org' } })).body, 'true')
})
