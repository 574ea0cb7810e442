/** A whole run as JSON, for comparison with another one, and in the table of docs/benchmarks.md. */
import { readFile, writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { type Result, showGoal, showRatio, type Verdict, verdict } from './report.ts'

export interface Row extends Result {
  /** `<benchmark>/<what>`. */
  id: string
  benchmark: string
  verdict?: Verdict | undefined
}

export interface Run {
  /** When it began, ISO 8601. */
  at: string
  machine: string
  rows: Row[]
}

export const newRun = (): Run => ({ at: new Date().toISOString(), machine: machine(), rows: [] })

function machine(): string {
  const { length: cores } = cpus()
  return `${cores} cores (${cpus()[0]?.model}), ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Node.js ${process.version}`
}

/** @throws Error if two results have one name, because runs could not be compared by it. */
export function addResults(run: Run, benchmark: string, results: Result[]): void {
  for (const result of results) {
    const id = `${benchmark}/${result.what}`
    if (run.rows.some((row) => row.id === id)) throw new Error(`two results are named ${id}`)
    run.rows.push({ id, benchmark, ...result, verdict: verdict(result) })
  }
}

export const writeRun = (path: string, run: Run) => writeFile(path, `${JSON.stringify(run, null, 2)}\n`)

/** @throws Error naming the file if {@link writeRun} did not write it. */
export async function readRun(path: string): Promise<Run> {
  try {
    const run = JSON.parse(await readFile(path, 'utf8'))
    if (!Array.isArray(run.rows)) throw new Error('it has no rows')
    return run
  } catch (error) {
    throw new Error(`${path} is no result of --json: ${(error as Error).message}`, { cause: error })
  }
}

/** Results of one benchmark by name. */
export const byName = (run: Run, benchmark: string): Map<string, Result> =>
  new Map(run.rows.filter((row) => row.benchmark === benchmark).map((row) => [row.what, row]))

const BEGIN = '<!-- written by: npm run bench -- --docs -->'
const END = '<!-- end of what is written -->'

/**
 * Puts a run into the table between the two marks of a page: rows of its benchmarks are replaced, others stay with
 * their date.
 * @param order of the benchmarks in the table.
 * @throws Error if the page lacks the marks.
 */
export function intoPage(page: string, run: Run, order: string[]): string {
  const [before, table, after] = page.split(new RegExp(`(?<=${BEGIN}\n)|(?=${END}\n)`))
  if (table === undefined || after === undefined) throw new Error(`the page lacks ${BEGIN} or ${END}`)
  const lines = order.flatMap((benchmark) => {
    const rows = run.rows.filter((row) => row.benchmark === benchmark)
    if (rows.length > 0) return rows.map((row) => pageLine(row, run.at.slice(0, 10)))
    return table.split('\n').filter((line) => line.startsWith(`| \`${benchmark}\` |`))
  })
  return `${before}The last run was on ${run.machine}.

| benchmark | | Berth | bare | ratio | goal | | on |
|---|---|---|---|---|---|---|---|
${lines.join('\n')}
${after}`
}

function pageLine(row: Row, day: string): string {
  const verdict = row.verdict === 'missed' ? '**missed**' : (row.verdict ?? '')
  const cells = [row.what, row.berth, row.bare ?? '', showRatio(row), showGoal(row), verdict, day]
  return `| \`${row.benchmark}\` | ${cells.join(' | ')} |`
}
