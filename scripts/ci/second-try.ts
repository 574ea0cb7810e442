/**
 * Failing files run once more, one at a time, after everything else: a file that fails twice is broken, otherwise it is
 * flaky.
 */
import { join } from 'node:path'
import { type Flake, LISTED_TRIES, MAX_FILES } from './flaky.ts'
import { readRuns, type SuiteRun, type TestRecord } from './records.ts'
import { brokeDown, recording, runLogged, type StepResult, testsOf } from './step.ts'

export interface Verdict {
  /** Failed tests that passed on another try; they count as passed. */
  flakes: Flake[]
  /** Why the run fails. */
  failures: string[]
  /** Names of the steps that failed for good. */
  broken: string[]
  /** Whether all tries of a listed file passed. */
  clean: Record<string, boolean>
}

interface Settings {
  /** Files of test/flaky.md. */
  listed: string[]
  date: string
  commit: string
  /** Folder for logs and records. */
  dir: string
  say: (line: string) => void
  signal?: AbortSignal
}

type Try = Pick<StepResult, 'code' | 'runs'>

/** A test file, the step that ran it, and how it ran there. */
interface RanFile {
  file: string
  result: StepResult
  run: SuiteRun
}

/**
 * Gives failing files a second try, and listed files two more. No file gets one if something other than a test failed,
 * more than {@link MAX_FILES} files failed, or a step allows none.
 */
export async function tryAgain(results: StepResult[], settings: Settings): Promise<Verdict> {
  const verdict: Verdict = { flakes: [], failures: [], broken: [], clean: {} }
  const files = filesOf(results)
  const failing = files.filter(({ run, file }) => failedTests(run, file).length > 0)
  for (const result of results)
    if (brokeDown(result)) verdict.failures.push(`${result.step.name}: its command ended with ${result.code}`)
  if (failing.length > MAX_FILES)
    verdict.failures.push(`${failing.length} files failed; up to ${MAX_FILES} get a second try`)
  for (const { result, file } of failing)
    if (result.step.isFinal)
      verdict.failures.push(`${result.step.name}: ${file} failed, and its step gets no second try`)
  if (verdict.failures.length > 0)
    return { ...verdict, broken: results.filter(({ code }) => code !== 0).map(({ step }) => step.name) }

  for (const one of files) {
    const isListed = settings.listed.includes(one.file)
    if (!isListed && !failing.includes(one)) continue
    const failed = failing.includes(one) ? [failedTests(one.run, one.file)] : []
    for (let count = 1; count < (isListed ? LISTED_TRIES : 2); count++) {
      settings.say(`${one.file}: try ${count + 1}, alone`)
      const folder = `again-${one.result.step.name}-${one.file}-${count}`.replaceAll(/[^\w.-]/g, '-')
      const again = await runAgain(one, join(settings.dir, folder), settings.signal)
      if (passed(again)) continue
      failed.push(again.runs.flatMap((run) => failedTests(run, one.file)))
    }
    if (failed.length > 1) {
      verdict.failures.push(`${one.file} failed ${failed.length} times: ${reasonsOf(failed)}`)
      verdict.broken.push(one.result.step.name)
    }
    if (failed.length === 1) verdict.flakes.push(...(failed[0] ?? []).map((test) => flakeOf(test, settings)))
    if (isListed) verdict.clean[one.file] = failed.length === 0
  }
  return verdict
}

/** All files that ran. A file that ran in several steps counts for each. */
const filesOf = (results: StepResult[]): RanFile[] =>
  results.flatMap((result) =>
    result.runs.flatMap((run) =>
      [...new Set(run.tests.map(({ file }) => file))].map((file) => ({ file, result, run })),
    ),
  )

const failedTests = (run: SuiteRun, file: string) =>
  testsOf([run], 'failed').filter((test) => test.file === file)

/** Runs one file as its suite did. */
async function runAgain({ file, result, run }: RanFile, dir: string, signal?: AbortSignal): Promise<Try> {
  const { within } = result.step
  const env = recording(join(dir, 'records'), run.env)
  const command = [...(within ? [within] : []), ...run.command, file]
  const code = await runLogged(command, join(dir, 'log'), { env, cwd: run.cwd, signal })
  return { code, runs: readRuns(join(dir, 'records')) }
}

/** A try in which no test ran has proved nothing. */
const passed = ({ code, runs }: Try): boolean => code === 0 && testsOf(runs, 'passed').length > 0

const nameOf = ({ names }: TestRecord): string => names.join(' > ')

const reasonsOf = (failed: TestRecord[][]): string =>
  [...new Set(failed.flat().map((test) => `${nameOf(test)} - ${test.reason}`))].join('; ')

const flakeOf = (test: TestRecord, { date, commit }: Settings): Flake => ({
  date,
  commit,
  file: test.file,
  test: nameOf(test),
  reason: test.reason ?? '',
})
