/** The host role as a process of its own, as the Procfile starts it. */
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
import { openWay } from '../../../src/host/way.ts'
import { freePort, type Running, run, until } from '../../support/processes.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))

/** Starts the role; `ended` is its exit code. */
function startHost(t: TestContext, env: NodeJS.ProcessEnv = {}): Running & { ended: Promise<number | null> } {
  const { PATH } = process.env
  const BERTH_DATA_DIR = mkdtempSync(join(tmpdir(), 'berth-host-'))
  const ports = { BERTH_EGRESS_PORT: '0', BERTH_HOST_PORT: '0' }
  const host = run(process.execPath, [MAIN, 'host'], { env: { PATH, BERTH_DATA_DIR, ...ports, ...env } })
  const ended = once(host.process, 'close').then(([code]) => code as number | null)
  t.after(async () => {
    await host.end('SIGKILL')
    rmSync(BERTH_DATA_DIR, { recursive: true })
  })
  return { ...host, ended }
}

/** The port on which a part says that it listens. */
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

test('it lets agents reach Berth and what is allowed, says that it is healthy, and stops', async (t) => {
  const server = createServer((_req, res) => res.end()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const open = (server.address() as AddressInfo).port
  const healthPort = await freePort()
  const host = startHost(t, {
    PUBLIC_URL: `http://localhost:${open}`,
    BERTH_EGRESS_ALLOW: `127.0.0.1:${open}`,
    BERTH_HEALTH_PORT: String(healthPort),
  })
  const port = await egressPort(host)
  assert.equal(await statusThrough(port, `http://localhost:${open}/v0`), 200)
  assert.equal(await statusThrough(port, `http://127.0.0.1:${open}/`), 200)
  assert.equal(await statusThrough(port, `http://127.0.0.2:${open}/`), 403)

  const health = `http://127.0.0.1:${healthPort}`
  const answer = await until('the health port answers', () => fetch(`${health}/healthz`))
  assert.deepEqual([answer.status, await answer.json()], [200, { status: 'ok' }])
  const metrics = await (await fetch(`${health}/metrics`)).text()
  assert.match(metrics, /berth_egress_exchanges_total\{kind="request",outcome="403"\} 1/)
  assert.match(metrics, /process_resident_memory_bytes/)
  assert.equal((await fetch(`${health}/`)).status, 404)
  assert.equal((await fetch(`${health}/healthz`, { method: 'POST' })).status, 405)

  host.process.kill('SIGTERM')
  assert.equal(await host.ended, 0)
})

test('without PUBLIC_URL, Berth is where PORT says', async (t) => {
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

test('it lets in who has the key, to processes only where agents may be processes', async (t) => {
  const agentd = createServer((_req, res) => res.end()).listen(0, '127.0.0.1')
  await once(agentd, 'listening')
  t.after(() => agentd.close())
  const target = `127.0.0.1:${(agentd.address() as AddressInfo).port}`
  const key = 'k'.repeat(32)
  const way = async (runtime: string) => {
    const host = startHost(t, { HOST_KEY: key, BERTH_RUNTIME: runtime })
    return { hostname: '127.0.0.1', port: await portOf(host, 'way in'), key }
  }
  const processes = await way('process')
  const socket = await openWay(processes, target)
  socket.destroy()
  await assert.rejects(openWay({ ...processes, key: 'wrong' }, target), /another HOST_KEY/)
  await assert.rejects(openWay(await way('docker'), target), /takes nobody to this address/)
})

test('two of them run on one machine', async (t) => {
  const hosts = [startHost(t), startHost(t)]
  const [first, second] = await Promise.all(hosts.map(egressPort))
  assert.notEqual(first, second)
})

test('a wrong setting ends it for good, and is named', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.after(() => taken.close())
  const port = String((taken.address() as AddressInfo).port)
  const cases: [setting: string, value: string][] = [
    ['BERTH_EGRESS_PORT', port],
    ['BERTH_HOST_PORT', port],
    ['BERTH_HOST_ADDRESS', '192.0.2.1'],
    ['BERTH_HEALTH_PORT', port],
    ['BERTH_EGRESS_HOST', '192.0.2.1'],
    ['BERTH_EGRESS_ALLOW', 'no-port'],
  ]
  for (const [setting, value] of cases) {
    const host = startHost(t, { [setting]: value })
    assert.equal(await host.ended, 78, setting)
    assert.match(host.output(), new RegExp(`^${setting}: `, 'm'))
  }
})
