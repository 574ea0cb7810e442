/**
 * `npm run bench`: every benchmark, or those that are named behind `--`, one after the other, and one table at the
 * end. Each holds Berth against something bare in the same run, on the same servers, in turns; absolute figures are
 * this machine's of this minute, the ratios are what counts. Needs Redis, PostgreSQL, Docker and BERTH_TEST_KUBO, see
 * `scripts/ci`.
 */
import { cpus, totalmem } from 'node:os'
import { print, type Result } from './support/report.ts'

const BENCHMARKS = [
  'accept',
  'pin',
  'list',
  'transfer',
  'gateway',
  'images',
  'hollow',
  'memory',
  'flat',
  'snapshots',
  'agents',
  'workspace',
  'pages',
  'start',
  'prisma',
  'sizing',
]

const tables: { title: string; results: Result[] }[] = []
const chosen = process.argv.slice(2)
for (const name of chosen.length > 0 ? chosen : BENCHMARKS) {
  const { title, bench } = await import(`./${name}.bench.ts`)
  console.log(`${title} …`)
  try {
    tables.push({ title, results: await bench() })
  } catch (error) {
    console.error(error)
    process.exitCode = 1
  }
}
const { length: cores } = cpus()
console.log(
  `\n${cores} cores (${cpus()[0]?.model}), ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Node.js ${process.version}`,
)
for (const { title, results } of tables) print(title, results)
