/**
 * Runs most files of `npm test` in a dozen processes: a process for each file would take up to a second of processor
 * time more, to load modules, Prisma's engine and the OpenAPI document. Each file also runs by itself. Files named
 * `*.alone.test.ts` share no process, because they have hooks for all tests, or replace its timers, settings or user.
 */
import { globSync } from 'node:fs'
import { basename, join } from 'node:path'
import { it } from 'node:test'
import { pathToFileURL } from 'node:url'

const cwd = join(import.meta.dirname, '..')
const groups = globSync('*.test.ts', { cwd: import.meta.dirname }).length

/** Its tests are declared in other files, so their records would not name it. */
const ALONE = ['contract/sdk.test.ts']

/** Other suites run the files in other folders, and `*.processes`. */
const SUITES = [
  'contract/{,admin,agents,report,workspaces}/*.test.ts',
  'integration/{,!(agents|agentd|agent-proxy|openclaw|sandboxes|standalone|storage)/**}/*.test.ts',
]

/** The files of all groups, below `test`. */
export const files = globSync(SUITES, { cwd, exclude: ['**/*.{processes,alone}.test.ts', ...ALONE] }).sort()

/**
 * Runs the tests of a group once all of its files are loaded: if the tests of those loaded so far ended first, Node would
 * run the `after` hooks of all. @param filename of the group: its number and `.test.ts`.
 */
export async function runGroup(filename: string): Promise<void> {
  const loaded = Promise.withResolvers<void>()
  it('the files of the group load', () => loaded.promise)
  const number = Number.parseInt(basename(filename), 10)
  const own = files.filter((_, index) => index % groups === number % groups)
  for (const file of own) await import(pathToFileURL(join(cwd, file)).href)
  loaded.resolve()
}
