/** WebSockets of pages, path routes, and hosts that belong to no agent, with a program of an agent. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AgentHost } from '../../../support/agent-host.ts'
import { until } from '../../../support/processes.ts'
import { agent, domain, isThere, known, port, serve, setRoutes, world } from './site.ts'

const NAVIGATION = { 'sec-fetch-mode': 'navigate', accept: 'text/html' }

describe('a WebSocket of a page', () => {
  it('a WebSocket of a page forwards messages both ways', async () => {
    const page = await domain()
    await isThere(page)
    const socket = page.host.socket('/live?x=1', { origin: 'https://elsewhere.example' })
    await socket.opened
    const long = { text: 'x'.repeat(3_000_000) }
    for (const message of [{ a: 1 }, long]) socket.send(message)
    await until('both came back', () => socket.messages.length === 2)
    assert.deepEqual(socket.messages, [{ a: 1 }, long])
    socket.raw.close(4000, 'bye')
    assert.deepEqual(await socket.closed, { code: 4000, reason: 'bye' })
  })
  it('a WebSocket of a page ends when its domain moves or ends, or its agent is deleted', async () => {
    const own = await world.agent()
    const changes = [
      'DELETE FROM domain WHERE id = $1',
      'UPDATE domain SET target_port = 2000 WHERE id = $1',
      'UPDATE domain SET protected = true WHERE id = $1',
      'UPDATE agent SET deleted_at = now() WHERE id = (SELECT agent_id FROM domain WHERE id = $1)',
    ]
    const left = await domain()
    await isThere(left)
    const other = left.host.socket('/')
    await other.opened
    for (const change of changes) {
      const page = await domain({ of: own })
      await isThere(page)
      const socket = page.host.socket('/')
      await socket.opened
      await world.pool.query(change, [page.id])
      await world.pool.query(`SELECT pg_notify('berth_agent', $1)`, [own.agentId])
      assert.equal((await socket.closed).code, 1008, change)
    }
    other.send({ still: 'open' })
    await until('it is', () => other.messages.length === 1)
    other.raw.close()
  })
})

describe('a path route', () => {
  const atApps = () => new AgentHost(world.url, agent.agentId, undefined, 'apps.localhost')

  it('the path route with the longest matching prefix gets the path without it, on both hosts', async () => {
    await setRoutes(['/app', port], ['/app/deep', port], ['/hooks', port])
    await known(async () => (await agent.stranger.get('/app')).status === 200)
    for (const host of [agent.stranger, atApps()])
      for (const [path, url, prefix] of [
        ['/app', '/', '/app'],
        ['/app?x', '/?x', '/app'],
        ['/app/', '/', '/app'],
        ['/app/a%2Fb?x=1', '/a%2Fb?x=1', '/app'],
        ['/app/deep/x', '/x', '/app/deep'],
        ['/app/deeper', '/deeper', '/app'],
        ['/hooks/mine', '/mine', '/hooks'],
      ] as const) {
        const { status, body } = await host.get(path)
        assert.deepEqual(
          [path, status, body?.url, body?.headers['x-forwarded-prefix']],
          [path, 200, url, prefix],
        )
      }
    assert.equal((await agent.stranger.get('/apple')).status, 401)
    assert.deepEqual((await atApps().get('/apple')).body, { error: 'There is nothing at this path' })
  })
  it('a path route to everything leaves Berth’s own paths to Berth', async () => {
    await setRoutes(['/', port])
    await known(async () => (await agent.stranger.get('/x')).status === 200)
    const { body } = await agent.stranger.get('/')
    assert.deepEqual([body.url, body.headers['x-forwarded-prefix']], ['/', undefined])
    for (const path of ['/v0/status', '/v0/nothing', '/chat', '/config/x', '/v1/models'])
      assert.equal((await agent.stranger.get(path)).status, 401, path)
    assert.equal(await agent.stranger.socket('/', { authorization: 'Bearer wrong' }).refused(), 401)
    const live = agent.stranger.socket('/live')
    await live.opened
    live.raw.close()
    assert.equal((await atApps().get('/v0/status')).body.url, '/v0/status')
  })
  it('a path route serves browsers on a separate host and never reaches the API', async () => {
    await setRoutes(['/app', port], ['/safe', port, true])
    await known(async () => (await agent.stranger.get('/app')).status === 200)
    for (const path of ['/app/x?y=1', `/safe?token=${agent.token}`]) {
      const { status, headers } = await agent.stranger.get(path, NAVIGATION)
      const to = `http://${agent.agentId}.apps.localhost:${new URL(world.url).port}${path}`
      assert.deepEqual([status, headers.location], [307, to])
    }
    serve((req, res) => {
      const policy = { 'content-security-policy': "default-src 'self'", 'set-cookie': 'a=1' }
      res.writeHead(200, { ...policy, 'clear-site-data': '"*"', 'strict-transport-security': 'max-age=1' })
      res.end(JSON.stringify(req.headers))
    })
    const { headers, text: seen } = await agent.host.get('/app', { cookie: `a=b; gw_token=${agent.token}` })
    assert.match(String(headers['content-security-policy']), /^default-src 'self', sandbox allow-scripts /)
    assert.doesNotMatch(String(headers['content-security-policy']), /allow-same-origin/)
    for (const name of ['set-cookie', 'clear-site-data', 'strict-transport-security'])
      assert.equal(headers[name], undefined, name)
    assert.doesNotMatch(seen, /authorization|cookie/)
    assert.ok(!seen.includes(agent.token))
  })
  it('a protected path route accepts what the agent’s host does, or the gateway token elsewhere', async () => {
    await setRoutes(['/safe', port, true])
    await known(async () => (await agent.host.get('/safe')).status === 200)
    assert.equal((await agent.stranger.get('/safe')).status, 401)
    assert.equal(await agent.stranger.socket('/safe', { 'sec-fetch-mode': 'navigate' }).refused(), 401)
    const { token: key } = await world.key()
    assert.equal((await agent.stranger.get('/safe', { authorization: `Bearer ${key}` })).status, 200)
    assert.equal((await atApps().get('/safe')).status, 401)
    const answer = await atApps().get(`/safe?token=${agent.token}`, NAVIGATION)
    assert.deepEqual([answer.status, answer.headers.location], [303, '/safe'])
  })
  it('a path route that is removed closes its open connections', async () => {
    await setRoutes(['/app', port], ['/other', port])
    await known(async () => (await agent.stranger.get('/other')).status === 200)
    const [gone, kept] = [agent.stranger.socket('/app'), agent.stranger.socket('/other')]
    await Promise.all([gone.opened, kept.opened])
    await setRoutes(['/other', port])
    assert.equal((await gone.closed).code, 1008)
    kept.send({ still: 'open' })
    await until('it is', () => kept.messages.length === 1)
    kept.raw.close()
  })
})

describe('any other host', () => {
  it('any other host leads to the API, without a query if it cannot be a domain', async () => {
    for (const host of ['127.0.0.1', 'localhost', 'berth', '[::1]', 'a.localhost', '10.0.0.1', '..', 'x.1'])
      assert.equal((await fetchHost(host)).status, 200, host)
    assert.equal((await fetchHost('no-domain.example.test')).status, 200)
  })
})

const fetchHost = (host: string) => {
  const client = new AgentHost(world.url, 'x')
  return client.get('/healthz', { host })
}
