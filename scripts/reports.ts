/**
 * Tests for problems that users of similar systems have reported. Their names end in `[report: KIND]`. `npm run
 * test:reports` runs them, `-- KIND` runs one kind, and `-- --list` lists them. Tests that need engines, Docker or Kubo
 * are skipped without these parts, as in their own suites.
 */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'

const FILES = '{src,workers,agentd,test,dashboard/test}/**/*.ts'
const NAME = /(['"`])((?:(?!\1).)*)\[report: ([^\]]+)\]\1/g

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { list: { type: 'boolean', default: false } },
})
const wanted = positionals.join(' ')
/** Its rows quote test names. */
const PAGE = 'test/contract/report/'

const tests = globSync(FILES)
  .filter((file) => !file.startsWith(PAGE))
  .sort()
  .flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(NAME)].map(([, , name = '', kind = '']) => ({
      file,
      name: name.trim(),
      kind,
    })),
  )
  .filter(({ kind }) => !wanted || kind === wanted)

if (tests.length === 0) {
  console.error(wanted ? `No test keeps a report of ${wanted}.` : 'No test keeps a report.')
  process.exitCode = 1
} else if (values.list) {
  for (const [kind, ofKind] of Object.entries(Object.groupBy(tests, ({ kind }) => kind)).sort())
    console.log(`${kind}\n${ofKind?.map(({ file, name }) => `  ${name}  (${file})`).join('\n')}`)
  console.log(`${tests.length} tests`)
} else {
  const files = new Set(tests.flatMap(({ file }) => runnersOf(file)))
  const pattern = wanted ? `\\[report: ${wanted}\\]` : '\\[report: '
  const { status } = spawnSync(
    process.execPath,
    [
      '--import=./test/support/async-context.ts',
      '--test',
      '--test-timeout=600000',
      '--test-concurrency=2',
      '--test-global-setup=test/contract/setup.ts',
      `--test-name-pattern=${pattern}`,
      ...files,
    ],
    { stdio: 'inherit' },
  )
  process.exitCode = status ?? 1
}

/**
 * The files that run the tests of a file: the file itself, or for cases that several drivers share, the test files next
 * to it and one folder up.
 */
function runnersOf(file: string): string[] {
  if (file.endsWith('.test.ts')) return [file]
  return globSync([`${dirname(file)}/*.test.ts`, `${dirname(dirname(file))}/*.test.ts`])
}
