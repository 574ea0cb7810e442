/** agentd with the real engine, and a comparison with the stand-in of other tests. */
import assert from 'node:assert/strict'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { AgentStatus, StartRequest } from '../../agentd/protocol.ts'
import type { Config } from '../../src/config.ts'
import { defaultConfig, ownedConfig } from '../../src/openclaw/config.ts'
import { processesOf, TestAgentd } from '../integration/agentd/agentd.ts'
import { installStandIns, STAND_IN } from '../integration/agents/stand-in.ts'
import {
  compiledEngine,
  ENGINE_VERSION,
  enginesDir,
  ensureEngines,
  OLDER_ENGINE_VERSION,
} from '../support/engines.ts'
import { useFolder } from '../support/folder.ts'

/** The most that a boot takes on a busy machine; on a quiet one it takes 7 to 10 s. */
const READY_MS = 240_000
const GATEWAY_TOKEN = 'token-of-the-gateway'
const config = {} as Config
/** The engine's exit code for a start that it refuses. */
const REFUSED = 78

const ready = ({ gateway }: AgentStatus) => gateway.state === 'ready'
const failed = ({ gateway }: AgentStatus) => gateway.state === 'failed'

function start(agentd: TestAgentd, run: string, channels = {}, request: Partial<StartRequest> = {}) {
  const agent = { gatewayToken: GATEWAY_TOKEN }
  const options = { config, secrets: {}, localModel: null }
  const access = { url: 'http://127.0.0.1:9', key: 'virtual' }
  return agentd.start({
    run,
    gatewayToken: GATEWAY_TOKEN,
    ownedConfig: ownedConfig({ ...options, access, agent, channels }),
    defaultConfig: defaultConfig(options),
    readyMs: READY_MS,
    ...request,
  })
}

/** False if the process has exited by itself. */
function kill(pid: number | null): boolean {
  try {
    return pid !== null && process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    return false
  }
}

/** Asks the gateway itself, without agentd. */
async function rpc(agentd: TestAgentd, token: string): Promise<number> {
  const url = `http://127.0.0.1:${agentd.config.gatewayPort}/api/v1/admin/rpc`
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ method: 'health', params: {} })
  return (await fetch(url, { method: 'POST', headers, body })).status
}

/** The engine becomes ready and reports it where agentd and Berth ask. */
async function becomesReady(agentd: TestAgentd): Promise<void> {
  const { gateway } = await agentd.until('ready', READY_MS, (status) => ready(status) || failed(status))
  assert.deepEqual([gateway.state, gateway.exitCode], ['ready', null], gateway.reason ?? '')
  const url = `http://127.0.0.1:${agentd.config.gatewayPort}`
  assert.equal((await fetch(`${url}/readyz`)).status, 200)
  const health = await fetch(`${url}/health`)
  assert.match(health.headers.get('content-type') ?? '', /^application\/json/)
  assert.deepEqual(await health.json(), { ok: true, status: 'live' })
  const environment = (await readFile(`/proc/${gateway.pid}/environ`, 'utf8')).split('\0')
  assert.ok(environment.includes(`OPENCLAW_GATEWAY_TOKEN=${GATEWAY_TOKEN}`))
}

/** The engine exits in time when it is asked to, and leaves nothing behind. */
async function endsInTime(agentd: TestAgentd): Promise<void> {
  const started = Date.now()
  await agentd.call('DELETE', '/v1/gateway', { epoch: 1 })
  assert.ok(Date.now() - started < 30_000)
  assert.deepEqual(await processesOf(agentd), [])
}

/** The engine in another folder rejects the state that this one has left. */
async function refusesState(agentd: TestAgentd, engineDir: string): Promise<void> {
  await agentd.kill('SIGTERM')
  agentd.config.engineDir = engineDir
  await agentd.boot()
  await start(agentd, 'refused')
  const { gateway } = await agentd.until('failed', READY_MS, (status) => ready(status) || failed(status))
  assert.equal(gateway.exitCode, REFUSED)
  assert.match(gateway.reason ?? '', /schema/)
}

describe('the stand-in for the engine', () => {
  test('the stand-in for the engine becomes ready, exits and refuses like the real engine', async (t) => {
    const dir = await useFolder('berth-engines-', t)
    await installStandIns(dir)
    const agentd = await TestAgentd.start({ engineDir: join(dir, STAND_IN.good) })
    t.after(() => agentd.close())
    await start(agentd, 'first')
    await becomesReady(agentd)
    await endsInTime(agentd)
    await refusesState(agentd, join(dir, STAND_IN.refuses))
  })
})

describe('the real engine', { timeout: 10 * READY_MS }, () => {
  let agentd: TestAgentd
  before(async () => {
    await ensureEngines([OLDER_ENGINE_VERSION])
    agentd = await TestAgentd.start({ engineDir: await compiledEngine() })
  })
  after(async () => {
    await agentd.close()
    assert.deepEqual(await processesOf(agentd), [])
  })

  test('the real engine becomes ready with the agent’s token on agentd’s port', async () => {
    await start(agentd, 'first')
    await becomesReady(agentd)
    assert.equal(await rpc(agentd, GATEWAY_TOKEN), 200)
    assert.equal(await rpc(agentd, 'another'), 401)
    const file = join(agentd.home, '.openclaw/openclaw.json')
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    const written = JSON.parse(await readFile(file, 'utf8'))
    assert.equal(written.gateway.port, agentd.config.gatewayPort)
    assert.equal(written.agents.defaults.workspace, join(agentd.home, 'clawd/workspace'))
    const lines = await agentd.logs()
    assert.ok(lines.some(({ source, message }) => source === 'gateway' && message === 'gateway ready'))
    assert.ok(lines.every(({ message }) => !message.startsWith('{')))
  })

  test('the real engine responds again after a SIGKILL at any moment of its start', async () => {
    let { restarts: seen } = (await agentd.status()).gateway
    let expected = seen + 3
    const look = ({ gateway }: AgentStatus) => {
      // On a busy machine, the engine may refuse a start; that start is repeated as well.
      if (gateway.restarts > seen && gateway.exitCode === REFUSED) expected++
      seen = gateway.restarts
      return gateway
    }
    for (const delayMs of [0, 1500, 4000]) {
      let victim: AgentStatus['gateway']
      do {
        await agentd.until('a process', READY_MS, (status) => look(status).pid !== null)
        await new Promise((resolve) => setTimeout(resolve, delayMs))
        victim = look(await agentd.status())
      } while (!kill(victim.pid))
      await agentd.until('another life', READY_MS, (status) => look(status).restarts > victim.restarts)
    }
    const { gateway } = await agentd.until('ready', READY_MS, (status) => {
      look(status)
      return ready(status) || failed(status)
    })
    assert.equal(gateway.state, 'ready', gateway.reason ?? '')
    assert.equal(gateway.restarts, expected)
    assert.equal(await rpc(agentd, GATEWAY_TOKEN), 200)
  })

  test('the real engine exits with its helpers', async () => {
    assert.ok((await processesOf(agentd)).length >= 3)
    await endsInTime(agentd)
  })

  test('the real engine rejects an unknown key and names it', async () => {
    const file = join(agentd.home, '.openclaw/openclaw.json')
    const text = await readFile(file, 'utf8')
    await writeFile(file, JSON.stringify({ ...JSON.parse(text), bogus: true }))
    await start(agentd, 'bogus')
    const { gateway } = await agentd.until('failed', READY_MS, (status) => ready(status) || failed(status))
    assert.equal(gateway.exitCode, 78)
    assert.match(
      gateway.reason ?? '',
      /Invalid config at \/home\/node\/\.openclaw\/openclaw\.json: .*"bogus"$/,
    )
    await writeFile(file, text)
  })

  test('the real engine rejects the state of a newer engine and reports it', async () => {
    await refusesState(agentd, join(enginesDir, OLDER_ENGINE_VERSION))
  })

  test('the real engine starts without the plugin of a channel that cannot be installed', async () => {
    await agentd.kill('SIGTERM')
    agentd.config.engineDir = join(enginesDir, ENGINE_VERSION)
    await agentd.boot()
    const channels = {
      channels: { slack: { enabled: true, botToken: 'xoxb-0123456789', appToken: 'xapp-0123456789' } },
      plugins: { entries: { slack: { enabled: true } } },
    }
    await start(agentd, 'no plugin', channels, { plugins: ['/nonexistent/slack'] })
    const { gateway } = await agentd.until('ready', READY_MS, (status) => ready(status) || failed(status))
    assert.equal(gateway.state, 'ready', gateway.reason ?? '')
    assert.match(gateway.reason ?? '', /^plugin \/nonexistent\/slack could not be installed: /)
  })
})
