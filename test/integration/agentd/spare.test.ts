/** A gateway that was started for nobody gets its owner's settings. */
import assert from 'node:assert/strict'
import { appendFile, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import type { AgentStatus, LogLine, StartRequest } from '../../../agentd/protocol.ts'
import { processesOf, standInEngine, TestAgentd } from './agentd.ts'

let engineDir: string
let agentd: TestAgentd
before(async () => {
  engineDir = await standInEngine()
})
after(() => rm(engineDir, { recursive: true }))

/** Starts a run, and waits until it is ready. @returns its process. */
async function start(request: Partial<StartRequest> & { run: string }): Promise<number> {
  assert.equal((await agentd.start(request)).status, 202)
  const isUp = ({ gateway: { state, run } }: AgentStatus) => state === 'ready' && run === request.run
  const { gateway } = await agentd.until('ready', 60_000, isUp)
  return gateway.pid as number
}

/** The owner's config is often that of the spare. */
const SETTINGS = { ownedConfig: { mine: 1 }, defaultConfig: { model: 'none' } }

const spare = (env: Record<string, string> = {}) =>
  start({ run: 'spare', spare: true, env: { AGENT_NAME: 'spare', ...env }, ...SETTINGS })

/** The gateway's environment at this moment, and what its console gets. */
async function environment() {
  const url = `http://127.0.0.1:${agentd.config.gatewayPort}/environment`
  const { env, ipc } = (await (await fetch(url)).json()) as { env: Record<string, string>; ipc: boolean }
  const json = { command: 'echo "$AGENT_NAME $MY_KEY"', timeoutMs: 10_000, outputBytes: 1000 }
  const { body } = await agentd.call<{ stdout: string }>('POST', '/v1/exec', { json })
  return { env, ipc, console: body.stdout.trim() }
}

const config = async () => JSON.parse(await readFile(join(agentd.home, '.openclaw/openclaw.json'), 'utf8'))

describe('a spare gateway', { timeout: 600_000 }, () => {
  beforeEach(async () => {
    agentd = await TestAgentd.start({ engineDir })
  })
  afterEach(async () => {
    await agentd.close()
    assert.deepEqual(await processesOf(agentd), [])
  })

  test('a spare gateway gets its owner’s environment while it runs, and restarts with it', async () => {
    const pid = await spare({ GONE: 'soon' })
    const request = { env: { AGENT_NAME: 'Ada', MY_KEY: 'k-123456' }, secretNames: ['MY_KEY'], ...SETTINGS }
    assert.equal(await start({ run: 'owner', ...request }), pid)
    const { env, ipc, console } = await environment()
    assert.deepEqual([env.AGENT_NAME, env.MY_KEY, env.GONE], ['Ada', 'k-123456', undefined])
    assert.deepEqual([ipc, env.AGENTD_SPARE, env.NODE_CHANNEL_FD], [false, undefined, undefined])
    assert.equal(console, 'Ada k-123456')
    process.kill(pid, 'SIGKILL')
    await agentd.until('again', 60_000, ({ gateway: now }) => now.state === 'ready' && now.restarts === 1)
    assert.equal((await environment()).env.MY_KEY, 'k-123456')
    const again = await start({ ...request, run: 'another' })
    assert.notEqual(again, pid)
  })

  test('a spare gateway applies its owner’s models while it runs', async () => {
    const pid = await spare()
    const models = { providers: { anthropic: { baseUrl: 'http://127.0.0.1:9' } } }
    const ownedConfig = { mine: 1, models, agents: { defaults: { model: { primary: 'anthropic/a' } } } }
    assert.equal(await start({ run: 'owner', ...SETTINGS, ownedConfig, env: {} }), pid)
    assert.deepEqual((await config()).models, models)
    const { body } = await agentd.call<{ lines: LogLine[] }>('GET', '/v1/logs')
    assert.ok(body.lines.some(({ source }) => source === 'gateway/reload'))
  })

  const restarts: [string, Partial<StartRequest>][] = [
    ['has a channel', { ownedConfig: { channels: { telegram: { enabled: true } } } }],
    ['has another token', { gatewayToken: 'another token' }],
    ['has another proxy credential', { proxyCredential: 'another' }],
    ['has a secret that the engine reads', { env: { ENGINE_KEY: 'value' }, secretNames: ['ENGINE_KEY'] }],
    ['has a secret that Node reads', { env: { TZ: 'Asia/Tokyo' }, secretNames: ['TZ'] }],
    ['has another config', { ownedConfig: { mine: 2 } }],
  ]
  for (const [what, request] of restarts)
    test(`a spare gateway is restarted for an owner who ${what}`, async () => {
      await appendFile(join(engineDir, 'node_modules/openclaw/openclaw.mjs'), '// ENGINE_KEY\n')
      const pid = await spare()
      const owner = { run: 'owner', ...SETTINGS, ...request, env: { AGENT_NAME: 'Ada', ...request.env } }
      assert.notEqual(await start(owner), pid)
      assert.equal((await environment()).env.AGENT_NAME, 'Ada')
    })

  test('an agentd that was killed gives the owner a config without the spare’s', async () => {
    await spare()
    await agentd.kill('SIGKILL')
    await agentd.boot()
    await start({ run: 'owner', env: {}, defaultConfig: { other: 2 } })
    assert.equal((await config()).model, undefined)
  })
})
