/**
 * The compliance suite of the Pinning Service API, run against a Berth: `@ipfs-shipyard/pinning-service-compliance` from
 * npm, kept outside of the checkout. `BERTH_TEST_PSA_RUNS` runs it more often.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { type Stack, startStack } from '../support/stack.ts'
import { reportRun } from './report.ts'

const VERSION = '1.8.1'
const RUNS = Number(process.env.BERTH_TEST_PSA_RUNS ?? 1)
const INSTALL_MS = 300_000
const RUN_MS = 300_000
/** The suite says this of a group of checks. */
const SUMMARY = /Summary \((\d+)\/(\d+) successful\)/g
const FAILED = '❌'

const execute = promisify(execFile)
const cache = join(
  process.env.XDG_CACHE_HOME || join(homedir(), '.cache'),
  'berth',
  `psa-compliance-${VERSION}`,
)
const program = join(cache, 'node_modules/.bin/pinning-service-compliance')
let stack: Stack
/** The suite writes its report below its working directory. */
let dir: string

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'berth-psa-'))
  if (!existsSync(program)) {
    await mkdir(cache, { recursive: true })
    const wanted = `@ipfs-shipyard/pinning-service-compliance@${VERSION}`
    // Its packages would fetch a Kubo of their own, which these checks do not start.
    await execute('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', wanted], {
      cwd: cache,
      timeout: INSTALL_MS,
    })
  }
  stack = await startStack({ database: 'of the run' })
})
after(async () => {
  await stack?.stop()
  await rm(dir, { recursive: true, force: true })
})

for (let run = 1; run <= RUNS; run++)
  test(`the compliance suite of the Pinning Service API passes (run ${run} of ${RUNS})`, async () => {
    const args = ['-s', `${stack.url}/psa`, await stack.createKey()]
    const { stdout } = await execute(process.execPath, [program, ...args], {
      cwd: dir,
      timeout: RUN_MS,
      maxBuffer: 2 ** 26,
    })
    const failures = stdout.split('\n').filter((line) => line.includes(FAILED))
    assert.deepEqual(failures, [], stdout.slice(-2000))
    const groups = [...stdout.matchAll(SUMMARY)]
    const sum = (column: number) => groups.reduce((all, group) => all + Number(group[column]), 0)
    assert.ok(sum(2) > 0, stdout.slice(-2000))
    assert.equal(sum(1), sum(2))
    await reportRun({
      client: 'Pinning Service API compliance suite',
      version: VERSION,
      calls: sum(2),
      passed: sum(1),
    })
  })
