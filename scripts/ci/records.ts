/** The records that reporter.ts wrote during a step. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface TestRecord {
  /** The file that ran, relative to the folder of its run. */
  file: string
  /** Titles of the suites around it and its own, outermost first. */
  names: string[]
  type: 'suite' | 'test'
  status: 'passed' | 'failed' | 'skipped'
  /** Why it was skipped, or the first line of its error. */
  reason?: string
}

/** One call of Node's test runner. */
export interface SuiteRun {
  /** Appended with a file, this runs that file as the suite did. */
  command: string[]
  cwd: string
  env: NodeJS.ProcessEnv
  tests: TestRecord[]
}

/** The runs in a folder of records. A run that was killed has the tests that had ended. */
export function readRuns(dir: string): SuiteRun[] {
  return readdirSync(dir).map((name) => {
    const [head, ...tests] = readFileSync(join(dir, name), 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
    return { ...head, tests }
  })
}
