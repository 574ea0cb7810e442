/**
 * A reporter of Node's test runner that writes `docs/contract.md` from a run of the contract suite. It fails the run
 * where a row of the contract is not proven:
 * `node --test … --test-reporter=./test/contract/report/reporter.ts --test-reporter-destination=docs/contract.md`.
 */
import type { TestEvent } from 'node:test/reporters'
import { Outcomes } from './outcomes.ts'
import { flawOf, renderPage } from './page.ts'
import { sections } from './rows.ts'

export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const outcomes = new Outcomes()
  for await (const event of events) outcomes.add(event)
  yield renderPage(sections, outcomes.passed)
  for (const { title, rows } of sections)
    for (const row of rows) {
      const flaw = flawOf(row, outcomes.passed)
      if (!flaw) continue
      console.error(`✖ contract ${title}: ${flaw}`)
      process.exitCode = 1
    }
}
