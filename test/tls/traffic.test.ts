/** Traffic through Caddy: streams in both directions, without buffering, and headers that clients cannot forge. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { CONTENT_TYPE, encodeForm, file } from '../contract/upload-form.ts'
import type { TestAgent } from '../integration/vhosts/agents/world.ts'
import { startGitBackend } from '../support/git-backend.ts'
import { until } from '../support/processes.ts'
import { AGENTS, API, APPS, startTlsWorld, type TlsWorld } from './world.ts'

/** The size of an upload; larger in manual runs. */
const UPLOAD_MB = Number(process.env.BERTH_TEST_UPLOAD_MB ?? 256)
const MB = 1_048_576
const SITE = `shop.${APPS}`

/** Responds to the next request in place of the agent's gateway and its page. */
let serve: (req: IncomingMessage, res: ServerResponse) => void
const page = createServer((req, res) => serve(req, res))
let tls: TlsWorld
let agent: TestAgent
let host: string
before(async () => {
  tls = await startTlsWorld()
  agent = await tls.world.agent((req, res) => serve(req, res))
  host = `${agent.agentId}.${AGENTS}`
  page.listen(0, '127.0.0.1')
  await once(page, 'listening')
  const { port } = page.address() as AddressInfo
  const added = await tls.api(`/v0/agents/${agent.agentId}/domains`, { subdomain: 'shop', targetPort: port })
  assert.equal(added.status, 200, added.text)
})
after(async () => {
  await tls?.stop()
  page.closeAllConnections()
  page.close()
})
beforeEach(() => {
  serve = (req, res) => void res.end(JSON.stringify(req.headers))
})

const authorized = () => ({ authorization: `Bearer ${agent.token}` })

describe('an event stream', () => {
  it('an event stream arrives without buffering, and ends at Berth when the client disconnects', async () => {
    let response: ServerResponse | undefined
    let isGone = false
    serve = (_req, res) => {
      response = res
      res.once('close', () => {
        isGone = true
      })
      res.setHeader('content-type', 'text/event-stream')
      res.write('data: first\n\n')
    }
    const answer = await tls.send(host, '/v1/chat/completions', {
      method: 'POST',
      headers: authorized(),
      body: '{}',
    })
    answer.setEncoding('utf8').on('error', () => {})
    assert.deepEqual(await once(answer, 'data'), ['data: first\n\n'])
    response?.write('data: second\n\n')
    assert.deepEqual(await once(answer, 'data'), ['data: second\n\n'])
    // Nothing more is written: only the connection shows it.
    answer.destroy()
    await until('the agent detects it', () => isGone)
  })
})

describe('a response of known length', () => {
  it('a response of known length arrives without buffering', async () => {
    const part = Buffer.alloc(MB)
    let response: ServerResponse | undefined
    serve = (_req, res) => {
      response = res
      res.setHeader('content-length', 2 * part.length)
      res.write(part)
    }
    const answer = await tls.send(SITE, '/')
    let received = 0
    answer.on('data', (chunk) => {
      received += chunk.length
    })
    await until('the first half has arrived', () => received > part.length / 2)
    response?.end(part)
    await once(answer, 'end')
    assert.equal(received, 2 * part.length)
  })
})

describe('a WebSocket', () => {
  it('a WebSocket echoes', async () => {
    const socket = tls.socket(host, '/', authorized())
    await once(socket, 'open')
    socket.send('hello')
    const [data] = await once(socket, 'message')
    assert.equal(`${data}`, 'hello')
    socket.close()
    await once(socket, 'close')
  })
})

describe('an upload', () => {
  it('an upload reaches a page before it is complete', async () => {
    let first = ''
    serve = (req, res) => {
      req.once('data', (chunk) => {
        first = `${chunk}`
      })
      req.once('end', () => res.end('done'))
    }
    const sent = tls.open(SITE, '/', { method: 'POST' })
    const answered = once(sent, 'response')
    sent.write('first')
    await until('the first bytes have arrived', () => first === 'first')
    sent.end('last')
    const [answer] = await answered
    assert.equal(answer.statusCode, 200)
    answer.resume()
  })

  it(`an upload of ${UPLOAD_MB} MB is stored by Berth, without filling Caddy's memory`, async (t) => {
    const form = Buffer.from(encodeForm([['network', 'public'], file('CONTENT', 'large.bin')]))
    const at = form.indexOf('CONTENT')
    const chunk = Buffer.alloc(MB)
    const sent = tls.open(API, '/v3/files', {
      method: 'POST',
      headers: { authorization: `Bearer ${tls.key}`, 'content-type': CONTENT_TYPE },
    })
    const answered = once(sent, 'response')
    sent.write(form.subarray(0, at))
    const start = performance.now()
    for (let i = 0; i < UPLOAD_MB; i++) {
      // Makes each block different.
      chunk.writeUInt32BE(i)
      if (!sent.write(Buffer.from(chunk))) await once(sent, 'drain')
    }
    sent.end(form.subarray(at + 'CONTENT'.length))
    const [answer] = (await answered) as [IncomingMessage]
    const chunks: Buffer[] = []
    for await (const part of answer) chunks.push(part)
    assert.equal(answer.statusCode, 200, `${Buffer.concat(chunks)}`)
    assert.equal(JSON.parse(`${Buffer.concat(chunks)}`).data.size, UPLOAD_MB * MB)
    const peak = (await tls.caddy.peakBytes()) / MB
    const seconds = (performance.now() - start) / 1000
    t.diagnostic(`${UPLOAD_MB} MB in ${seconds.toFixed(1)} s; Caddy had ${peak.toFixed(0)} MB at most`)
    assert.ok(peak < 160, `${peak} MB`)
  })
})

describe('git', () => {
  it('git clones a repository', async () => {
    const root = await mkdtemp(join(tmpdir(), 'berth-git-'))
    const git = async (cwd: string, ...args: string[]) => {
      const env = {
        PATH: process.env.PATH,
        HOME: root,
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_TERMINAL_PROMPT: '0',
        GIT_SSL_CAINFO: join(root, 'ca.pem'),
        GIT_AUTHOR_NAME: 'Owner',
        GIT_AUTHOR_EMAIL: 'owner@example.org',
        GIT_COMMITTER_NAME: 'Owner',
        GIT_COMMITTER_EMAIL: 'owner@example.org',
      }
      return (await promisify(execFile)('git', args, { cwd, env })).stdout.trim()
    }
    await writeFile(join(root, 'ca.pem'), tls.caddy.ca)
    // Where agentd keeps it.
    const bare = join(root, 'v1/git')
    await mkdir(bare, { recursive: true })
    await git(bare, 'init', '--quiet', '--bare', '--initial-branch=main')
    const backend = await startGitBackend(root)
    const repository = { head: null, dirty: false, pushed: null }
    const agentd = createServer((req, res) => {
      if (req.url === '/v1/repository') return void res.end(JSON.stringify(repository))
      const { method, headers } = req
      const passed = request(`${backend.url}${req.url}`, { method, headers }, (answer) => {
        res.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(res)
      })
      req.pipe(passed)
    }).listen(0, '127.0.0.1')
    await once(agentd, 'listening')
    try {
      const seed = join(root, 'seed')
      await git(root, 'init', '--quiet', '--initial-branch=main', seed)
      await writeFile(join(seed, 'a.txt'), 'a')
      // Larger than git sends in one piece.
      await writeFile(join(seed, 'b.bin'), randomBytes(4 * MB))
      await git(seed, 'add', '--all')
      await git(seed, 'commit', '--quiet', '--message', 'first')
      await git(seed, 'push', '--quiet', bare, 'main')
      const other = await tls.world.agent()
      await other.set('address', `127.0.0.1:${(agentd.address() as AddressInfo).port}`)
      const url = `https://x:${other.token}@${API}:${tls.ports.https}/v0/agents/${other.agentId}/git`
      const resolve = ['-c', `http.curloptResolve=${API}:${tls.ports.https}:127.0.0.1`]
      const clone = join(root, 'clone')
      await git(root, ...resolve, 'clone', '--quiet', url, clone)
      assert.equal(await readFile(join(clone, 'a.txt'), 'utf8'), 'a')
      assert.equal(await git(clone, 'rev-parse', 'HEAD'), await git(seed, 'rev-parse', 'HEAD'))
    } finally {
      agentd.closeAllConnections()
      agentd.close()
      await backend.close()
      await rm(root, { recursive: true, force: true })
    }
  })
})

describe('request headers', () => {
  const LIES = {
    'x-forwarded-for': '203.0.113.7',
    'x-forwarded-host': `nobody.${APPS}`,
    'x-forwarded-proto': 'http',
    'x-forwarded-port': '1',
    forwarded: 'for=203.0.113.7;host=evil.example;proto=http',
    'x-real-ip': '203.0.113.7',
    'x-forwarded-prefix': '/evil',
  }

  it('request headers name the client and the requested host, whatever the client claims', async () => {
    for (const lies of [{}, LIES]) {
      const { body } = await tls.ask(SITE, '/', { headers: lies, localAddress: '127.0.0.5' })
      const said = Object.entries(body).filter(([name]) => /forwarded|real-ip|^host$/.test(name))
      assert.deepEqual(Object.fromEntries(said), {
        host: `${SITE}:${tls.ports.https}`,
        'x-forwarded-for': '127.0.0.5',
        'x-forwarded-host': `${SITE}:${tls.ports.https}`,
        'x-forwarded-proto': 'https',
      })
    }
  })

  it('request headers of a neighbor that bypasses Caddy are not trusted', async () => {
    const port = Number(new URL(tls.world.url).port)
    const { body } = await tls.plain(port, '/', { ...LIES, host: SITE }, '127.0.0.9')
    assert.equal(body['x-forwarded-for'], '127.0.0.9')
    assert.equal(body['x-forwarded-host'], SITE)
    const { status } = await tls.plain(
      port,
      '/',
      { host: `nobody.${APPS}`, 'x-forwarded-host': SITE },
      '127.0.0.9',
    )
    assert.equal(status, 404)
  })
})

describe('response headers', () => {
  it('response headers pass through unchanged, each once', async () => {
    const port = Number(new URL(tls.world.url).port)
    const changing = [
      'x-request-id',
      'date',
      'connection',
      'keep-alive',
      'transfer-encoding',
      'server',
      'via',
    ]
    const names = (raw: string[]) =>
      raw
        .filter((_, i) => i % 2 === 0)
        .map((name) => name.toLowerCase())
        .filter((name) => !changing.includes(name))
        .sort()
    const through = await tls.ask(API, '/healthz')
    const direct = await tls.plain(port, '/healthz', { host: API })
    assert.deepEqual(names(through.rawHeaders), names(direct.rawHeaders))
    for (const name of ['strict-transport-security', 'content-security-policy', 'x-content-type-options'])
      assert.equal(through.headers[name], direct.headers[name])
    assert.ok(through.headers['strict-transport-security'])
  })
})
