/**
 * Runs the files of the contract suite in a dozen processes of `npm test`: a process for each file would take a second
 * of processor time more, to load modules, Prisma's engine and the OpenAPI document. Each file also runs by itself.
 */
import { globSync } from 'node:fs'
import { basename, join } from 'node:path'
import { it } from 'node:test'
import { pathToFileURL } from 'node:url'

const cwd = join(import.meta.dirname, '..')
const groups = globSync('*.test.ts', { cwd: import.meta.dirname }).length

/** Its tests are declared in other files, so their records would not name it. */
const ALONE = ['contract/sdk.test.ts']

/** Files in a folder of this list, or directly in `contract`. Other suites run those of `openclaw` and `*.processes`. */
const FOLDERS = ['', '/admin', '/agents', '/report', '/workspaces']

/** The files of all groups, below `test`. */
export const files = FOLDERS.flatMap((folder) => globSync(`contract${folder}/*.test.ts`, { cwd }))
  .filter((file) => !file.endsWith('.processes.test.ts') && !ALONE.includes(file))
  .sort()

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
