/** Several agent proxies behind one address, as behind a Kubernetes Service. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, request } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { json, text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { AgentdClient } from '../../../src/agents/agentd-client.ts'
import { listen } from '../../support/egress.ts'
import { freePort, type Running, run, until } from '../../support/processes.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const AGENT_PROXY_KEY = 'the-same-key-for-all-agent-proxies'
/** How often the balancer checks readiness, like a kubelet. */
const POLL_MS = 100

interface Proxy {
  env: Record<string, string>
  tunnels: number
  egress: number
  health: number
  metrics: number
  isReady: boolean
  running: Running
}

/** Three agent proxies, and an address for each side that leads to those that are ready. */
async function startProxies(t: TestContext, more: Record<string, string>) {
  const open = { agentId: 'xaaaaaaa', mode: 'open', allow: [], deny: [], secrets: [] }
  const web = await listen(
    t,
    createHttpServer(async (req, res) => {
      const { clients } = (await json(req)) as { clients: unknown[] }
      res.end(JSON.stringify({ policies: clients.map(() => open) }))
    }),
  )
  const start = ({ env }: Pick<Proxy, 'env'>) =>
    run(process.execPath, [MAIN, 'agent-proxy'], { env: { PATH: process.env.PATH, ...env } })
  const proxies = await Promise.all(
    [0, 1, 2].map(async (): Promise<Proxy> => {
      const [tunnels, egress, health, metrics] = [
        await freePort(),
        await freePort(),
        await freePort(),
        await freePort(),
      ]
      const env = {
        AGENT_PROXY_KEY,
        BERTH_EGRESS_URL: 'http://agent-proxy.berth:3128',
        BERTH_AGENT_SUBNETS: '127.0.0.0/8',
        BERTH_WEB_URL: `http://127.0.0.1:${web}`,
        BERTH_AGENT_PROXY_PORT: String(tunnels),
        BERTH_EGRESS_PORT: String(egress),
        BERTH_HEALTH_PORT: String(health),
        BERTH_METRICS_PORT: String(metrics),
        ...more,
      }
      return { env, tunnels, egress, health, metrics, isReady: false, running: start({ env }) }
    }),
  )
  let looks = true
  const looking = Promise.all(
    proxies.map(async (proxy) => {
      while (looks) {
        const answer = await fetch(`http://127.0.0.1:${proxy.health}/readyz`).catch(() => undefined)
        await answer?.body?.cancel()
        proxy.isReady = answer?.status === 200
        await delay(POLL_MS)
      }
    }),
  )
  t.after(async () => {
    looks = false
    await looking
    await Promise.all(proxies.map(({ running }) => running.end('SIGKILL')))
  })
  const restart = (proxy: Proxy) => {
    proxy.running = start(proxy)
    return until('it is ready', () => proxy.isReady)
  }
  await until('all are ready', () => proxies.every(({ isReady }) => isReady))
  return {
    proxies,
    restart,
    tunnels: await balance(t, proxies, ({ tunnels }) => tunnels),
    egress: await balance(t, proxies, ({ egress }) => egress),
  }
}

/** A port that forwards to the ready proxies in turn. If a proxy refuses the connection, the client's is closed. */
async function balance(t: TestContext, proxies: Proxy[], portOf: (proxy: Proxy) => number): Promise<number> {
  let turn = 0
  return listen(
    t,
    createServer((client) => {
      const ready = proxies.filter(({ isReady }) => isReady)
      const chosen = ready[turn++ % ready.length]
      if (!chosen) return void client.resetAndDestroy()
      const upstream = connect({ host: '127.0.0.1', port: portOf(chosen) })
      const both: [Socket, Socket][] = [
        [client, upstream],
        [upstream, client],
      ]
      for (const [one, other] of both) {
        one.on('error', () => {})
        one.once('close', () => other.destroy())
        one.pipe(other)
      }
    }),
  )
}

/** An agentd and an outside service; each responds after a delay. */
function serveSlowly(t: TestContext): Promise<number> {
  return listen(
    t,
    createHttpServer((req, res) => {
      req.resume()
      setTimeout(() => res.end('{"ok":true}'), Math.random() * 100)
    }),
  )
}

interface Failure {
  what: string
  beganAt: number
  error: Error
}

/** Sends requests of each kind concurrently until it is told to stop, and then returns the failures. */
function load(kinds: Record<string, () => Promise<unknown>>) {
  const failures: Failure[] = []
  const counts = Object.fromEntries(Object.keys(kinds).map((what) => [what, 0]))
  let goesOn = true
  const one = async ([what, send]: [string, () => Promise<unknown>]) => {
    while (goesOn) {
      const beganAt = performance.now()
      await send().then(
        () => {
          counts[what] = (counts[what] ?? 0) + 1
        },
        (error) => failures.push({ what, beganAt, error }),
      )
    }
  }
  const done = Promise.all(
    Object.entries(kinds).flatMap((kind) => Array.from({ length: 6 }, () => one(kind))),
  )
  return {
    counts,
    stop: async () => {
      goesOn = false
      await done
      return failures
    },
  }
}

async function sendOut(proxy: number, url: string): Promise<void> {
  const sent = request({ host: '127.0.0.1', port: proxy, path: url, agent: false })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const body = await text(response)
  assert.deepEqual([response.statusCode, body], [200, '{"ok":true}'])
}

async function setUp(t: TestContext, more: Record<string, string> = {}) {
  const [agentd, outside] = [await serveSlowly(t), await serveSlowly(t)]
  const started = await startProxies(t, { BERTH_EGRESS_ALLOW: `127.0.0.1:${outside}`, ...more })
  const client = new AgentdClient({ hostname: '127.0.0.1', port: started.tunnels, key: AGENT_PROXY_KEY })
  t.after(() => client.close())
  const agent = { agentId: 'x0000001', address: `127.0.0.1:${agentd}` }
  const kinds = {
    read: () => client.json(agent, { path: '/' }),
    change: () => client.json(agent, { method: 'POST', path: '/', json: {} }),
    egress: () => sendOut(started.egress, `http://127.0.0.1:${outside}/`),
  }
  return { ...started, client, agent, kinds, outside }
}

test('a rolling update of agent proxies fails no request', async (t) => {
  const more = { BERTH_AGENT_PROXY_STOP: 'acceptSeconds=6,drainSeconds=2' }
  const { proxies, restart, kinds } = await setUp(t, more)
  const requests = load(kinds)
  for (const proxy of proxies) {
    const ended = once(proxy.running.process, 'close')
    proxy.running.process.kill('SIGTERM')
    assert.equal((await ended)[0], 0)
    await restart(proxy)
  }
  assert.deepEqual(await requests.stop(), [])
  for (const [what, count] of Object.entries(requests.counts)) assert.ok(count > 100, `${what}: ${count}`)
  t.diagnostic(JSON.stringify(requests.counts))
})

test('losing an agent proxy breaks only the connections it carried', async (t) => {
  const { proxies, kinds, client, agent } = await setUp(t)
  const { egress: _, ...inward } = kinds
  const requests = load(inward)
  await until('there is load', () => Object.values(requests.counts).every((count) => count > 50))
  const killedAt = performance.now()
  await proxies[0]?.running.end('SIGKILL')
  await until('it is not ready', () => !proxies[0]?.isReady)
  const before = { ...requests.counts }
  await until('the others serve requests', () =>
    Object.entries(requests.counts).every(([what, count]) => count > (before[what] ?? 0) + 50),
  )
  const late = (await requests.stop()).filter(({ beganAt }) => beganAt > killedAt)
  assert.deepEqual(late, [])
  assert.deepEqual(await client.json(agent, { path: '/' }), { ok: true })
})

test('each of several agent proxies checks addresses and counts separately', async (t) => {
  const { proxies, egress, outside } = await setUp(t, { BERTH_EGRESS_REFUSE: '192.0.0.0/9, 8.8.8.0/24' })
  const statusOf = async (url: string) => {
    const sent = request({ host: '127.0.0.1', port: egress, path: url, agent: false })
    sent.end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    response.resume()
    return response.statusCode
  }
  for (const _ of proxies) {
    assert.equal(await statusOf(`http://127.0.0.1:${outside}/`), 200)
    assert.equal(
      await statusOf(`http://127.0.0.1:${proxies[0]?.health}/`),
      403,
      'an address of the pod itself',
    )
    assert.equal(await statusOf('http://8.8.8.8/'), 403, 'a public address that is refused')
  }
  const counted = await Promise.all(
    proxies.map(async ({ metrics }) => {
      const all = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text()
      return [...all.matchAll(/^berth_egress_exchanges_total\{.*\} (\d+)$/gm)].map(([, count]) =>
        Number(count),
      )
    }),
  )
  assert.equal(
    counted.flat().reduce((sum, count) => sum + count, 0),
    9,
  )
})

test('agent proxies in a cluster require their shared key and the URL of web', async () => {
  for (const [name, more] of [
    ['AGENT_PROXY_KEY', {}],
    ['BERTH_WEB_URL', { AGENT_PROXY_KEY }],
  ] as const) {
    const env = { PATH: process.env.PATH, BERTH_EGRESS_URL: 'http://agent-proxy.berth:3128', ...more }
    const { process: started, output } = run(process.execPath, [MAIN, 'agent-proxy'], { env })
    const [code] = await once(started, 'close')
    assert.equal(code, 78)
    assert.match(output(), new RegExp(`^${name}: `, 'm'))
  }
})
