import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { change, type Result, showRatio, verdict } from '../../bench/support/report.ts'
import { addResults, byName, intoPage, newRun, readRun, writeRun } from '../../bench/support/runs.ts'
import { useFolder } from '../../support/folder.ts'

const rate = (ratio: number): Result => ({ what: 'requests', berth: '10 /s', bare: '20 /s', ratio })
const time = (ratio: number): Result => ({ what: 'latency', berth: '10 ms', bare: '5 ms', ratio })

test('a benchmark goal is met at its limit, missed beyond it, and undecided without a ratio', () => {
  assert.equal(verdict({ ...rate(0.6), goal: { atLeast: 0.6 } }), 'met')
  assert.equal(verdict({ ...rate(0.59), goal: { atLeast: 0.6 } }), 'missed')
  assert.equal(verdict({ ...time(1.5), goal: { atMost: 1.5 } }), 'met')
  assert.equal(verdict({ ...time(1.51), goal: { atMost: 1.5 } }), 'missed')
  assert.equal(verdict({ what: 'x', berth: '1 ms', goal: { atMost: 1 } }), undefined)
  assert.equal(verdict(rate(0.1)), undefined)
})

test('a slower benchmark is detected by its goal, or without one by whether it is a rate', () => {
  assert.equal(change(rate(0.5), rate(0.8)), 'slower')
  assert.equal(change(rate(0.8), rate(0.5)), 'faster')
  assert.equal(change(time(0.8), time(0.5)), 'slower')
  assert.equal(change(time(0.5), time(0.8)), 'faster')
  assert.equal(change(time(1.05), time(1)), '')
  const speedup: Result = { what: 'list', berth: '5 ms', ratio: 50, goal: { atLeast: 50 } }
  assert.equal(change(speedup, { ...speedup, ratio: 280 }), 'slower')
  assert.equal(change(speedup, undefined), 'new')
  assert.equal(change({ what: 'x', berth: '1 MB' }, { what: 'x', berth: '9 MB' }), '')
})

test('a benchmark ratio is shown with at least two digits', () => {
  assert.deepEqual(
    [0.0021, 0.064, 0.62, 1.5, 284.4].map((ratio) => showRatio(rate(ratio))),
    ['0.0021', '0.064', '0.62', '1.50', '284'],
  )
})

test('a benchmark run is read back from its file, and two results of one name are rejected', async (t) => {
  const dir = await useFolder('berth-', t)
  const run = newRun()
  addResults(run, 'accept', [rate(0.7), time(1.2)])
  assert.throws(() => addResults(run, 'accept', [rate(0.5)]), /two results are named accept\/requests/)
  const path = join(dir, 'run.json')
  await writeRun(path, run)
  assert.equal(byName(await readRun(path), 'accept').get('requests')?.ratio, 0.7)
  assert.equal(byName(await readRun(path), 'pin').size, 0)
  await writeFile(path, '{}')
  await assert.rejects(readRun(path), /run\.json is no result of --json: it has no rows/)
})

test('a benchmark run replaces its own rows on the page and keeps other rows with their date', () => {
  const mark = '<!-- written by: npm run bench -- --docs -->\n'
  const end = '<!-- end of what is written -->\n'
  const former =
    '| `accept` | requests | 1 /s |  | 0.10 |  |  | 2026-01-01 |\n| `pin` | a file | 2 s |  |  |  |  | 2026-01-02 |\n'
  const run = newRun()
  addResults(run, 'accept', [{ ...rate(0.5), goal: { atLeast: 0.6 } }])
  const page = intoPage(`Before.\n${mark}${former}${end}After.\n`, run, ['pin', 'accept'])
  const day = run.at.slice(0, 10)
  assert.ok(page.startsWith(`Before.\n${mark}The last run was on `), page)
  assert.ok(
    page.endsWith(
      `|---|\n| \`pin\` | a file | 2 s |  |  |  |  | 2026-01-02 |\n| \`accept\` | requests | 10 /s | 20 /s | 0.50 | ≥ 0.6 | **missed** | ${day} |\n${end}After.\n`,
    ),
    page,
  )
  assert.equal(intoPage(page, run, ['pin', 'accept']), page)
  assert.throws(() => intoPage('no marks', run, []), /the page lacks/)
})
