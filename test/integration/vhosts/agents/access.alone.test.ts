/** Access to an agent's own host. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { AgentHost } from '../../../support/agent-host.ts'
import { until } from '../../../support/processes.ts'
import { startWorld, type TestAgent, type World } from './world.ts'

let world: World
let agent: TestAgent
let other: TestAgent
before(async () => {
  world = await startWorld()
  agent = await world.agent((_req, res) => res.end('{"ok":true}'))
  other = await world.agent()
})
after(() => world?.stop())

const NAVIGATION = { 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'none', accept: 'text/html' }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

describe('a host', () => {
  it('a host without an agent returns 404, with and without a token', async () => {
    for (const id of ['xzzzzzzz', 'nobody', 'a.b', `a.${agent.agentId}`, `${agent.agentId}x`]) {
      for (const token of [undefined, agent.token]) {
        const { status, body } = await new AgentHost(world.url, id, token).get('/v0/status')
        assert.deepEqual([id, status, body], [id, 404, { error: 'There is no such agent' }])
      }
    }
  })
  it('the host of a deleted agent returns 404', async () => {
    const gone = await world.agent()
    await gone.set('deleted_at', new Date())
    assert.equal((await gone.host.get('/')).status, 404)
  })
  it("a request without a token returns 401 on an agent's host, whatever its path", async () => {
    for (const path of [
      '/',
      '/chat',
      '/v1/models',
      '/v0/logs',
      '/nowhere',
      '/v0/agents',
      '/api/v1/admin/rpc',
    ]) {
      const { status, body } = await agent.stranger.get(path)
      assert.equal(status, 401, path)
      assert.equal(typeof body.error, 'string')
    }
  })
})

describe('a token', () => {
  it('a token is accepted in a header, in the query and in a cookie', async () => {
    const cases: [path: string, headers: Record<string, string>][] = [
      ['/v0/logs', bearer(agent.token)],
      [`/v0/logs?token=${agent.token}`, {}],
      ['/v0/logs', { cookie: `a=b; gw_token=${agent.token}; c=d` }],
      ['/', bearer(agent.token)],
      [`/?token=${agent.token}`, {}],
      ['/', { cookie: `gw_token=${agent.token}` }],
    ]
    for (const [path, headers] of cases) {
      assert.equal((await agent.stranger.get(path, headers)).status, 200, path)
    }
  })
  it('a token of another agent, or a wrong one, is rejected', async () => {
    for (const token of [other.token, randomUUID(), 'nonsense', '']) {
      for (const path of ['/v0/logs', '/']) {
        assert.equal((await agent.stranger.get(path, bearer(token))).status, 401, `${path} ${token}`)
        assert.equal((await agent.stranger.get(`${path}?token=${token}`)).status, 401, `${path} ${token}`)
        const inCookie = await agent.stranger.get(path, { cookie: `gw_token=${token}` })
        assert.equal(inCookie.status, 401, `${path} ${token}`)
      }
    }
  })
  it('a rotated token is refused at once', async () => {
    const rotated = await world.agent()
    const old = rotated.token
    const token = await rotated.rotate()
    assert.equal((await rotated.stranger.get('/v0/logs', bearer(old))).status, 401)
    assert.equal((await rotated.stranger.get('/v0/logs', bearer(token))).status, 200)
  })
  it('the owner’s token is accepted only in the header', async () => {
    const { token } = await world.key()
    assert.equal((await agent.stranger.get('/', bearer(token))).status, 200)
    assert.equal((await agent.stranger.get('/v0/logs', bearer(token))).status, 200)
    assert.equal((await agent.stranger.get(`/?token=${token}`)).status, 401)
    assert.equal((await agent.stranger.get('/', { cookie: `gw_token=${token}` })).status, 401)
  })
  it('a token of another workspace returns 401, and one without the scope 403', async () => {
    const foreign = await world.key({ elsewhere: true })
    const reader = await world.key({ scopes: ['org:agents:read'] })
    assert.equal((await agent.stranger.get('/', bearer(foreign.token))).status, 401)
    assert.equal((await agent.stranger.get('/', bearer(reader.token))).status, 403)
    assert.equal((await agent.stranger.get('/v0/logs', bearer(reader.token))).status, 200)
  })
  it('a token that the agent minted is accepted on its own host', async () => {
    const { status, body } = await agent.host.post('/v0/platform/token', undefined)
    assert.equal(status, 200)
    assert.equal((await agent.stranger.get('/', bearer(body.token))).status, 200)
    assert.equal((await other.stranger.get('/', bearer(body.token))).status, 401)
  })
  it('a token never appears in the log', async () => {
    await until('requests are logged', () => world.lines.some((line) => line.includes('token=…')))
    for (const { token } of [agent, other]) assert.ok(!world.lines.join('').includes(token))
  })
})

describe('the API on an agent’s host', () => {
  it('the API on an agent’s host is available by full and by short paths', async () => {
    const full = await agent.host.get(`/v0/agents/${agent.agentId}/platform/whoami`)
    const short = await agent.host.get('/v0/platform/whoami')
    assert.equal(full.status, 200, full.text)
    assert.deepEqual(short.body, full.body)
    assert.equal((await agent.host.get(`/v0/agents/${agent.agentId}`)).status, 200)
  })
  it('the API on an agent’s host forwards query and body', async () => {
    const { status, text } = await agent.host.post('/v0/console/exec?a=b', { command: '' })
    assert.deepEqual([status, text], [400, '{"error":"Invalid command"}'])
  })
  it('the API on an agent’s host knows no other agent', async () => {
    const paths = [
      other.agentId,
      `${other.agentId}/status`,
      `x%${agent.agentId.charCodeAt(1).toString(16)}`,
      '..',
    ]
    for (const path of paths) assert.equal((await agent.host.get(`/v0/agents/${path}`)).status, 401, path)
    const { token } = await world.key()
    const owner = new AgentHost(world.url, agent.agentId, token)
    assert.equal((await owner.get(`/v0/agents/${other.agentId}`)).status, 401)
  })
  it('the API on an agent’s host offers nothing of the workspace', async () => {
    const { token } = await world.key()
    const owner = new AgentHost(world.url, agent.agentId, token)
    const paths = [
      '/v0/agents',
      '/v0/templates',
      '/v3/files/public',
      '/docs',
      '/openapi.json',
      '/metrics',
      '/healthz',
    ]
    for (const path of paths) assert.equal((await owner.get(path)).status, 404, path)
  })
})

describe('the gateway on an agent’s host', () => {
  it('the gateway on an agent’s host exposes only allowed paths', async () => {
    const paths = [
      '/api/v1/admin/rpc',
      '/tools/invoke',
      '/v1',
      '/v1/models/../../api',
      '/v1/models/%2e%2e/x',
      '/hooks/',
    ]
    for (const path of [
      ...paths,
      '/hooks/../v1/exec',
      '/hooks/a%2f..%2fb',
      '//v1/models',
      '/chat/x',
      '/healthz',
    ])
      for (const method of ['GET', 'POST'])
        assert.equal((await agent.host.ask(method, path)).status, 404, `${method} ${path}`)
    assert.equal((await agent.host.post('/', {})).status, 404)
    assert.equal((await agent.host.ask('DELETE', '/v1/models')).status, 404)
  })
})

describe('a page with the token in its address', () => {
  it('a page with the token in its URL redirects without it and sets a cookie for this host', async () => {
    const { status, headers } = await agent.stranger.get(`/chat?a=1&token=${agent.token}&b=%20`, NAVIGATION)
    assert.deepEqual([status, headers.location], [303, '/chat?a=1&b=%20'])
    const cookie = `gw_token=${agent.token}; Path=/; HttpOnly; SameSite=Strict`
    assert.deepEqual(headers['set-cookie'], [cookie])
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['referrer-policy'], 'no-referrer')
  })
  it('a page with the token in its URL redirects by script if another site linked to it', async () => {
    const headers = { ...NAVIGATION, 'sec-fetch-site': 'cross-site' }
    const answer = await agent.stranger.get(`/v0/platform/whoami?token=${agent.token}`, headers)
    assert.deepEqual(
      [answer.status, answer.headers.refresh, answer.text],
      [200, '0; url=/v0/platform/whoami', ''],
    )
    assert.ok(answer.headers['set-cookie'])
  })
  it('a page with the token in its URL never redirects to another host', async () => {
    for (const path of ['//evil.example/', '/\\evil.example', '///evil.example']) {
      const { headers } = await agent.stranger.get(`${path}?token=${agent.token}`, NAVIGATION)
      assert.match(headers.location ?? '', /^\/evil\.example/)
    }
  })
  it('a page with the token in its URL sets no cookie for a wrong token', async () => {
    const { status, headers } = await agent.stranger.get(`/?token=${other.token}`, NAVIGATION)
    assert.deepEqual([status, headers['set-cookie']], [401, undefined])
  })
  it('a page with the token in its URL sets a Secure cookie if Berth is reached by https', async () => {
    const secure = await startWorld({ PUBLIC_URL: 'https://berth.example' })
    try {
      const { stranger, token } = await secure.agent()
      const { headers } = await stranger.get(`/?token=${token}`, NAVIGATION)
      assert.match(headers['set-cookie']?.[0] ?? '', /; Secure/)
    } finally {
      await secure.stop()
    }
  })
})

describe('a cookie', () => {
  const change = (headers: Record<string, string>) =>
    agent.stranger.post(
      '/v0/console/exec',
      { command: '' },
      { cookie: `gw_token=${agent.token}`, ...headers },
    )

  it('a cookie may change something from a page of this host', async () => {
    const own: Record<string, string>[] = [
      { 'sec-fetch-site': 'same-origin' },
      { origin: `http://${agent.host.host}` },
      { origin: `http://${agent.host.host}`, 'sec-fetch-site': 'same-origin' },
    ]
    for (const headers of own) assert.equal((await change(headers)).status, 400, JSON.stringify(headers))
  })
  it('a cookie may change nothing from a page of another host', async () => {
    const foreign: Record<string, string>[] = [
      {},
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site', origin: `http://${agent.host.host}` },
      { 'sec-fetch-site': 'none' },
      { origin: 'null' },
      { origin: `http://${other.host.host}` },
      { origin: 'http://agents.localhost' },
    ]
    for (const headers of foreign) assert.equal((await change(headers)).status, 403, JSON.stringify(headers))
  })
  it('a cookie is ignored if there is a header', async () => {
    const { status } = await change({ ...bearer(agent.token) })
    assert.equal(status, 400)
    assert.equal((await change(bearer('wrong'))).status, 401)
  })
})
