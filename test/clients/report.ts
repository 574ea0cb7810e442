/** The table of docs/clients.md: a row for each client that these tests run. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'

const PAGE = new URL('../../docs/clients.md', import.meta.url)
const BEGIN = '<!-- made by `npm run docs:clients` -->'
const END = '<!-- end -->'

export interface ClientRun {
  client: string
  version: string
  /** The number of calls, cases or checks. */
  calls: number
  passed: number
  /** Tests that were not run, or that are refused on purpose, each with its reason. */
  leftOut?: string[]
}

/**
 * Asserts that the client's row on the page matches this run; writes it with BERTH_TEST_DOCS=write. Test files that
 * call it must then run one after another.
 */
export async function reportRun({ client, version, calls, passed, leftOut = [] }: ClientRun): Promise<void> {
  const page = await readFile(PAGE, 'utf8')
  const [start, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  assert.ok(start >= 0 && end > start, 'docs/clients.md has no place for the table')
  const [head, rule, ...rows] = page
    .slice(start + BEGIN.length, end)
    .trim()
    .split('\n')
  const others = rows.filter((row) => !row.startsWith(`| ${client} |`))
  const own = `| ${client} | ${version} | ${calls} | ${passed} | ${leftOut.join('; ') || '–'} |`
  const table = [head, rule, ...[...others, own].sort((a, b) => a.localeCompare(b))].join('\n')
  const expected = `${page.slice(0, start)}${BEGIN}\n\n${table}\n\n${page.slice(end)}`
  if (process.env.BERTH_TEST_DOCS === 'write') await writeFile(PAGE, expected)
  // The difference of two whole pages would hide why a call is missing.
  else assert.ok(page === expected, `not in docs/clients.md, run \`npm run docs:clients\`: ${own}`)
}

/** Counts the calls of a client, and the successful ones. */
export class Calls {
  calls = 0
  passed = 0

  /** @param call throws if the call did not have the expected result. */
  async make<T>(call: () => Promise<T>): Promise<T> {
    this.calls++
    const result = await call()
    this.passed++
    return result
  }
}
