/** The runtime that `openRuntime` selects, and the reason that it gives. */
import assert from 'node:assert/strict'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { loadConfig } from '../../../src/config.ts'
import { createLogger } from '../../../src/log.ts'
import { openRuntime } from '../../../src/sandboxes/open.ts'
import { NO_OWNER } from '../../../src/sandboxes/owner.ts'
import { BASE_IMAGE } from '../../support/docker.ts'
import { whyNotDocker } from './docker-subject.ts'
import { failsWith } from './subject.ts'

const made: string[] = []
after(async () => {
  for (const dir of made) await rm(dir, { recursive: true })
})

async function newDataDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-open-'))
  made.push(dir)
  // Otherwise, as root, agents would live outside of it.
  await chmod(dir, 0o711)
  return dir
}

/** Opens the runtime of these settings; resolves to its driver, the runtime and its first log line. */
async function open(env: Record<string, string>) {
  const lines: { level: number; why?: string; msg: string }[] = []
  const log = createLogger('test', 'info', { write: (line) => void lines.push(JSON.parse(line)) })
  const runtime = await openRuntime(loadConfig(env), log, NO_OWNER)
  await runtime.close()
  return { runtime, driver: runtime.driver, said: lines[0] }
}

const NOWHERE = 'unix:///nowhere/docker.sock'

test('the setting auto selects processes without Docker, warns about it and stays with it', async () => {
  const BERTH_DATA_DIR = await newDataDir()
  const { driver, said } = await open({ BERTH_DATA_DIR, DOCKER_HOST: NOWHERE })
  assert.equal(driver, 'process')
  assert.equal(said?.level, 40)
  assert.match(said.msg, /loopback, as (a system user that all agents share|the user of Berth)/)
  assert.match(said.why ?? '', /Docker cannot be reached/)
  const again = await open({ BERTH_DATA_DIR })
  assert.equal(again.driver, 'process')
  assert.match(again.said?.why ?? '', /^as before/)
})

test('the setting docker selects Docker, even while it is unreachable', async () => {
  const env = { BERTH_DATA_DIR: await newDataDir(), BERTH_RUNTIME: 'docker', DOCKER_HOST: NOWHERE }
  const { driver, runtime } = await open(env)
  assert.equal(driver, 'docker')
  await assert.rejects(runtime.ping(), failsWith('unreachable'))
})

test('the setting process selects processes, whatever Docker does', async () => {
  const { driver, said } = await open({ BERTH_DATA_DIR: await newDataDir(), BERTH_RUNTIME: 'process' })
  assert.equal(driver, 'process')
  assert.equal(said?.why, 'BERTH_RUNTIME')
})

test('the setting kubernetes requires images and an egress, even for an unreachable cluster', async () => {
  const env = {
    BERTH_DATA_DIR: await newDataDir(),
    BERTH_RUNTIME: 'kubernetes',
    BERTH_KUBERNETES_CONFIG: '/nowhere/config',
  }
  await assert.rejects(open(env), /BERTH_EGRESS_URL has to be set/)
  const withEgress = { ...env, BERTH_EGRESS_URL: 'http://10.0.0.9:3128' }
  await assert.rejects(open(withEgress), /BERTH_ENGINE_IMAGE has to be set/)
  const BERTH_ENGINE_IMAGE = 'registry.example.org/berth/openclaw:{version}'
  const unknown = { ...env, BERTH_ENGINE_IMAGE, BERTH_EGRESS_URL: 'http://agent-proxy.invalid:3128' }
  await assert.rejects(open(unknown), /BERTH_EGRESS_URL: the address of agent-proxy\.invalid was not found/)
  const { driver, runtime } = await open({ ...withEgress, BERTH_ENGINE_IMAGE })
  assert.equal(driver, 'kubernetes')
  await assert.rejects(runtime.ping(), failsWith('unreachable'))
})

test('the setting auto selects Docker if an image exists or can be built', {
  skip: await whyNotDocker(),
}, async () => {
  const BERTH_DATA_DIR = await newDataDir()
  const { driver } = await open({ BERTH_DATA_DIR, BERTH_BASE_IMAGE: BASE_IMAGE })
  assert.equal(driver, 'docker')
  const later = await open({ BERTH_DATA_DIR, BERTH_BASE_IMAGE: BASE_IMAGE, DOCKER_HOST: NOWHERE })
  assert.equal(later.driver, 'docker', 'its agents are there')
})

test('the setting auto selects processes if Docker has no base image', {
  skip: await whyNotDocker(),
}, async () => {
  const BERTH_BASE_IMAGE = '127.0.0.1:1/there/is-none:now'
  const { driver, said } = await open({ BERTH_DATA_DIR: await newDataDir(), BERTH_BASE_IMAGE })
  assert.equal(driver, 'process')
  assert.match(said?.why ?? '', /no image for agents, and its base 127\.0\.0\.1:1/)
})
