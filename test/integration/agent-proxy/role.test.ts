/** The agent proxy as a separate process, started as in the Procfile. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { askAgentProxy, openTunnel } from '../../../src/agent-proxy/tunnel-client.ts'
import { freePort, type Running, run, until } from '../../support/processes.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))

/** Starts the role; `ended` is its exit code. */
function startHost(t: TestContext, env: NodeJS.ProcessEnv = {}): Running & { ended: Promise<number | null> } {
  const { PATH } = process.env
  const BERTH_DATA_DIR = mkdtempSync(join(tmpdir(), 'berth-agent-proxy-'))
  const ports = { BERTH_EGRESS_PORT: '0', BERTH_AGENT_PROXY_PORT: '0' }
  const host = run(process.execPath, [MAIN, 'agent-proxy'], {
    env: { PATH, BERTH_DATA_DIR, ...ports, ...env },
  })
  const ended = once(host.process, 'close').then(([code]) => code as number | null)
  t.after(async () => {
    await host.end('SIGKILL')
    rmSync(BERTH_DATA_DIR, { recursive: true })
  })
  return { ...host, ended }
}

/** The port that a component logs when it listens. */
const portOf = (host: Running, part: string) =>
  until(`${part} listens`, () => {
    const port = new RegExp(`"port":(\\d+),"msg":"the ${part} listens"`).exec(host.output())?.[1]
    return port ? Number(port) : undefined
  })
const egressPort = (host: Running) => portOf(host, 'egress proxy')

async function statusThrough(port: number, url: string): Promise<number | undefined> {
  const req = request({ host: '127.0.0.1', port, path: url, agent: false })
  req.end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  await text(res)
  return res.statusCode
}

test('the agent proxy lets agents reach Berth and allowed hosts, reports its health, and stops', async (t) => {
  const server = createServer((_req, res) => res.end()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const open = (server.address() as AddressInfo).port
  const [healthPort, metricsPort] = await Promise.all([freePort(), freePort()])
  const host = startHost(t, {
    PUBLIC_URL: `http://localhost:${open}`,
    BERTH_EGRESS_ALLOW: `127.0.0.1:${open}`,
    BERTH_HEALTH_PORT: String(healthPort),
    BERTH_METRICS_PORT: String(metricsPort),
  })
  const port = await egressPort(host)
  assert.equal(await statusThrough(port, `http://localhost:${open}/v0`), 200)
  assert.equal(await statusThrough(port, `http://127.0.0.1:${open}/`), 200)
  assert.equal(await statusThrough(port, `http://127.0.0.2:${open}/`), 403)

  const health = `http://127.0.0.1:${healthPort}`
  const answer = await until('the health port answers', () => fetch(`${health}/healthz`))
  assert.deepEqual([answer.status, await answer.json()], [200, { status: 'ok' }])
  const ready = await fetch(`${health}/readyz`)
  assert.deepEqual(
    [ready.status, await ready.json()],
    [200, { status: 'ok', parts: { way_in: { status: 'ok' }, egress: { status: 'ok' } } }],
  )
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
  assert.match(metrics, /berth_part_up\{part="way_in"\} 1/)
  assert.doesNotMatch(metrics, /berth_tunnels_total\{/, 'a health check does not count as a tunnel')
  assert.match(metrics, /berth_egress_exchanges_total\{kind="request",outcome="403"\} 1/)
  assert.match(metrics, /process_resident_memory_bytes/)
  assert.equal((await fetch(`${health}/`)).status, 404)
  assert.equal((await fetch(`${health}/metrics`)).status, 404)
  assert.equal((await fetch(`${health}/healthz`, { method: 'POST' })).status, 405)

  host.process.kill('SIGTERM')
  assert.equal(await host.ended, 0)
})

test('the agent proxy reaches Berth at PORT if PUBLIC_URL is not set', async (t) => {
  const server = createServer((_req, res) => res.end()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port: open } = server.address() as AddressInfo
  const port = await egressPort(startHost(t, { PORT: String(open) }))
  assert.equal(await statusThrough(port, `http://localhost:${open}/v0`), 200)
  assert.equal(await statusThrough(port, `http://127.0.0.1:${open}/v0`), 200)
  assert.equal(await statusThrough(port, `http://agents.localhost:${open}/v0`), 200)
  assert.equal(await statusThrough(port, `http://x0000001.agents.localhost:${open}/v0`), 200)
  assert.equal(await statusThrough(port, `http://other.localhost:${open}/`), 403)
  assert.equal(await statusThrough(port, `http://127.0.0.1:${port}/`), 403)
})

test('in a cluster, agents reach Berth by BERTH_WEB_URL, and the model only through the gateway', async (t) => {
  const hosts: (string | undefined)[] = []
  const server = createServer((req, res) => {
    hosts.push(req.headers.host)
    res.end()
  }).listen(0, '127.0.0.2')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port: open } = server.address() as AddressInfo
  const forwarded = await freePort()
  const host = startHost(t, {
    PUBLIC_URL: `http://localhost:${forwarded}`,
    BERTH_WEB_URL: `http://127.0.0.2:${open}`,
    BERTH_MODEL_URL: `http://127.0.0.2:${open}/v1`,
  })
  const port = await egressPort(host)
  const berth = [`localhost:${forwarded}`, `x0000001.agents.localhost:${forwarded}`]
  for (const name of berth) assert.equal(await statusThrough(port, `http://${name}/v1`), 200, name)
  assert.deepEqual(hosts, berth)
  assert.equal(await statusThrough(port, `http://127.0.0.2:${open}/v1`), 403)
  assert.equal(await statusThrough(port, `http://localhost:${open}/`), 403)
})

test('tunnels require the key, and reach processes only if agents may be processes', async (t) => {
  const agentd = createServer((_req, res) => res.end()).listen(0, '127.0.0.1')
  await once(agentd, 'listening')
  t.after(() => agentd.close())
  const target = `127.0.0.1:${(agentd.address() as AddressInfo).port}`
  const key = 'k'.repeat(32)
  const way = async (runtime: string) => {
    const host = startHost(t, { AGENT_PROXY_KEY: key, BERTH_RUNTIME: runtime })
    return { hostname: '127.0.0.1', port: await portOf(host, 'agent proxy'), key }
  }
  const processes = await way('process')
  const socket = await openTunnel(processes, target)
  socket.destroy()
  await assert.rejects(openTunnel({ ...processes, key: 'wrong' }, target), /another AGENT_PROXY_KEY/)
  await assert.rejects(openTunnel(await way('docker'), target), /opens no tunnel to this address/)
})

test('two agent proxies on one machine keep separate egress ports and report them with the key', async (t) => {
  const env = () => ({
    BERTH_DATA_DIR: mkdtempSync(join(tmpdir(), 'berth-agent-proxy-')),
    BERTH_EGRESS_PORT: '',
    AGENT_PROXY_KEY: 'k'.repeat(32),
  })
  const environments = [env(), env()]
  t.after(() => {
    for (const { BERTH_DATA_DIR } of environments) rmSync(BERTH_DATA_DIR, { recursive: true })
  })
  const start = () => environments.map((one) => startHost(t, one))
  const hosts = start()
  const [first, second] = await Promise.all(hosts.map(egressPort))
  assert.notEqual(first, second)
  await Promise.all(hosts.map((host) => host.end('SIGKILL')))

  // Start them in the opposite order: neither takes the other's port.
  const again = start().reverse()
  assert.deepEqual(await Promise.all(again.map(egressPort)), [second, first])
  const way = {
    hostname: '127.0.0.1',
    port: await portOf(again[0] as Running, 'agent proxy'),
    key: 'k'.repeat(32),
  }
  assert.deepEqual(await askAgentProxy(way), { egressPort: second })
  await assert.rejects(askAgentProxy({ ...way, key: 'wrong' }), /another AGENT_PROXY_KEY/)
})

test('the agent proxy exits for good on an invalid setting and names the setting', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.after(() => taken.close())
  const port = String((taken.address() as AddressInfo).port)
  const cases: [setting: string, value: string][] = [
    ['BERTH_EGRESS_PORT', port],
    ['BERTH_AGENT_PROXY_PORT', port],
    ['BERTH_AGENT_PROXY_ADDRESS', '192.0.2.1'],
    ['BERTH_HEALTH_PORT', port],
    ['BERTH_METRICS_PORT', port],
    ['BERTH_METRICS_HOST', '192.0.2.1'],
    ['BERTH_EGRESS_HOST', '192.0.2.1'],
    ['BERTH_EGRESS_ALLOW', 'no-port'],
  ]
  for (const [setting, value] of cases) {
    const metrics = setting === 'BERTH_METRICS_HOST' && { BERTH_METRICS_PORT: '0' }
    const host = startHost(t, { ...metrics, [setting]: value })
    assert.equal(await host.ended, 78, setting)
    assert.match(host.output(), new RegExp(`^${setting}: `, 'm'))
  }
})
