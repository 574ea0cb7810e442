/**
 * `npm start` whose npm gets a signal that none of its other processes gets, as from a service manager or a script; and
 * the model that it finds.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { markedProcesses } from '../../agentd/processes.ts'
import { startDatabase } from '../support/database.ts'
import { MODEL, startModel } from '../support/model.ts'
import { freePort, type Running, run, until } from '../support/processes.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const database = await startDatabase()
after(() => database.stop())
const port = await freePort()

const environment = async (dataDir: string, databaseUrl: string) => ({
  ...process.env,
  DATABASE_URL: databaseUrl,
  PORT: String(port),
  BERTH_DATA_DIR: dataDir,
  BERTH_EGRESS_PORT: String(await freePort()),
  BERTH_METRICS_PORT: '',
  BERTH_AGENTS_READ_KEYS: 'accept',
  BERTH_IPFS_ROUTING_URL: '',
})

/** `npm start` in a new process group. */
async function startByNpm(dataDir: string): Promise<Running> {
  return run('npm', ['start'], { cwd: ROOT, group: true, env: await environment(dataDir, database.url) })
}

/** A program like that of `npm start`, which looks for a model at `baseUrl` instead of the usual ports. */
const startWithModelAt = (baseUrl: string) => `
  import { loadConfig } from './src/config.ts'
  import { start } from './src/roles/start.ts'
  await start(loadConfig(), { standIn: { name: 'Stand-in', baseUrl: '${baseUrl}' } })`

const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok
const hasBegun = (dataDir: string) => existsSync(join(dataDir, 'berth.lock'))

describe('npm start', () => {
  it('npm start without BERTH_MODEL_URL gives agents a model of this machine, and says so', async (t) => {
    const model = await startModel({ isOpen: true })
    t.after(() => model.stop())
    const empty = await startDatabase()
    t.after(() => empty.stop())
    const dataDir = await mkdtemp(join(tmpdir(), 'berth-model-'))
    t.after(() => rm(dataDir, { recursive: true, force: true }))
    const args = ['--input-type=module', '--eval', startWithModelAt(model.url)]
    const berth = run(process.execPath, args, { cwd: ROOT, env: await environment(dataDir, empty.url) })
    t.after(() => berth.end())
    const key = await until('a key', () => /BERTH_KEY=(\S+)/.exec(berth.output())?.[1], 180_000)
    await until('the model is named', () =>
      stripVTControlCharacters(berth.output()).includes(`${MODEL} on Stand-in, found at ${model.url}`),
    )
    const headers = { authorization: `Bearer ${key}` }
    const response = await fetch(`http://127.0.0.1:${port}/v0/agents/models`, { headers })
    const { data } = (await response.json()) as { data: { hasDefault: boolean } }
    assert.equal(data.hasDefault, true)
  })
  for (const [signal, when, check] of [
    ['SIGTERM', 'runs', isReady],
    ['SIGKILL', 'runs', isReady],
    ['SIGINT', 'starts', hasBegun],
    ['SIGHUP', 'starts', hasBegun],
  ] as const)
    it(`npm start leaves no process if its npm alone gets ${signal} while Berth ${when} [report: orphans]`, async (t) => {
      const dataDir = await mkdtemp(join(tmpdir(), 'berth-npm-'))
      t.after(() => rm(dataDir, { recursive: true, force: true }))
      const npm = await startByNpm(dataDir)
      t.after(() => npm.end('SIGKILL'))
      await until(`Berth ${when}`, () => check(dataDir), 180_000).catch((error) => {
        throw new Error(npm.output(), { cause: error })
      })
      process.kill(npm.process.pid as number, signal)
      const marks = [`BERTH_DATA_DIR=${dataDir}`]
      await until('npm and Berth have ended', async () => (await markedProcesses(marks)).length === 0)
      if (when === 'runs') assert.ok(!hasBegun(dataDir), 'it has stopped in order')
    })
})
