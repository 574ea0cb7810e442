/** Egress policies at the proxy, which are asked for from a control plane of the test. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import type { Resolve } from '../../../src/agent-proxy/dial.ts'
import { Policies } from '../../../src/agent-proxy/policy/policies.ts'
import type { EgressPolicy, EgressRequest, HostCount } from '../../../src/agent-proxy/policy/protocol.ts'
import { createLogger } from '../../../src/log.ts'
import { get, openTunnel, serveHttp, serveTcp, startProxy } from '../../support/egress.ts'
import { until } from '../../support/processes.ts'

const OPEN: EgressPolicy = { agentId: 'xaaaaaaa', mode: 'open', allow: [], deny: [], secrets: [] }
const CREDENTIAL = createHash('sha256').update('secret').digest('hex')
const AS_AGENT = { 'proxy-authorization': `Basic ${btoa('agent:secret')}` }

/** A proxy whose clients with the password `secret` are an agent. The test changes the policy and the state of `web`. */
async function start(t: TestContext, allowed: string[], resolve?: Resolve) {
  const web = { policy: OPEN, isUp: true, counts: [] as HostCount[], asked: 0, clients: 0 }
  const control = {
    async egress({ clients, counts }: EgressRequest) {
      web.asked++
      web.clients = clients.length
      if (!web.isUp) throw new Error('web is down')
      web.counts.push(...counts)
      return { policies: clients.map((client) => (client.credential === CREDENTIAL ? web.policy : null)) }
    },
  }
  const policies = new Policies({ control, log: createLogger('test', 'silent') })
  const admitted = { network: '127.0.0.0/8', isOfOne: true }
  const { port } = await startProxy(t, allowed, {
    ...{ policies, admitted },
    ...(resolve && { resolve }),
  })
  const { port: outside } = await startProxy(t, allowed, { policies })
  t.after(() => policies.close())
  const sum = (name: Exclude<keyof HostCount, 'agentId' | 'host'>) =>
    web.counts.reduce((all, count) => all + count[name], 0)
  return { port, outside, web, sum }
}

test('a policy lets listed hosts pass, refuses others with the reason, and counts both', async (t) => {
  const upstream = await serveHttp(t, (_, res) => res.end('x'.repeat(10_000)))
  const { port, web, sum } = await start(t, [`127.0.0.1:${upstream}`])
  web.policy = { ...OPEN, mode: 'listed', allow: [`127.0.0.1:${upstream}`] }
  assert.equal((await get(port, `http://127.0.0.1:${upstream}/`, AS_AGENT)).status, 200)
  const refused = await get(port, 'http://collector.example/', AS_AGENT)
  assert.equal(refused.status, 403)
  assert.match(refused.body, /egress policy of this agent does not list collector\.example/)
  await until('the counts are reported', async () => sum('denied') === 1 && sum('bytesReceived') > 10_000)
  assert.deepEqual(
    [sum('requests'), new Set(web.counts.map(({ agentId }) => agentId))],
    [1, new Set(['xaaaaaaa'])],
  )
  assert.ok(sum('bytesSent') > 0)
})

test('a changed policy cuts open connections that it forbids, and no others', async (t) => {
  const echo = await serveTcp(t, (socket) => socket.pipe(socket))
  const other = await serveTcp(t, (socket) => socket.pipe(socket))
  const { port, web } = await start(t, [`127.0.0.1:${echo}`, `127.0.0.1:${other}`])
  const [forbidden, kept] = await Promise.all(
    [echo, other].map((to) => openTunnel(port, `127.0.0.1:${to}`, AS_AGENT)),
  )
  assert.deepEqual([forbidden?.status, kept?.status], [200, 200])
  web.policy = { ...OPEN, deny: [`127.0.0.1:${echo}`] }
  await once(forbidden?.socket as never, 'close')
  kept?.socket.write('still here')
  assert.equal(String((await once(kept?.socket as never, 'data'))[0]), 'still here')
  assert.equal((await openTunnel(port, `127.0.0.1:${echo}`, AS_AGENT)).status, 403)
})

test('a host that is denied while its name is resolved gets 403', async (t) => {
  const upstream = await serveHttp(t, (_, res) => res.end())
  const resolving = Promise.withResolvers<void>()
  const { port, web } = await start(t, [`slow.example:${upstream}`], async () => {
    web.policy = { ...OPEN, deny: ['slow.example'] }
    await resolving.promise
    return [{ address: '127.0.0.1', family: 4 }]
  })
  const answer = get(port, `http://slow.example:${upstream}/`, AS_AGENT)
  const { asked } = web
  await until('the policy has changed', async () => web.asked > asked + 2)
  resolving.resolve()
  const { status, body } = await answer
  assert.deepEqual([status, body], [403, 'The egress policy of this agent no longer allows this host\n'])
})

test('clients in an agent’s network that are not agents get 407; outside of it no policy applies', async (t) => {
  const upstream = await serveHttp(t, (_, res) => res.end())
  const { port, outside, web } = await start(t, [`127.0.0.1:${upstream}`])
  const url = `http://127.0.0.1:${upstream}/`
  for (const headers of [{}, { 'proxy-authorization': `Basic ${btoa('agent:another')}` }]) {
    const refused = await get(port, url, headers)
    assert.deepEqual([refused.status, refused.headers['proxy-authenticate']], [407, 'Basic realm="berth"'])
    assert.equal((await get(outside, url, headers)).status, 200)
  }
  assert.equal((await get(port, url, AS_AGENT)).status, 200)
  const { asked } = web
  await until('policies are renewed', async () => web.asked > asked + 1)
  assert.equal(web.clients, 1, 'invented credentials are forgotten')
})

test('known policies stay in force without web, new agents get 503, and counts arrive later', async (t) => {
  const upstream = await serveHttp(t, (_, res) => res.end())
  const { port, web, sum } = await start(t, [`127.0.0.1:${upstream}`])
  const url = `http://127.0.0.1:${upstream}/`
  web.policy = { ...OPEN, deny: ['denied.example'] }
  assert.equal((await get(port, url, AS_AGENT)).status, 200)
  web.isUp = false
  const { asked } = web
  assert.equal((await get(port, 'http://denied.example/', AS_AGENT)).status, 403)
  assert.equal(
    (await get(port, url, { 'proxy-authorization': `Basic ${btoa('agent:another')}` })).status,
    503,
  )
  await until('a report has failed', async () => web.asked > asked + 2)
  assert.equal((await get(port, url, AS_AGENT)).status, 200)
  web.isUp = true
  await until('all is reported', async () => sum('denied') === 1 && sum('requests') === 2)
})
