/**
 * Tests that sometimes fail: the list in test/flaky.md, and what a second try of a failing file means.
 * `node scripts/ci/flaky.ts`, a part of `npm run check`, fails on rows that are too old.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** A row of test/flaky.md. */
export interface FlakyRow {
  /** Day of its first failure, as 2026-11-28. */
  date: string
  file: string
  test: string
}

/** If more files fail, none gets a second try: something is broken. */
export const MAX_FILES = 4
/** Each run takes a listed file this often, until {@link CLEAN_RUNS} runs in a row were clean. */
export const LISTED_TRIES = 3
export const CLEAN_RUNS = 10
const MAX_AGE_DAYS = 7
/** A test that is flaky again within this time, and is not listed, fails the run. */
const MEMORY_DAYS = 14
const DAY_MS = 86_400_000

export const FLAKY_LIST = new URL('../../test/flaky.md', import.meta.url)

/** The rows of the page's table: date, file, test, error, cause. @throws Error if a row has no date or file. */
export function parseFlakyList(markdown: string): FlakyRow[] {
  const rows = markdown.split('\n').filter((line) => line.startsWith('|') && !/^\| *(date\b|-)/.test(line))
  return rows.map((row) => {
    const [, date = '', file = '', test = ''] = row.split(/(?<!\\)\|/).map((cell) => cell.trim())
    if (!/^\d{4}-\d\d-\d\d$/.test(date) || !file.endsWith('.test.ts'))
      throw new Error(`test/flaky.md: a row needs a date and a file of tests: ${row}`)
    return { date, file, test }
  })
}

/** The rows that are more than seven days older than a commit. @param committed its time. */
export const staleRows = (rows: FlakyRow[], committed: Date): FlakyRow[] =>
  rows.filter(({ date }) => committed.getTime() - Date.parse(date) > MAX_AGE_DAYS * DAY_MS)

/** A test that failed once and passed when its file ran again. */
export interface Flake {
  date: string
  commit: string
  file: string
  test: string
  reason: string
}

export const flakyLine = ({ date, commit, file, test, reason }: Flake): string =>
  `FLAKY ${date} ${commit.slice(0, 8)} ${file}: ${test} - ${reason}`

/**
 * The flakes among `now` that `earlier` runs of this machine had in the last 14 days, and that have not been listed
 * since.
 */
export function repeatedFlakes(now: Flake[], earlier: Flake[], listed: FlakyRow[]): Flake[] {
  const isRecent = (from: Flake, to: Flake) =>
    Date.parse(to.date) - Date.parse(from.date) <= MEMORY_DAYS * DAY_MS
  return now.filter(
    (flake) =>
      !listed.some(({ file }) => file === flake.file) &&
      earlier.some((one) => one.file === flake.file && one.test === flake.test && isRecent(one, flake)),
  )
}

if (import.meta.main) {
  const committed = execFileSync('git', ['log', '-1', '--format=%cI'], { encoding: 'utf8' }).trim()
  const stale = staleRows(parseFlakyList(readFileSync(FLAKY_LIST, 'utf8')), new Date(committed))
  for (const { date, file, test } of stale)
    console.error(
      `test/flaky.md: fix ${file}: ${test}. It has been flaky since ${date}, for over ${MAX_AGE_DAYS} days.`,
    )
  if (stale.length > 0) process.exitCode = 1
}
