/** Path routes of an agent, and pages of a program that runs in a real one. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { WebSocket } from 'ws'
import { AgentHost } from '../../support/agent-host.ts'
import { until } from '../../support/processes.ts'
import { insertAgent } from '../agents/rows.ts'
import { openContext } from '../context.ts'
import { sharedStandIn, whenReady } from './context.ts'

const context = await openContext()
const { workspace } = context
const own = await workspace()

describe('path routes', () => {
  /** The routes of an agent that is only a row. */
  async function rowRoutes() {
    const agent = await insertAgent(context, own)
    const path = `${agent.path}/port-forwarding`
    return {
      agent,
      path,
      list: async () => (await own.api.get(path)).body.mappings,
      set: (mappings: unknown) => own.api.put(path, { mappings }),
    }
  }

  it('path routes are empty by default, and replaced as a whole', async () => {
    const { list, set, path } = await rowRoutes()
    assert.deepEqual((await own.api.get(path)).body, { mappings: [] })
    const first = [
      { port: 3000, pathPrefix: '/', protected: false },
      { port: 3001, pathPrefix: '/app', protected: true },
      { port: 3001, pathPrefix: '/app/v2_x-1', protected: false },
    ]
    const { status, body } = await set([{ port: 3001, pathPrefix: '/app/v2_x-1' }, ...first.slice(0, 2)])
    assert.deepEqual([status, body], [200, { success: true, mappings: first }])
    assert.deepEqual(await list(), first)
    await set([{ port: 65_535, pathPrefix: '/b/', protected: null }])
    assert.deepEqual(await list(), [{ port: 65_535, pathPrefix: '/b', protected: false }])
    for (const none of [[], null]) assert.deepEqual((await set(none)).body.mappings, [])
  })
  it('concurrent changes of path routes leave one complete set', async () => {
    const { list, set } = await rowRoutes()
    const sets = Array.from({ length: 8 }, (_, i) =>
      ['/a', '/b'].map((pathPrefix) => ({ port: 3000 + i, pathPrefix, protected: false })),
    )
    const replies = await Promise.all(sets.map((mappings) => set(mappings)))
    for (const [i, reply] of replies.entries()) assert.deepEqual(reply.body.mappings, sets[i])
    const [a, b] = await list()
    assert.equal(a.port, b.port)
  })
  it('an agent may have ten path routes, and paths that only begin like reserved ones', async () => {
    const { set } = await rowRoutes()
    const ten = Array.from({ length: 10 }, (_, i) => ({ port: 3000, pathPrefix: `/a${i}` }))
    assert.equal((await set(ten)).status, 200)
    for (const near of ['/v0x', '/chats', '/configs', '/v1'])
      assert.equal((await set([{ port: 3000, pathPrefix: near }])).status, 200, near)
  })
  it('path routes are deleted with their agent', async () => {
    const { agent, set } = await rowRoutes()
    await set([{ port: 3000, pathPrefix: '/a' }])
    assert.ok((await own.api.delete(agent.path)).status < 300)
    assert.deepEqual(await context.sql('SELECT * FROM agent_route WHERE agent_id = $1', [agent.id]), [])
  })
})

/** A program with a page, an echo of each request, and a WebSocket that says hello; it exits by itself. */
const PROGRAM = `
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
const server = createServer((req, res) => {
  if (req.url.endsWith('.html')) return res.setHeader('content-type', 'text/html').end('<title>Hello</title>')
  res.setHeader('content-type', 'application/json')
  res.end(JSON.stringify({ url: req.url, host: req.headers.host, headers: req.headers }))
})
server.on('upgrade', (req, socket) => {
  const accept = createHash('sha1').update(req.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11')
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n' +
    'Sec-WebSocket-Accept: ' + accept.digest('base64') + '\\r\\n\\r\\n')
  const text = JSON.stringify({ url: req.url })
  socket.write(Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text)]))
  socket.on('error', () => {})
})
server.listen(0, '127.0.0.1', () => writeFileSync(process.argv[2], String(server.address().port)))
setTimeout(() => process.exit(), 300_000)
`

describe('programs of an agent', async () => {
  const { agentId, path, record, api } = await sharedStandIn(context)
  const token: string = record.gatewayToken
  const folder = `pages-${randomBytes(4).toString('hex')}`
  const exec = async (command: string): Promise<string> => {
    const { status, body } = await api.post(`${path}/console/exec`, { command })
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(body.exitCode, 0, body.stderr)
    return body.stdout.trim()
  }
  const source = Buffer.from(PROGRAM).toString('base64')
  // The command waits, because everything in its process group is killed when it ends.
  const listening = await exec(`mkdir ${folder} && echo ${source} | base64 -d > ${folder}/program.mjs
    setsid node ${folder}/program.mjs ${folder}/port > ${folder}/log 2>&1 & echo $! > ${folder}/pid
    for i in $(seq 400); do [ -s ${folder}/port ] && break; sleep 0.1; done; cat ${folder}/port`)
  const port = Number(listening)
  const subdomain = `s${randomBytes(6).toString('hex')}`
  const added = await api.post(`${path}/domains`, { subdomain, targetPort: port })
  assert.equal(added.status, 200, JSON.stringify(added.body))
  const { id } = added.body.domain
  after(async () => {
    await api.put(`${path}/port-forwarding`, { mappings: [] })
    await api.delete(`${path}/domains/${id}`)
    await exec(`kill $(cat ${folder}/pid); rm -r ${folder}`)
  })
  const page = new AgentHost(context.url, subdomain, undefined, 'apps.localhost')
  const routes = new AgentHost(context.url, agentId, undefined, 'apps.localhost')
  const host = new AgentHost(context.url, agentId)
  /** Waits until the web process has learned of a change. */
  const becomes = (status: number, ask: () => Promise<{ status: number }>) =>
    until(`the status is ${status}`, async () => (await ask()).status === status)

  it('a program of an agent is served at its subdomain', async () => {
    await becomes(200, () => page.get('/'))
    const { body } = await page.get('/a/b?x=1')
    assert.deepEqual([body.url, body.host], ['/a/b?x=1', page.host])
    const shown = await page.get('/index.html', { 'sec-fetch-mode': 'navigate' })
    assert.deepEqual([shown.status, shown.text], [200, '<title>Hello</title>'])
    assert.equal(shown.headers['content-security-policy'], undefined)
    const socket = page.socket('/live')
    await socket.opened
    await until('it says hello', () => socket.messages.length === 1)
    assert.deepEqual(socket.messages, [{ url: '/live' }])
    assert.equal(socket.raw.readyState, WebSocket.OPEN)
    socket.raw.terminate()
  })
  it('a program of an agent is served at its paths on the agent’s hosts', async () => {
    const mappings = [
      { port, pathPrefix: '/app', protected: false },
      { port, pathPrefix: '/safe', protected: true },
    ]
    assert.equal((await api.put(`${path}/port-forwarding`, { mappings })).status, 200)
    await becomes(200, () => host.get('/app'))
    for (const one of [host, routes]) {
      const { body } = await one.get('/app/x?y=1')
      assert.deepEqual([body.url, body.headers['x-forwarded-prefix']], ['/x?y=1', '/app'])
      assert.equal((await one.get('/safe/x')).status, 401)
      assert.equal((await one.get(`/safe/x?token=${token}`)).body.url, '/x')
    }
    const led = await host.get('/app/index.html', { 'sec-fetch-mode': 'navigate' })
    assert.equal(led.status, 307)
    assert.equal(new URL(String(led.headers.location)).host, routes.host)
    const shown = await routes.get('/app/index.html', { 'sec-fetch-mode': 'navigate' })
    assert.deepEqual([shown.status, shown.text], [200, '<title>Hello</title>'])
    // Chat and the API keep their paths.
    assert.equal((await host.get('/v0/status', { authorization: `Bearer ${token}` })).status, 200)
    const health = await whenReady(() => host.get('/', { authorization: `Bearer ${token}` }))
    assert.equal(health.body.ok, true)
  })
})
