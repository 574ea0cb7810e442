/** How agentd keeps misbehaving gateways running. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentStatus, ExecResult } from '../../../agentd/protocol.ts'
import { processesOf, standInEngine, TestAgentd, until } from './agentd.ts'

let engineDir: string
let agentd: TestAgentd
before(async () => {
  engineDir = await standInEngine()
})
after(() => rm(engineDir, { recursive: true }))

const ready = ({ gateway }: AgentStatus) => gateway.state === 'ready'
const failed = ({ gateway }: AgentStatus) => gateway.state === 'failed'

async function startReady(env: Record<string, string> = {}, run = 'first'): Promise<AgentStatus> {
  await agentd.start({ run, env })
  return await agentd.until('ready', 60_000, (status) => ready(status) && status.gateway.run === run)
}

describe('a gateway', { timeout: 600_000 }, () => {
  beforeEach(async () => {
    agentd = await TestAgentd.start({ engineDir })
  })
  afterEach(async () => {
    await agentd.close()
    assert.deepEqual(await processesOf(agentd), [])
  })

  test('a gateway becomes ready; repeating its run changes nothing; another run replaces it', async () => {
    assert.equal((await agentd.status()).gateway.state, 'stopped')
    const first = await startReady({ AGENT_READY_AFTER_MS: '300' })
    assert.equal((await agentd.start({ run: 'first', env: { OTHER: '1' } })).status, 202)
    assert.deepEqual((await agentd.status()).gateway, first.gateway)
    const second = await startReady({}, 'second')
    assert.notEqual(second.gateway.pid, first.gateway.pid)
    assert.deepEqual(await processesOf(agentd), [second.gateway.pid])
  })

  test('a gateway that is starting is replaced by the most recent request', async () => {
    for (let i = 0; i < 10; i++)
      await agentd.start({ run: `run ${i}`, env: { AGENT_READY_AFTER_MS: '60000' } })
    const status = await startReady({}, 'last')
    assert.equal(status.gateway.run, 'last')
    assert.equal((await processesOf(agentd)).length, 1)
  })

  test('a gateway that was killed restarts as the same run', async () => {
    const before = await startReady({ WHO: 'me' })
    for (let kills = 1; kills <= 3; kills++) {
      process.kill((await agentd.status()).gateway.pid as number, 'SIGKILL')
      const is = (status: AgentStatus) => ready(status) && status.gateway.restarts === kills
      const after = await agentd.until('ready again', 60_000, is)
      assert.equal(after.gateway.run, before.gateway.run)
    }
    const environments = (await agentd.logs()).filter(({ message }) => message.includes('"WHO":"me"'))
    assert.equal(environments.length, 4)
  })

  test('a gateway that keeps dying fails with its last message', async () => {
    await agentd.start({
      run: 'x',
      env: { AGENT_DIE_AFTER_MS: '50', AGENT_EXIT_CODE: '3', AGENT_SAY: 'the disk is on fire' },
    })
    const { gateway } = await agentd.until('failed', 60_000, failed)
    assert.equal(gateway.exitCode, 3)
    assert.equal(gateway.restarts, 4)
    assert.equal(gateway.reason, 'the disk is on fire')
    assert.match(gateway.lastLines.join('\n'), /ERROR gateway: the disk is on fire/)
    assert.equal(gateway.pid, null)
    // Repeating the run does not start it again; another run does.
    await agentd.start({ run: 'x' })
    assert.ok(failed(await agentd.status()))
    await startReady({}, 'y')
  })

  test('a gateway that rejects its configuration twice for one reason fails', async () => {
    await agentd.start({
      env: { AGENT_DIE_AFTER_MS: '50', AGENT_EXIT_CODE: '78', AGENT_SAY: 'Invalid config:\n bogus' },
    })
    const { gateway } = await agentd.until('failed', 60_000, failed)
    assert.deepEqual([gateway.exitCode, gateway.restarts, gateway.reason], [78, 1, 'Invalid config: bogus'])
  })

  test('a gateway that fails to start for changing reasons is restarted', async () => {
    const said = { AGENT_EXIT_CODE: '78', AGENT_SAY: 'not ready, says {pid}' }
    const status = await startReady({
      ...said,
      AGENT_DEATHS: '3',
      AGENT_DIE_AFTER_MS: '50',
      AGENT_READY_AFTER_MS: '1000',
    })
    assert.equal(status.gateway.restarts, 3)
  })

  test('a gateway that is not ready in time fails', async () => {
    await agentd.start({ readyMs: 1000, env: { AGENT_READY_AFTER_MS: '60000' } })
    const { gateway } = await agentd.until('failed', 60_000, failed)
    assert.equal(gateway.reason, 'the gateway is not ready after 1 s')
    assert.deepEqual(await processesOf(agentd), [])
  })

  test('a gateway that ignores SIGTERM is killed with its helpers', async () => {
    await startReady({ AGENT_IGNORE_SIGTERM: '1', AGENT_HELPER: '300' })
    assert.equal((await processesOf(agentd)).length, 2)
    const started = Date.now()
    assert.equal((await agentd.call('DELETE', '/v1/gateway', { epoch: 1 })).status, 200)
    const took = Date.now() - started
    assert.ok(took > 7500, `took ${took} ms`)
    assert.deepEqual(await processesOf(agentd), [])
    assert.deepEqual((await agentd.status()).gateway.state, 'stopped')
  })

  test('a gateway that hangs is stopped and restarted', async () => {
    // Long enough for the two starts on a busy machine.
    await agentd.start({ readyMs: 40_000 })
    const { gateway } = await agentd.until('ready', 60_000, ready)
    process.kill(gateway.pid as number, 'SIGSTOP')
    const again = await agentd.until(
      'ready again',
      120_000,
      (status) => ready(status) && status.gateway.restarts === 1,
    )
    assert.notEqual(again.gateway.pid, gateway.pid)
  })

  test('a gateway has a clean environment, and logs no secrets', async () => {
    await startReady({ API_KEY: 'sk-0123456789', AGENT_NAME: 'Pinnie', HOME: '/elsewhere', TZ: 'X/Y' })
    const line = (await agentd.logs()).find(({ message }) => message.startsWith('environment: '))
    const env = JSON.parse((line?.message ?? '').slice('environment: '.length))
    assert.equal(env.API_KEY, '[redacted]')
    assert.equal(env.OPENCLAW_GATEWAY_TOKEN, '[redacted]')
    assert.equal(env.AGENT_NAME, 'Pinnie')
    assert.equal(env.TZ, 'X/Y')
    assert.equal(env.HOME, agentd.home)
    assert.equal(env.TMPDIR, join(agentd.folder, 'tmp'))
    for (const name of ['OPERATOR_SECRET', 'AGENTD_CONFIG', 'NODE_TEST_CONTEXT'])
      assert.ok(!(name in env), name)
  })

  test('a gateway logs without the tokens of its channels', async () => {
    const botToken = '123456:AAbbCC'
    const env = { AGENT_SAY: `https://chat.example/bot${botToken}/getMe failed` }
    await agentd.start({ env, ownedConfig: { channels: { telegram: { botToken } } } })
    await agentd.until('ready', 60_000, ready)
    const said = (await agentd.logs()).find(({ message }) => message.startsWith('https://chat.example'))
    assert.equal(said?.message, 'https://chat.example/bot[redacted]/getMe failed')
    assert.ok(!JSON.stringify(await agentd.logs()).includes('AAbbCC'))
  })

  test('agentd stays small and responsive while a gateway floods its log', async () => {
    await agentd.start({ env: { AGENT_FLOOD_BYTES: '500000000' } })
    await agentd.until('ready', 60_000, ready)
    await until('the end of the flood', 60_000, async () =>
      (await agentd.logs(50)).some(({ message }) => message === 'the flood is over'),
    )
    const peak = /VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${agentd.pid}/status`, 'utf8'))?.[1]
    assert.ok(Number(peak) < 250_000, `${peak} kB`)
  })

  test('a gateway whose port is taken fails, and the reason names the port', async () => {
    const other = createServer().listen(agentd.config.gatewayPort, '127.0.0.1')
    await once(other, 'listening')
    await agentd.start({})
    const { gateway } = await agentd.until('failed', 60_000, failed)
    other.close()
    assert.equal(gateway.reason, `port ${agentd.config.gatewayPort} is taken by another process`)
  })

  test('a gateway with an unreadable configuration fails and reports it', async () => {
    await writeFile(join(agentd.home, '.openclaw/openclaw.json'), '{"broken')
    await agentd.start({})
    const { gateway } = await agentd.until('failed', 60_000, failed)
    assert.equal(gateway.reason, 'openclaw.json is not valid JSON')
  })

  test('a gateway left by a killed agentd is ended by the next agentd', async () => {
    const { gateway } = await startReady({ AGENT_HELPER: '300', AGENT_IGNORE_SIGTERM: '1' })
    await agentd.kill('SIGKILL')
    assert.equal((await processesOf(agentd)).length, 2)
    await agentd.boot()
    assert.deepEqual(await processesOf(agentd), [])
    assert.equal((await agentd.status()).gateway.state, 'stopped')
    assert.notEqual((await startReady()).gateway.pid, gateway.pid)
  })

  test('only one gateway remains after random starts, stops and kills', async () => {
    const pick = (count: number) => Math.floor(Math.random() * count)
    const happened: string[] = []
    for (let step = 0; step < 40; step++) {
      const what = pick(4)
      happened.push(['start', 'stop', 'kill', 'kill all'][what] as string)
      if (what === 0) await agentd.start({ run: `run ${step}`, env: { AGENT_HELPER: '300' } })
      if (what === 1) await agentd.call('DELETE', '/v1/gateway', { epoch: 1 })
      const { gateway } = await agentd.status()
      const victims = what === 2 && gateway.pid ? [gateway.pid] : what === 3 ? await processesOf(agentd) : []
      for (const pid of victims) {
        try {
          process.kill(pid, 'SIGKILL')
        } catch {
          // The process has exited by itself.
        }
      }
      await sleep(pick(300))
    }
    const { gateway } = await startReady({}, 'last')
    assert.deepEqual(await processesOf(agentd), [gateway.pid], happened.join(', '))
  })

  test('a gateway ends with agentd, which exits with 0', async () => {
    await startReady({ AGENT_IGNORE_SIGTERM: '1', AGENT_HELPER: '300' })
    // An agentd that takes too long exits with 1.
    assert.equal(await agentd.kill('SIGTERM'), 0)
    assert.deepEqual(await processesOf(agentd), [])
  })
})

test('an agent whose files take too much space is stopped, and restarts once there is room', {
  timeout: 300_000,
}, async () => {
  agentd = await TestAgentd.start({ engineDir, diskBytes: 4_000_000 })
  try {
    await startReady()
    const big = join(agentd.home, 'big')
    await writeFile(big, Buffer.alloc(5_000_000, 1))
    const { gateway, disk } = await agentd.until('failed', 120_000, failed)
    assert.match(gateway.reason ?? '', /^disk full: the agent's files take 5 MiB of 4 MiB$/)
    assert.ok(disk.usedBytes > 5_000_000)
    assert.deepEqual(await processesOf(agentd), [])
    await agentd.start({ run: 'no room' })
    await agentd.until('refused', 60_000, (status) => failed(status) && status.gateway.run === 'no room')
    await rm(big)
    await startReady({}, 'room')
  } finally {
    await agentd.close()
  }
})

test('an agent over its disk limit keeps running if the file system enforces the limit', {
  timeout: 300_000,
}, async () => {
  agentd = await TestAgentd.start({ engineDir, diskBytes: 4_000_000, hardLimit: true })
  try {
    const { gateway } = await startReady()
    const command = 'head -c 5000000 /dev/zero >~/big; until [ -e ~/go ]; do sleep 0.1; done; echo went on'
    const json = { command, timeoutMs: 240_000, outputBytes: 1000 }
    const running = agentd.call<ExecResult>('POST', '/v1/exec', { json })
    await agentd.until('it is counted', 120_000, ({ disk }) => disk.usedBytes > 5_000_000)
    // By the time this is counted, everything that the first count would have stopped has ended.
    await writeFile(join(agentd.home, 'more'), Buffer.alloc(5_000_000, 1))
    await agentd.until('more is counted', 120_000, ({ disk }) => disk.usedBytes > 10_000_000)
    await writeFile(join(agentd.home, 'go'), '')
    assert.equal((await running).body.stdout, 'went on\n')
    assert.deepEqual((await agentd.status()).gateway, gateway)
  } finally {
    await agentd.close()
  }
})
