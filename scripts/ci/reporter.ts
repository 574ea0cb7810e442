/**
 * A second reporter of Node's test runner, which `.ci/run` adds to each suite by NODE_OPTIONS. It writes the outcome of
 * each test to a file in the folder CI_RECORDS, with the command and environment that run a file of the suite again
 * (records.ts reads both). It prints nothing.
 */
import { appendFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'
import type { TestRecord } from './records.ts'

// The processes of the tests report to this one, and programs that they start are not part of the run.
delete process.env.NODE_OPTIONS

export default async function* record(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const { CI_RECORDS: dir, ...env } = process.env
  if (!dir) return
  const file = join(dir, `${process.pid}.jsonl`)
  const write = (line: object) => appendFileSync(file, `${JSON.stringify(line)}\n`)
  write({ command: [process.execPath, ...process.execArgv], cwd: process.cwd(), env })
  const names: string[] = []
  for await (const event of events) {
    if (event.type === 'test:start') names.splice(event.data.nesting, Infinity, event.data.name)
    const record = recordOf(event, names)
    if (record) write(record)
  }
}

/**
 * The record of an event; undefined if it is not the end of a test, or only counts failures inside a suite.
 * @param names of the suites and the test that Node reports now. Node reports file by file, in the order of declaration.
 */
export function recordOf({ type, data }: TestEvent, names: string[]): TestRecord | undefined {
  if (type !== 'test:pass' && type !== 'test:fail') return undefined
  const { nesting, name, skip, todo, details } = data
  const record = {
    file: relative(process.cwd(), fileOf(data) ?? ''),
    names: [...names.slice(0, nesting), name],
    type: details.type === 'suite' ? ('suite' as const) : ('test' as const),
  }
  if (skip !== undefined || todo !== undefined)
    return { ...record, status: 'skipped', reason: String(skip ?? todo) }
  if (type === 'test:pass') return { ...record, status: 'passed' }
  const { error } = details as { error: Error & { failureType?: string } }
  if (error.failureType === 'subtestsFailed') return undefined
  const [reason = ''] = error.message.split('\n')
  return { ...record, status: 'failed', reason: reason.slice(0, 300) }
}

/**
 * The file that runs a test by itself. `file` is where it is declared, `entryFile` is the file that ran, which may be a
 * group of test files; a file that cannot be loaded has only the former.
 */
function fileOf({ file, entryFile = file }: { file?: string; entryFile?: string }): string | undefined {
  return entryFile?.includes('/groups/') ? file : entryFile
}
