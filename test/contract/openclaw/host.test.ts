/** An agent's own host: credentials, short routes, and what it does not serve (contract 5.4). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AgentHost } from '../../support/agent-host.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { patientHost, sharedAgent, whenReady } from './context.ts'

const context = await openContext()
const agent = await sharedAgent(context)
const { agentId, record, path, api } = agent
const token: string = record.gatewayToken
const host = patientHost(context.url, agent)
const stranger = new AgentHost(context.url, agentId)
const bearer = (value: string) => ({ authorization: `Bearer ${value}` })

describe("an agent's host", () => {
  it("an agent's host returns the health of its gateway", async () => {
    for (const page of ['/', '/chat']) {
      const { status, body } = await host.get(page)
      assert.deepEqual([status, body], [200, { ok: true, status: 'live' }])
    }
  })
  it("an agent's host returns 401 without a token, and for another workspace's key", async () => {
    const { status, headers, body } = await stranger.get('/')
    assert.deepEqual([status, headers['content-type']], [401, 'application/json; charset=utf-8'])
    assert.equal(typeof body.error, 'string')
    const foreign = (await context.workspace()).api.key ?? ''
    assert.equal((await stranger.get('/', bearer(foreign))).status, 401)
    assert.equal((await stranger.get('/v0/status', bearer(foreign))).status, 401)
  })
  it('the host of an unknown agent returns 404', async () => {
    const { status, body } = await new AgentHost(context.url, 'xzzzzzzz', token).get('/')
    assert.deepEqual([status, body], [404, { error: 'There is no such agent' }])
  })
  it("an agent's host accepts the agent's platform token, and its owner's key", async () => {
    const minted = await host.post('/v0/platform/token', undefined)
    assert.equal(minted.status, 200, minted.text)
    for (const key of [minted.body.token, api.key ?? ''])
      assert.equal((await stranger.get('/v0/platform/whoami', bearer(key))).status, 200)
  })
  it("an agent's host has the agent's routes in long and short form", async () => {
    const routes = ['status', 'platform/whoami', 'secrets', 'channels', 'config', 'logs']
    for (const route of routes) {
      const [full, short] = [await host.get(`${path}/${route}`), await host.get(`/v0/${route}`)]
      assert.deepEqual([route, full.status, short.status], [route, 200, 200], short.text)
      assert.deepEqual(Object.keys(short.body).sort(), Object.keys(full.body).sort(), route)
    }
    const executed = await host.post('/v0/console/exec', { command: 'echo $((6 * 7))' })
    assert.deepEqual([executed.status, executed.body.stdout], [200, '42\n'])
  })
  it("an agent's host serves neither other agents nor internal engine routes", async () => {
    assert.equal((await host.get('/v0/agents/xzzzzzzz')).status, 401)
    for (const hidden of ['/api/v1/admin/rpc', '/tools/invoke', '/v0/agents', '/docs', '/healthz'])
      for (const method of ['GET', 'POST'])
        assert.equal((await host.ask(method, hidden)).status, 404, `${method} ${hidden}`)
  })
})

describe('?token=', () => {
  it('?token= on a page becomes a cookie, which opens the page', async () => {
    const page = await stranger.get(`/?token=${token}`, { accept: 'text/html', 'sec-fetch-mode': 'navigate' })
    assert.deepEqual([page.status, page.headers.location], [303, '/'])
    const [cookie = ''] = page.headers['set-cookie'] ?? []
    assert.match(cookie, /; HttpOnly; SameSite=Strict/)
    const shown = await whenReady(() => stranger.get('/', { cookie: cookie.split(';')[0] ?? '' }))
    assert.equal(shown.status, 200)
  })
  it('?token= works directly for programs', async () => {
    assert.equal((await stranger.get(`/v0/status?token=${token}`)).status, 200)
    assert.equal((await whenReady(() => stranger.get(`/v1/models?token=${token}`))).status, 200)
    const socket = stranger.socket(`/v0/logs?token=${token}`)
    await socket.opened
    socket.raw.close()
  })
})

describe('cookies', () => {
  it('a cookie allows writes only from a page of the same host', async () => {
    const cookie = `gw_token=${token}`
    const write = (headers: Record<string, string>) =>
      stranger.post('/v0/console/exec', { command: 'true' }, { cookie, ...headers })
    assert.equal((await write({ origin: `http://${host.host}` })).status, 200)
    assert.equal((await write({ origin: 'http://evil.example' })).status, 403)
    assert.equal((await write({})).status, 403)
    assert.equal((await stranger.get('/v0/status', { cookie })).status, 200)
  })
})

describe('agent logs', () => {
  it('the log of an agent is returned as one text', async () => {
    const { status, body } = await api.get(`${path}/logs`)
    assert.equal(status, 200)
    // The engine's messages may contain line breaks.
    const lines = body.logs.split('\n').filter((text: string) => /^\d{4}-\d\d-\d\dT/.test(text))
    assert.ok(lines.length > 1 && lines.length <= 100, `${lines.length} lines`)
    for (const line of lines) assert.match(line, /^\S+ (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) \S+ /)
    assert.ok(!body.logs.includes(token), 'the token is not in the log')
  })
  it('the log of an agent is streamed to a WebSocket, line by line', async () => {
    const log = host.socket('/v0/logs')
    await log.opened
    await until('the last lines have arrived', () => log.messages.length > 0)
    for (const line of log.messages)
      assert.deepEqual(Object.keys(line).sort(), ['level', 'message', 'source', 'timestamp'])
    log.raw.close()
  })
})
