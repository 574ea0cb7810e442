/** The plan of a CI run: its turn, the list of flaky tests, and a step for each test file. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { FLAKY_LIST, parseFlakyList, staleRows } from '../../../scripts/ci/flaky.ts'
import { ALWAYS, FIRST, IN_TURN } from '../../../scripts/ci/steps.ts'
import { TOOLS } from '../../../scripts/ci/tools.ts'
import { chooseTurns, type Passes, TURNS } from '../../../scripts/ci/turns.ts'
import { files as grouped } from '../../groups/group.ts'

const cwd = join(import.meta.dirname, '../../..')
const steps = [...FIRST, ...ALWAYS.flat(), ...Object.values(IN_TURN).flat()]

describe('the turn of a run', () => {
  const head = {
    commit: '0000000c',
    since: '2026-11-20T00:00:00Z',
    changed: ['README.md'],
    versionChanged: false,
  }
  const passes: Passes = {
    real: { at: '2026-11-03', commit: '' },
    stack: { at: '2026-11-01', commit: '' },
    chart: { at: '2026-11-02', commit: '' },
    torture: { at: '2026-11-06', commit: '' },
    cluster: { at: '2026-11-04', commit: '' },
    engine: { at: '2026-11-05', commit: '' },
  }
  const turnsOf = (wanted: string | undefined, known: Passes, more: Partial<typeof head> = {}) =>
    chooseTurns(wanted, known, { ...head, ...more }).turns

  it('the turn that has not passed for longest is next', () => {
    assert.deepEqual(turnsOf(undefined, passes), ['stack'])
    const { chart: _, ...others } = passes
    assert.deepEqual(turnsOf(undefined, others), ['chart'])
  })
  it('the turn of a run on a new machine is derived from the commit', () => {
    assert.deepEqual(turnsOf(undefined, {}), ['real'])
    assert.deepEqual(turnsOf(undefined, {}, { commit: '0000000d' }), ['stack'])
  })
  it('the turn of a run is the one whose code has changed', () => {
    assert.deepEqual(turnsOf(undefined, passes, { changed: ['deploy/chart/values.yaml'] }), ['chart'])
    const changed = ['src/sandboxes/kubernetes.ts', 'src/sandboxes/docker/engine.ts']
    assert.deepEqual(turnsOf(undefined, passes, { changed }), ['real'])
  })
  it('the turn of a run can be chosen', () => {
    assert.deepEqual(turnsOf('5', passes), ['cluster'])
    assert.deepEqual(turnsOf('all', passes), [...TURNS])
    assert.throws(() => turnsOf('7', passes), /CI_TURN is all or a number from 1 to 6, not 7/)
  })
  it('a new version runs the turns that have not passed within a day, or else the next one', () => {
    const released = (since: string) => turnsOf(undefined, passes, { versionChanged: true, since })
    assert.deepEqual(released('2026-12-01T00:00:00Z'), [...TURNS])
    assert.deepEqual(released(`${passes.stack?.at}1`), ['stack'])
    assert.deepEqual(released('2026-11-01T00:00:00Z'), ['stack'])
  })
})

describe('the list of flaky tests', () => {
  const page = (row: string) =>
    `# Flaky\n\n| date | file | test | error | cause |\n|---|---|---|---|---|\n${row}\n`

  it('a flaky test may be listed for seven days', () => {
    const rows = parseFlakyList(page('| 2026-11-20 | test/a.test.ts | suite > works | no | a race |'))
    assert.deepEqual(rows, [{ date: '2026-11-20', file: 'test/a.test.ts', test: 'suite > works' }])
    assert.deepEqual(staleRows(rows, new Date('2026-11-27T00:00:00Z')), [])
    assert.deepEqual(staleRows(rows, new Date('2026-11-27T00:00:01Z')), rows)
  })
  it('a row of the list of flaky tests without a date or a file is an error', () => {
    for (const row of ['| soon | test/a.test.ts | works | no | |', '| 2026-11-20 | works | no | | |'])
      assert.throws(() => parseFlakyList(page(row)), /needs a date and a file/)
  })
  it('the committed list of flaky tests can be read', () => {
    parseFlakyList(readFileSync(FLAKY_LIST, 'utf8'))
  })
})

describe('the steps of CI', () => {
  it('each test file is run by some step of CI', () => {
    const { scripts } = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'))
    const commands = steps.map(({ run }) =>
      run.replace(/npm (?:run )?(test[:a-z]*|torture)/g, (_, name) => scripts[name]),
    )
    const patterns = commands.join(' ').match(/[^\s'"]*test\/[^\s'"]+\.test\.ts/g) ?? []
    const run = new Set(globSync(patterns, { cwd }))
    if (run.has('test/groups/1.test.ts')) for (const file of grouped) run.add(`test/${file}`)
    const files = globSync('{test,dashboard/test}/**/*.test.ts', { cwd })
    assert.ok(files.length > 200)
    assert.deepEqual(
      files.filter((file) => !run.has(file)),
      [],
    )
  })
  it('steps and tools of CI need only tools that exist', () => {
    const needed = [...steps, ...Object.values(TOOLS)].flatMap(({ needs = [] }) => needs)
    assert.deepEqual(
      needed.filter((name) => !TOOLS[name]),
      [],
    )
  })
})
