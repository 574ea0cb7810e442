/** `npm start` whose npm gets a signal that none of its other processes gets, as from a service manager or a script. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { markedProcesses } from '../../agentd/processes.ts'
import { startDatabase } from '../support/database.ts'
import { freePort, type Running, run, until } from '../support/processes.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const database = await startDatabase()
after(() => database.stop())
const port = await freePort()

/** `npm start` in a new process group. */
async function startByNpm(dataDir: string): Promise<Running> {
  return run('npm', ['start'], {
    cwd: ROOT,
    group: true,
    env: {
      ...process.env,
      DATABASE_URL: database.url,
      PORT: String(port),
      BERTH_DATA_DIR: dataDir,
      BERTH_EGRESS_PORT: String(await freePort()),
      BERTH_METRICS_PORT: '',
      BERTH_AGENTS_READ_KEYS: 'accept',
      BERTH_IPFS_ROUTING_URL: '',
    },
  })
}

const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok
const hasBegun = (dataDir: string) => existsSync(join(dataDir, 'berth.lock'))

describe('npm start', () => {
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
