/**
 * The compliance suite for the Pinning Service API, run against a Berth: `@ipfs-shipyard/pinning-service-compliance`
 * from npm, installed outside of the checkout. `BERTH_TEST_PSA_RUNS` sets the number of runs.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { freePort } from '../support/processes.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { reportRun } from './report.ts'

const VERSION = '1.8.1'
const RUNS = Number(process.env.BERTH_TEST_PSA_RUNS ?? 1)
const INSTALL_MS = 300_000
const RUN_MS = 300_000
/**
 * The schemas with which the suite checks responses. The suite downloads them in each run, and silently omits four
 * checks from its summary if it cannot. So the test downloads them once, and the suite reads the file.
 */
const SPEC =
  'https://raw.githubusercontent.com/ipfs/pinning-services-api-spec/v1.0.0/ipfs-pinning-service.yaml'
const SPEC_MS = 30_000
/** Functions that the suite's packages call, but that Node has removed. */
const REMOVED = `data:text/javascript,${encodeURIComponent(`
  import util from 'node:util'
  util.isArray ??= Array.isArray
  util.isObject ??= (value) => value !== null && typeof value === 'object'
  for (const type of ['Boolean', 'Function', 'Number', 'String', 'Undefined'])
    util['is' + type] ??= (value) => typeof value === type.toLowerCase()
  util.isNullOrUndefined ??= (value) => value === null || value === undefined
`)}`
const CHECKS = 9
/** The suite prints the first at its end, and the second for a check that it could not run. */
const SUMMARY = /Summary \((\d+)\/(\d+) successful\)/
const FAILED = '❌'
const NOT_MADE = /Problem running compliance check: '(\w+)'/g

const execute = promisify(execFile)
const cache = join(
  process.env.XDG_CACHE_HOME || join(homedir(), '.cache'),
  'berth',
  `psa-compliance-${VERSION}`,
)
const suite = join(cache, 'node_modules/@ipfs-shipyard/pinning-service-compliance/dist/src')
const program = join(suite, 'index.js')
const spec = join(cache, 'ipfs-pinning-service.yaml')
let hasSchemas = false
let stack: Stack
/** The suite writes its report below its working directory. */
let dir: string

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'berth-psa-'))
  if (!existsSync(program)) {
    await mkdir(cache, { recursive: true })
    const wanted = `@ipfs-shipyard/pinning-service-compliance@${VERSION}`
    // Install scripts would download another Kubo, which these checks do not start.
    await execute('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', wanted], {
      cwd: cache,
      timeout: INSTALL_MS,
    })
  }
  hasSchemas = existsSync(spec) || (await downloadSpec())
  if (hasSchemas) {
    const constants = join(suite, 'utils/constants.js')
    const text = await readFile(constants, 'utf8')
    await writeFile(constants, text.replace(/specLocation = .*;/, `specLocation = ${JSON.stringify(spec)};`))
  }
  // A response must contain an address of the node to which the client could connect.
  const env = { BERTH_IPFS_LISTEN: `/ip4/127.0.0.1/tcp/${await freePort()}` }
  stack = await startStack({ database: 'of the run', env })
})
after(async () => {
  await stack?.stop()
  await rm(dir, { recursive: true, force: true })
})

for (let run = 1; run <= RUNS; run++)
  test(`the compliance suite for the Pinning Service API passes (run ${run} of ${RUNS})`, async (t) => {
    const args = ['-s', `${stack.url}/psa`, await stack.createKey()]
    const { stdout } = await execute(process.execPath, ['--import', REMOVED, program, ...args], {
      cwd: dir,
      timeout: RUN_MS,
      maxBuffer: 2 ** 26,
    })
    const failures = stdout.split('\n').filter((line) => line.includes(FAILED))
    assert.deepEqual(failures, [], stdout.slice(-2000))
    const [, passed, calls] = (SUMMARY.exec(stdout) ?? []).map(Number)
    assert.equal(passed, calls, stdout.slice(-2000))
    if (!hasSchemas) return t.diagnostic(`left out without ${SPEC}: ${CHECKS - Number(calls)} checks`)
    const notMade = [...stdout.matchAll(NOT_MADE)].map(([, name]) => name)
    assert.deepEqual(notMade, [], stdout.slice(0, 2000))
    assert.equal(calls, CHECKS)
    await reportRun({
      client: 'Pinning Service API compliance suite',
      version: VERSION,
      calls: CHECKS,
      passed: Number(passed),
    })
  })

/** @returns whether the schemas are now in the cache: a machine may have access to registries only. */
async function downloadSpec(): Promise<boolean> {
  try {
    const response = await fetch(SPEC, { signal: AbortSignal.timeout(SPEC_MS) })
    if (!response.ok) return false
    await writeFile(`${spec}.new`, await response.bytes())
    await rename(`${spec}.new`, spec)
    return true
  } catch {
    return false
  }
}
