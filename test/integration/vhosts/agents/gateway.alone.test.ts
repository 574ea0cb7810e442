/** HTTP to an agent's gateway: what is forwarded, what comes back, and how it ends. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, beforeEach, describe, it } from 'node:test'
import { until } from '../../../support/processes.ts'
import { startWorld, type TestAgent, type World } from './world.ts'

let world: World
let agent: TestAgent
/** Handles the next request in place of the gateway. */
let gateway: (req: IncomingMessage, res: ServerResponse) => void
before(async () => {
  world = await startWorld()
  agent = await world.agent((req, res) => gateway(req, res))
})
after(() => world?.stop())
beforeEach(() => {
  gateway = (_req, res) => res.end()
})

const COMPLETIONS = '/v1/chat/completions'

describe('a request', () => {
  it('a request is forwarded with its body, without credentials and the client’s addresses', async () => {
    gateway = async (req, res) => {
      const { method, url, headers } = req
      res.setHeader('content-type', 'application/json')
      res.end(JSON.stringify({ method, url, headers, body: await text(req) }))
    }
    const { status, body } = await agent.stranger.post(
      `${COMPLETIONS}?token=${agent.token}&a=1`,
      { model: 'openclaw/default' },
      {
        cookie: `gw_token=${agent.token}`,
        origin: 'http://elsewhere.example',
        'x-forwarded-for': '192.0.2.1',
        'x-openclaw-session-key': 'k',
      },
    )
    assert.equal(status, 200)
    assert.deepEqual([body.method, body.url], ['POST', `${COMPLETIONS}?a=1`])
    assert.equal(body.body, '{"model":"openclaw/default"}')
    assert.equal(body.headers.authorization, "Bearer the gateway's own")
    assert.equal(body.headers['x-openclaw-session-key'], 'k')
    for (const name of ['cookie', 'origin', 'x-forwarded-for'])
      assert.equal(body.headers[name], undefined, name)
    assert.ok(!JSON.stringify(body).includes(agent.token))
  })
  it('a request reaches only allowed paths', async () => {
    gateway = (req, res) => void res.end(`${req.method} ${req.url}`)
    const cases: [method: string, path: string, expected: string][] = [
      ['GET', '/', 'GET /health'],
      ['GET', '/chat', 'GET /health'],
      ['GET', '/v1/models', 'GET /v1/models'],
      ['GET', '/v1/models/openclaw/default', 'GET /v1/models/openclaw/default'],
      ['POST', '/v1/responses', 'POST /v1/responses'],
      ['POST', '/hooks/agent', 'POST /hooks/agent'],
      ['POST', '/hooks/my/mail-box?x=1', 'POST /hooks/my/mail-box?x=1'],
    ]
    for (const [method, path, expected] of cases)
      assert.equal((await agent.host.ask(method, path)).text, expected)
  })
  it('a request with an unexpected body is answered without it', {
    timeout: 120_000,
  }, async () => {
    gateway = async (req, res) => res.end(`${req.headers['content-length']} ${await text(req)}`)
    const { status, text: seen } = await agent.host.ask('GET', '/v1/models', {
      headers: { 'content-length': '2' },
      json: 12,
    })
    assert.deepEqual([status, seen], [200, 'undefined '])
  })
  it('a request with a large body is forwarded', async () => {
    gateway = async (req, res) => res.end(String((await text(req)).length))
    const { text: length } = await agent.host.post(COMPLETIONS, 'x'.repeat(5_000_000))
    assert.equal(length, '5000002')
  })
})

describe('a response', () => {
  it('a response keeps status and type, and sets no cookies', async () => {
    gateway = (_req, res) => {
      res.writeHead(402, {
        'content-type': 'text/html',
        'set-cookie': ['gw_token=x; Domain=agents.localhost', 'a=b'],
        'content-security-policy': 'script-src *',
        'clear-site-data': '"*"',
        location: 'http://evil.example',
        'retry-after': '7',
      })
      res.end('<script>')
    }
    const { status, headers, text: body } = await agent.host.post(COMPLETIONS, {})
    assert.deepEqual(
      [status, headers['content-type'], headers['retry-after'], body],
      [402, 'text/html', '7', '<script>'],
    )
    for (const name of ['set-cookie', 'clear-site-data', 'location'])
      assert.equal(headers[name], undefined, name)
    assert.equal(headers['content-security-policy'], "sandbox; default-src 'none'; frame-ancestors 'none'")
    assert.equal(headers['x-content-type-options'], 'nosniff')
  })
  it('a response with a gateway error is passed on, even if it looks like our own', async () => {
    gateway = (_req, res) => res.writeHead(400).end('{"error":{"message":"no such model","type":"x"}}')
    const { status, text: body } = await agent.host.post(COMPLETIONS, {})
    assert.deepEqual([status, body], [400, '{"error":{"message":"no such model","type":"x"}}'])
  })
  it('a response is streamed as it arrives', async () => {
    let write: (text: string) => void = () => {}
    gateway = (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.flushHeaders()
      write = (event) => res.write(event)
    }
    const response = await agent.host.stream('POST', COMPLETIONS, { json: {} })
    assert.equal(response.headers['content-type'], 'text/event-stream')
    const events = response[Symbol.asyncIterator]()
    for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
      write(event)
      assert.equal(String((await events.next()).value), event)
    }
    response.destroy()
  })
  it('a response ends at once when the token is rotated', async () => {
    const own = await world.agent((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('data: 1\n\n')
    })
    const streaming = await own.host.stream('POST', COMPLETIONS, { json: {} })
    const silent = await world.agent(() => {})
    const waiting = silent.host.post(COMPLETIONS, {})
    await until('both are in progress', async () => /berth_agent_connections 2/.test(await metrics()))
    await Promise.all([own.rotate(), silent.rotate()])
    await assert.rejects(text(streaming), /aborted/)
    assert.equal((await waiting).status, 401)
    await until('neither is kept', async () => /berth_agent_connections 0/.test(await metrics()))
  })
})

const metrics = () => world.metrics()

describe('an agent that is not ready', () => {
  it('an agent that is not ready returns 503 with Retry-After', async () => {
    const cases: [why: string, change: (agent: TestAgent) => unknown][] = [
      ['agentd says so', (agent) => agent.setGateway('starting')],
      ['it comes up', (agent) => agent.set('status', 'starting')],
      ['it does not run', (agent) => agent.set('status', 'not_running')],
      ['it has no address', (agent) => agent.set('address', null)],
      ['nobody is there', (agent) => agent.set('address', '127.0.0.1:1')],
    ]
    for (const [why, change] of cases) {
      const own = await world.agent()
      await change(own)
      const { status, headers, body } = await own.host.post(COMPLETIONS, {})
      if (why === 'something else is there') assert.equal(status, 400, why)
      else
        assert.deepEqual([why, status, headers['retry-after'], typeof body.error], [why, 503, '5', 'string'])
    }
  })
  it('an agent whose gateway returns an invalid HTTP status gets 502', async (t) => {
    const own = await world.agent()
    const odd = createServer((socket) => socket.end('HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nok'))
    t.after(() => void odd.close())
    odd.listen(0, '127.0.0.1')
    await once(odd, 'listening')
    await own.set('address', `127.0.0.1:${(odd.address() as AddressInfo).port}`)
    assert.equal((await own.host.post(COMPLETIONS, {})).status, 502)
  })
  it('an agent whose gateway is not an HTTP server gets 502', async () => {
    const own = await world.agent((req) => req.socket.end('garbage\r\n\r\n'))
    const { status, body } = await own.host.post(COMPLETIONS, {})
    assert.ok(status === 500 || status === 502, String(status))
    assert.equal(typeof body.error, 'string')
  })
})

describe('the OpenAI URL', () => {
  const base = (agent: TestAgent) => `/v0/agents/${agent.agentId}/openai`
  const ask = (path: string, { token, ...init }: RequestInit & { token?: string } = {}) =>
    fetch(`${world.url}${path}`, {
      ...init,
      headers: { ...(token && { authorization: `Bearer ${token}` }), ...init.headers },
    })
  const chat = (token: string, json: object, path = base(agent)) =>
    ask(`${path}${COMPLETIONS}`, { method: 'POST', token, body: JSON.stringify(json) })

  it('the OpenAI URL offers the same as /v1 on the agent’s own host [report: unresolvable hosts]', async () => {
    gateway = async (req, res) => res.end(`${req.method} ${req.url} ${await text(req)}`)
    const cases: [method: string, path: string, expected?: string][] = [
      ['GET', '/v1/models'],
      ['GET', '/v1/models/openclaw/default'],
      ['GET', '/v1/models/openclaw%2Fdefault', '/v1/models/openclaw/default'],
      ['POST', COMPLETIONS],
      ['POST', '/v1/responses'],
    ]
    for (const [method, path, expected = path] of cases) {
      const body = method === 'POST' ? '{"a":1}' : ''
      const answer = await ask(base(agent) + path, { method, token: agent.token, ...(body && { body }) })
      assert.equal(await answer.text(), `${method} ${expected} ${body}`)
    }
    const head = await ask(`${base(agent)}/v1/models`, { method: 'HEAD', token: agent.token })
    assert.equal(head.status, 200)
  })
  it('the OpenAI URL reaches nothing else in the gateway [report: unresolvable hosts]', async () => {
    gateway = (_req, res) => res.end('reached')
    for (const path of ['', '/v1', '/health', '/hooks/agent', '/tools/invoke', '/v1/../health', '/v1/chat'])
      assert.equal((await ask(base(agent) + path, { token: agent.token })).status, 404, path)
    for (const path of ['/v1/models/..%2F..%2Fhealth', '/v1/models/a//b', '/v1/models/a%3Fb'])
      assert.equal((await ask(base(agent) + path, { token: agent.token })).status, 400, path)
    assert.equal((await ask(base(agent) + COMPLETIONS, { token: agent.token })).status, 405)
  })
  it('the OpenAI URL streams responses that no browser displays [report: unresolvable hosts]', async () => {
    let write: (text: string) => void = () => {}
    gateway = (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream', 'set-cookie': 'a=b' })
      res.flushHeaders()
      write = (event) => res.write(event)
    }
    const { headers, body } = await chat(agent.token, { stream: true })
    assert.equal(headers.get('content-type'), 'text/event-stream')
    assert.match(headers.get('content-security-policy') ?? '', /^sandbox;/)
    assert.deepEqual([headers.get('x-content-type-options'), headers.get('set-cookie')], ['nosniff', null])
    const events = body?.pipeThrough(new TextDecoderStream()).getReader()
    for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
      write(event)
      assert.equal((await events?.read())?.value, event)
    }
    await events?.cancel()
  })
  it('the OpenAI URL ends a response when the token is rotated [report: unresolvable hosts]', async () => {
    const own = await world.agent((_req, res) => void res.write('data: 1\n\n'))
    const { body } = await chat(own.token, {}, base(own))
    const { token } = await world.key()
    const byKey = await chat(token, {}, base(own))
    await own.rotate()
    await assert.rejects(text(body as never), /terminated/)
    await assert.rejects(byKey.text(), /terminated/)
    assert.equal((await chat(own.token, {}, base(own))).status, 401)
  })
})
