/**
 * `npm run bench`: every benchmark, or those named after `--`, one after the other, with their tables at the end. Each
 * compares Berth with something bare in the same run, on the same servers, in turns. Absolute figures depend on this
 * machine and this minute; the ratios are what counts. `scripts/ci` builds or starts what they need.
 *
 * --json FILE      writes the results
 * --against FILE   shows them next to those of an earlier --json, and which are slower
 * --docs           puts them into docs/benchmarks.md
 */
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { type Part, prepare } from './support/parts.ts'
import { print, type Result, showGoal, showRatio } from './support/report.ts'
import { addResults, byName, intoPage, newRun, readRun, writeRun } from './support/runs.ts'

const BENCHMARKS: Record<string, Part[]> = {
  accept: ['servers'],
  pin: ['servers', 'kubo'],
  list: ['servers'],
  transfer: ['servers', 'kubo'],
  gateway: ['servers', 'kubo'],
  s3: ['servers', 's3'],
  users: ['servers', 'kubo'],
  events: ['servers'],
  model: [],
  egress: [],
  audit: ['servers'],
  images: [],
  hollow: [],
  noisy: ['servers'],
  memory: ['servers', 'kubo'],
  flat: ['servers', 'kubo'],
  snapshots: ['kubo'],
  boot: ['engines'],
  agents: ['docker', 'engines'],
  pool: ['docker', 'engines'],
  fork: ['docker', 'engines'],
  workspace: ['docker', 'engines', 'kubo'],
  pages: ['engines'],
  start: ['servers'],
  prisma: ['servers'],
  sizing: ['servers', 'kubo', 'docker', 'engines'],
  scale: ['servers'],
  mixed: ['servers', 'kubo'],
  wake: [],
  cluster: ['servers', 'kubo', 'docker', 'engines', 'cluster'],
  'cluster-list': ['docker', 'cluster'],
}
/** Benchmarks that take long or need a cluster. docs/scale.md is the page of `scale`, `mixed` and `wake`. */
const ONLY_BY_NAME = ['scale', 'mixed', 'wake', 'cluster', 'cluster-list']
const PAGE = new URL('../../docs/benchmarks.md', import.meta.url)

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' }, against: { type: 'string' }, docs: { type: 'boolean' } },
})
const unknown = positionals.filter((name) => !(name in BENCHMARKS))
if (unknown.length > 0) {
  throw new Error(`no benchmark is named ${unknown}: there are ${Object.keys(BENCHMARKS).join(', ')}`)
}
const byDefault = Object.keys(BENCHMARKS).filter((name) => !ONLY_BY_NAME.includes(name))
const earlier = options.against === undefined ? undefined : await readRun(options.against)

const run = newRun()
const tables: { title: string; results: Result[]; before: Map<string, Result> | undefined }[] = []
for (const name of positionals.length > 0 ? positionals : byDefault) {
  try {
    // A module of the tests reads the environment when it is loaded.
    Object.assign(process.env, await prepare(BENCHMARKS[name] ?? []))
    const { title, bench } = await import(`./${name}.bench.ts`)
    console.log(`${title} …`)
    const results = await bench()
    addResults(run, name, results)
    tables.push({ title, results, before: earlier && byName(earlier, name) })
    // After each benchmark, so that an interrupted run keeps its results.
    if (options.json) await writeRun(options.json, run)
    if (options.docs) {
      const page = await readFile(PAGE, 'utf8')
      await writeFile(PAGE, intoPage(page, run, Object.keys(BENCHMARKS)))
    }
  } catch (error) {
    console.error(`${name}:`, error)
    process.exitCode = 1
  }
}
console.log(`\n${run.machine}`)
for (const { title, results, before } of tables) print(title, results, before)
const goals = run.rows.filter((row) => row.verdict)
const missed = goals.filter((row) => row.verdict === 'missed')
console.log(`\n${goals.length - missed.length} of ${goals.length} goals are met`)
for (const row of missed) console.log(`  missed: ${row.id}: ${showRatio(row)}, not ${showGoal(row)}`)
