/** Outcomes of the tests of a run, by `file > suite > test`. */
import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

const SUITE_FOLDER = new URL('..', import.meta.url).pathname

/** The name of a file in proofs: below `test/contract`, without `.test.ts`. */
const fileName = (path: string): string => relative(SUITE_FOLDER, path).replace(/\.test\.ts$/, '')

export class Outcomes {
  /** Tests that passed, and suites with at least one that did and none that failed. */
  readonly passed = new Set<string>()
  /** Names of the suites and the test that run now, by their depth. Of one file at a time: Node reports so. */
  #names: string[] = []

  add({ type, data }: TestEvent): void {
    if (type === 'test:start') this.#names = [...this.#names.slice(0, data.nesting), data.name]
    if (type !== 'test:pass' || !data.file) return
    if (data.skip !== undefined || data.todo !== undefined) return
    const path = [fileName(data.file), ...this.#names.slice(0, data.nesting), data.name]
    const name = path.join(' > ')
    // A suite is told after all that is in it.
    if (data.details.type === 'suite' && ![...this.passed].some((test) => test.startsWith(`${name} > `)))
      return
    this.passed.add(name)
  }
}
