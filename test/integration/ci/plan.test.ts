/** The plan of a CI run: its steps in turn, the list of flaky tests, and a step for each test file. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { FLAKY_LIST, parseFlakyList, staleRows } from '../../../scripts/ci/flaky.ts'
import { ALWAYS, FIRST, IN_TURN } from '../../../scripts/ci/steps.ts'
import { TOOLS } from '../../../scripts/ci/tools.ts'
import { chooseSteps, type Passes } from '../../../scripts/ci/turns.ts'
import { files as grouped } from '../../groups/group.ts'

const cwd = join(import.meta.dirname, '../../..')
const steps = [...FIRST, ...ALWAYS, IN_TURN].flat()

describe('the steps in turn', () => {
  const head = { commit: '0000000c', changedSince: (_commit: string): string[] => [] }
  const all = [
    { name: 'docker', run: '', paths: ['src/sandboxes/docker'] },
    { name: 'chart', run: '', paths: ['deploy/chart'] },
    { name: 'torture', run: '' },
    { name: 'tls', run: '' },
    { name: 'demo', run: '' },
  ]
  const passes: Passes = {
    docker: { at: '2026-11-04', commit: 'd0c', cpuSeconds: 400 },
    chart: { at: '2026-11-02', commit: 'c4a', cpuSeconds: 200 },
    torture: { at: '2026-11-01', commit: '70f', cpuSeconds: 600 },
    tls: { at: '2026-11-05', commit: '715', cpuSeconds: 40 },
    demo: { at: '2026-11-03', commit: 'de0', cpuSeconds: 100 },
  }
  const chosen = (known: Passes, more: Partial<typeof head> = {}, wanted?: string) =>
    chooseSteps(all, wanted, known, { ...head, ...more }).steps.map(({ name }) => name)

  it('the steps that have not passed for longest are next, as many as the budget has room for', () => {
    const torture = { at: '2026-11-06', commit: '70f', cpuSeconds: 600 }
    assert.deepEqual(chosen({ ...passes, torture }), ['chart', 'demo', 'tls'])
  })
  it('a step that costs more than the budget runs alone once it is the oldest', () => {
    assert.deepEqual(chosen(passes), ['torture'])
  })
  it('a step that has never passed is next, and on a new machine the commit decides', () => {
    const { tls: _, ...others } = passes
    assert.deepEqual(chosen(others), ['tls'])
    assert.deepEqual(chosen({}), ['torture'])
    assert.deepEqual(chosen({}, { commit: '0000000d' }), ['tls'])
  })
  it('steps whose code has changed since they passed come first', () => {
    const changedSince = (commit: string) => (commit === 'd0c' ? ['src/sandboxes/docker/engine.ts'] : [])
    assert.deepEqual(chosen(passes, { changedSince }), ['docker', 'demo'])
  })
  it('steps in turn can be chosen by name', () => {
    assert.deepEqual(chosen(passes, {}, 't.*e$'), ['torture'])
    assert.deepEqual(chosen(passes, {}, 'all').length, all.length)
    assert.throws(() => chosen(passes, {}, '7'), /CI_TURN is all or a part of a step's name, not 7/)
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
  it('the paths whose change brings a step forward exist', () => {
    const paths = IN_TURN.flatMap((step) => step.paths ?? [])
    assert.deepEqual(
      paths.filter((path) => globSync(`${path}*`, { cwd }).length === 0),
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
