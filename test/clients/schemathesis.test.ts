/**
 * schemathesis, which creates requests from `/openapi.json` and checks the responses against it, run against a Berth
 * with agents that are only rows: `scripts/ci/schemathesis.sh` installs it. `BERTH_TEST_SCHEMATHESIS_EXAMPLES` is the
 * number of random requests per operation, in addition to those that it derives from the document.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { insertAgent } from '../contract/agents/rows.ts'
import { openContext } from '../contract/context.ts'
import { createPool, createWorkspace } from '../fuzz/pool.ts'
import { startDnsServer } from '../support/dns.ts'
import { until } from '../support/processes.ts'
import { startStack } from '../support/stack.ts'
import { reportRun } from './report.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const EXAMPLES = Number(process.env.BERTH_TEST_SCHEMATHESIS_EXAMPLES ?? 2)
const INSTALL_MS = 300_000
/** With CI's number of examples, a run takes two to four minutes, depending on the load of the machine. */
const RUN_MS = 420_000 + EXAMPLES * 30_000
/** The parameters that take ids of existing resources, by their names in the pool. */
const PARAMETERS = {
  agentId: 'path.agentId',
  id: 'path.id',
  secretId: 'path.secretId',
  skillId: 'path.skillId',
  templateId: 'path.templateId',
  slug: 'path.slug',
  target: 'path.fileId',
  requestid: 'path.requestid',
  cid: 'path.cid',
} as const

const execute = promisify(execFile)
const dir = await mkdtemp(join(tmpdir(), 'berth-schemathesis-'))
const dns = await startDnsServer()
// No request leads to the network: no names, bots, hubs or content are looked up there.
const stack = await startStack({
  database: 'of the run',
  env: {
    BERTH_DNS_SERVER: dns.address,
    BERTH_TELEGRAM_URL: '',
    BERTH_CLAWHUB_URL: '',
    BERTH_RUNTIME: 'process',
  },
})
// The context stops the stack at the end.
const context = await openContext(stack)
after(async () => {
  await dns.close()
  await rm(dir, { recursive: true, force: true })
})

test('every response conforms to /openapi.json, and requests that it forbids are refused', async () => {
  const install = await execute(join(ROOT, 'scripts/ci/schemathesis.sh'), { timeout: INSTALL_MS })
  const program = install.stdout.trim().split('\n').at(-1) ?? ''
  const own = await createWorkspace(context)
  await context.sql(`UPDATE plan SET storage_bytes = 1e9 WHERE name = 'fuzz'`)
  const agents = await Promise.all(Array.from({ length: 50 }, () => insertAgent(context, own)))
  const pool = { ...(await createPool(own.api)), agentId: agents.map(({ agentId }) => agentId) }
  const key = own.api.key ?? ''
  const config = join(dir, 'schemathesis.toml')
  await writeFile(
    config,
    `${await readFile(join(ROOT, 'test/clients/schemathesis.toml'))}${parameters(pool)}`,
  )
  const report = join(dir, 'report.json')
  const args = ['--config-file', config, 'run', `${stack.url}/openapi.json`, '--max-examples', `${EXAMPLES}`]
  const files = ['--report', 'json', '--report-json-path', report, '--no-color']
  const { stdout } = await execute(program, [...args, ...files], {
    cwd: ROOT,
    env: { ...process.env, BERTH_KEY: key },
    timeout: RUN_MS,
    maxBuffer: 2 ** 28,
  }).catch((error) => error as { stdout: string })
  const { schemathesis_version, operations, test_cases, failures, errors, complete } = JSON.parse(
    await readFile(report, 'utf8'),
  )
  console.log(`${test_cases.generated} cases, ${EXAMPLES} examples`)
  // A request can be a line of many kilobytes.
  assert.deepEqual([...failures, ...errors], [], stdout.replace(/(?<=^.{500}).+/gm, '…').slice(-20_000))
  assert.ok(complete)
  assert.ok(test_cases.generated > 20 * operations.tested)
  // Each part has two seconds to respond, after the remaining work of the requests.
  await until('it is ready', async () => (await context.anonymous.get('/readyz')).body.status === 'ok')
  await reportRun({
    client: 'schemathesis, operations of `/openapi.json`',
    version: schemathesis_version,
    calls: operations.total,
    passed: operations.tested,
    leftOut: [
      '`streamOperation`, which lasts as long as its operation',
      '`streamEvents`, which has no end',
      '`openTerminal`, a WebSocket',
    ],
  })
})

/** The dictionaries of the configuration, and the parameters that use them. */
function parameters(pool: Record<string, string[]>): string {
  const names = Object.entries(PARAMETERS)
  const bindings = names.map(
    ([name, parameter]) => `"${parameter}" = { dictionary = "${name}", probability = 0.7 }`,
  )
  const values = names.map(([name]) => `[dictionaries.${name}]\nvalues = ${JSON.stringify(pool[name])}`)
  return `\n[parameters]\n${bindings.join('\n')}\n${values.join('\n')}\n`
}
