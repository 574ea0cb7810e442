/** The agent proxy on a Unix socket, which is not reachable by a port and belongs to one process. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { loadAgentProxy, openTunnel } from '../../../src/agent-proxy/tunnel-client.ts'
import { AgentdClient } from '../../../src/agents/agentd-client.ts'
import { loadConfig } from '../../../src/config.ts'
import { tryLock } from '../../../src/lib/process/file-lock.ts'
import { useFolder } from '../../support/folder.ts'
import { freePort, type Running, run, until } from '../../support/processes.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const AGENT_PROXY_KEY = 'k'.repeat(32)

async function newDir(t: TestContext): Promise<string> {
  const dir = await useFolder('berth-socket-', t)
  return dir
}

function startHost(t: TestContext, dir: string, env: NodeJS.ProcessEnv = {}): Running {
  const host = run(process.execPath, [MAIN, 'agent-proxy'], {
    env: { PATH: process.env.PATH, ...settings(dir), ...env },
  })
  t.after(() => host.end('SIGKILL'))
  return host
}

const settings = (dir: string): Record<string, string> => ({
  BERTH_DATA_DIR: dir,
  BERTH_AGENT_PROXY_SOCKET: join(dir, 'run/agent-proxy.sock'),
  BERTH_RUNTIME: 'process',
  BERTH_EGRESS_PORT: '0',
  AGENT_PROXY_KEY,
})

const listens = (host: Running) =>
  until('the agent proxy listens', () => {
    if (host.process.exitCode !== null) throw new Error(host.output())
    return host.output().includes('"msg":"the agent proxy listens"')
  })

test('web and worker reach agents by the socket, which no other user can open', async (t) => {
  const agentd = createServer((_req, res) => res.end('{"ok":true}')).listen(0, '127.0.0.1')
  await once(agentd, 'listening')
  t.after(() => agentd.close())
  const dir = await newDir(t)
  await listens(startHost(t, dir))
  const way = loadAgentProxy(loadConfig(settings(dir)))
  const client = new AgentdClient(way)
  t.after(() => client.close())
  const address = `127.0.0.1:${(agentd.address() as AddressInfo).port}`
  assert.deepEqual(await client.json({ agentId: 'x0000001', address }, { path: '/' }), { ok: true })
  await assert.rejects(openTunnel({ ...way, key: 'wrong' }, address), /another AGENT_PROXY_KEY/)
  const { mode } = await stat(join(dir, 'run/agent-proxy.sock'))
  assert.equal(mode & 0o777, 0o600)
})

test('the agent proxy opens no port in addition to the socket, even if one is set', async (t) => {
  const dir = await newDir(t)
  const port = await freePort()
  await listens(startHost(t, dir, { BERTH_AGENT_PROXY_PORT: String(port) }))
  const [error] = (await once(connect(port, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException]
  assert.equal(error.code, 'ECONNREFUSED')
})

test('an agent proxy replaces the socket of a killed process, but not of a running one', async (t) => {
  const dir = await newDir(t)
  const first = startHost(t, dir)
  await listens(first)
  await first.end('SIGKILL')
  assert.ok((await stat(join(dir, 'run/agent-proxy.sock'))).isSocket(), 'the socket file remains')

  const second = startHost(t, dir)
  await listens(second)
  const third = startHost(t, dir)
  const [code] = await once(third.process, 'close')
  assert.equal(code, 78, third.output())
  assert.match(third.output(), /^BERTH_AGENT_PROXY_SOCKET: another process listens on .*agent-proxy\.sock$/m)
  await assert.rejects(
    openTunnel(loadAgentProxy(loadConfig(settings(dir))), '192.0.2.1:1'),
    /opens no tunnel to this address/,
  )
})

test('only one of many proxies that start at once gets the socket', async (t) => {
  const dir = await newDir(t)
  const hosts = Array.from({ length: 3 }, () => startHost(t, dir))
  const ends = hosts.map((host) => once(host.process, 'close').then(([code]) => code as number))
  const winner = await until('one listens', () =>
    hosts.find((host) => host.output().includes('"msg":"the agent proxy listens"')),
  )
  const others = await Promise.all(ends.filter((_, i) => hosts[i] !== winner))
  assert.deepEqual(others, [78, 78])
})

test('a socket that another process is about to use is left alone', async (t) => {
  const dir = await newDir(t)
  const { BERTH_AGENT_PROXY_SOCKET = '' } = settings(dir)
  await mkdir(join(dir, 'run'))
  const release = tryLock(`${BERTH_AGENT_PROXY_SOCKET}.mutex`)
  const host = startHost(t, dir)
  const [code] = await once(host.process, 'close')
  release?.()
  assert.equal(code, 78)
  assert.match(
    host.output(),
    /^BERTH_AGENT_PROXY_SOCKET: another process is just starting on .*agent-proxy\.sock$/m,
  )
})

test('a file that is not a socket is left alone', async (t) => {
  const dir = await newDir(t)
  const path = join(dir, 'notes.txt')
  await writeFile(path, 'mine')
  const host = startHost(t, dir, { BERTH_AGENT_PROXY_SOCKET: path })
  const [code] = await once(host.process, 'close')
  assert.equal(code, 78)
  assert.match(host.output(), /^BERTH_AGENT_PROXY_SOCKET: .*notes\.txt is there and is no socket$/m)
  assert.equal(await readFile(path, 'utf8'), 'mine')
})

test('a path that is too long for a socket is rejected with the name of its setting', () => {
  const BERTH_AGENT_PROXY_SOCKET = `/${'x'.repeat(100)}`
  assert.throws(
    () => loadConfig({ BERTH_AGENT_PROXY_SOCKET }),
    /BERTH_AGENT_PROXY_SOCKET: must be at most 100 bytes long/,
  )
})
