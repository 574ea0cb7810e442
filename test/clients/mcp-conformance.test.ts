/**
 * The conformance suite of the Model Context Protocol, run against `/mcp`: `@modelcontextprotocol/conformance` from npm,
 * installed outside of the checkout. Most of its scenarios call tools of their own, which only a server made for the
 * suite has; these are the others.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { type Stack, startStack } from '../support/stack.ts'
import { reportRun } from './report.ts'

/** The first version that knows the revision of 2026. */
const VERSION = '0.2.0-alpha.12'
const INSTALL_MS = 300_000
const RUN_MS = 120_000

/** The scenarios of each revision. */
const SCENARIOS: Record<string, string[]> = {
  '2025-06-18': ['server-initialize', 'tools-list'],
  '2025-11-25': [
    ...['server-initialize', 'ping', 'tools-list', 'resources-list', 'dns-rebinding-protection'],
    'server-sse-multiple-streams',
  ],
  '2026-07-28': [
    ...['server-stateless', 'tools-list', 'resources-list', 'dns-rebinding-protection', 'caching'],
    ...['server-sse-multiple-streams', 'sep-2164-resource-not-found', 'http-header-validation'],
    'input-required-result-unsupported-methods',
  ],
}
/** Checks that need a tool or prompt of the suite's own. */
const NOT_TESTABLE = [
  ...['sep-2575-server-rejects-undeclared-capability', 'sep-2575-missing-capability-http-400'],
  ...['sep-2575-http-server-no-independent-requests-on-stream', 'sep-2575-server-no-log-without-loglevel'],
  ...['sep-2549-prompts-list-caching-hints'],
]

const execute = promisify(execFile)
const cache = join(
  process.env.XDG_CACHE_HOME || join(homedir(), '.cache'),
  'berth',
  `mcp-conformance-${VERSION}`,
)
const program = join(cache, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
let stack: Stack
let url: string
let results: string

/** The suite sends no key: this adds one to its requests. */
const proxy = createServer((req, res) => {
  const headers = { ...req.headers, authorization: `Bearer ${key}` }
  const onward = request(new URL(req.url ?? '', stack.url), { method: req.method, headers }, (answer) => {
    res.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(res)
  })
  onward.once('error', () => res.destroy())
  res.once('close', () => onward.destroy())
  req.pipe(onward)
})
let key: string

before(async () => {
  if (!existsSync(program)) {
    await mkdir(cache, { recursive: true })
    const wanted = `@modelcontextprotocol/conformance@${VERSION}`
    await execute('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', wanted], {
      cwd: cache,
      timeout: INSTALL_MS,
    })
  }
  results = await mkdtemp(join(tmpdir(), 'berth-mcp-'))
  stack = await startStack({ database: 'of the run' })
  key = await stack.createKey()
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
  url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`
})
after(async () => {
  proxy.close()
  proxy.closeAllConnections()
  await stack?.stop()
  await rm(results, { recursive: true, force: true })
})

interface Check {
  id: string
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO'
  errorMessage?: string
}

/** The checks of a scenario that were made. */
async function run(revision: string, scenario: string): Promise<Check[]> {
  const dir = await mkdtemp(join(results, 'run-'))
  const args = [
    'server',
    '--url',
    url,
    '--scenario',
    scenario,
    '--spec-version',
    revision,
    '--output-dir',
    dir,
  ]
  // It fails if a check fails; the file has all of them.
  const output = await execute(process.execPath, [program, ...args], { cwd: dir, timeout: RUN_MS }).catch(
    (error) => error,
  )
  const name = (await readdir(dir, { recursive: true })).find((file) => file.endsWith('checks.json'))
  assert.ok(name, `${output.stdout}${output.stderr}`)
  const checks: Check[] = JSON.parse(await readFile(join(dir, name), 'utf8'))
  return checks.filter(({ status }) => status === 'SUCCESS' || status === 'FAILURE')
}

test('the conformance suite passes, in all revisions', async () => {
  const made: Check[] = []
  for (const [revision, scenarios] of Object.entries(SCENARIOS))
    for (const scenario of scenarios) {
      const checks = await run(revision, scenario)
      const failed = checks.filter(({ id, status }) => status === 'FAILURE' && !NOT_TESTABLE.includes(id))
      assert.deepEqual(failed, [], `${revision} ${scenario}`)
      made.push(...checks.filter(({ id }) => !NOT_TESTABLE.includes(id)))
    }
  await reportRun({
    client: 'MCP conformance suite, the scenarios without tools of its own',
    version: VERSION,
    calls: made.length,
    passed: made.filter(({ status }) => status === 'SUCCESS').length,
    leftOut: [`${NOT_TESTABLE.length} checks that call tools and prompts of the suite's own`],
  })
})
