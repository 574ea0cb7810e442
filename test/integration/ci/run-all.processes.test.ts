/** The CI runner on small suites: second tries, failures without a second try, and the output. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, describe, it } from 'node:test'
import { flakyLine } from '../../../scripts/ci/flaky.ts'
import { type Plan, runAll, type Settings } from '../../../scripts/ci/run-all.ts'
import type { Step, StepResult } from '../../../scripts/ci/step.ts'
import { until } from '../../support/processes.ts'

const dir = mkdtempSync(join(tmpdir(), 'berth-ci-test-'))
after(() => rmSync(dir, { recursive: true }))
let files = 0

/** A file with one test. @param body can use `tries`, the number of this try, starting with 1. */
function fileOf(body: string): string {
  const file = join(dir, `${++files}.test.mjs`)
  writeFileSync(
    file,
    `import { appendFileSync, readFileSync } from 'node:fs'
    import { describe, it } from 'node:test'
    appendFileSync('${file}.tries', '.')
    const tries = readFileSync('${file}.tries', 'utf8').length
    describe('suite', () => { ${body} })`,
  )
  return file
}
const test = (body: string) => fileOf(`it('works', () => { ${body} })`)
const FAIL = `throw new Error('not this time\\nmore')`
/** Without a process for each file, because that is cheaper. */
const step = (...parts: string[]): Step => ({
  name: 'suite',
  run: [process.execPath, '--test', '--test-isolation=none', ...parts].join(' '),
})

async function run(plan: Partial<Plan>, settings: Partial<Settings> = {}) {
  const said: string[] = []
  const outcome = await runAll(
    { first: [], chains: [], slots: 1, last: [], tools: {}, ...plan },
    {
      dir: mkdtempSync(join(dir, 'run-')),
      say: (text) => said.push(text),
      listed: [],
      earlier: [],
      date: '2026-11-28',
      commit: 'abcdef0123456',
      ...settings,
    },
  )
  return { ...outcome, said: said.join('\n') }
}
/** As the reporter names it. */
const shown = (file: string) => file.replace(`${dir}/`, '')

describe('a failing file', () => {
  it('a file that passes on its second try is flaky, and the run passes', async () => {
    const file = test(`if (tries === 1) ${FAIL}`)
    const isolated = { ...step(), run: `${process.execPath} --test ${test('')} ${file}` }
    const { passed, failed, flakes, broken, said } = await run({ chains: [[isolated]] })
    assert.deepEqual({ passed, failed, broken }, { passed: 2, failed: 0, broken: [] })
    assert.equal(flakes.length, 1)
    assert.match(said, /^FLAKY 2026-11-28 abcdef01 \S+\.test\.mjs: suite > works - not this time$/m)
    assert.ok(flakes[0]?.file.endsWith(shown(file)))
  })
  it('a file that fails in a group of files gets its second try in a process of its own', async () => {
    const [good, file] = [test(''), test(`if (tries === 1) ${FAIL}`)]
    const group = join(dir, 'groups/1.test.mjs')
    mkdirSync(join(dir, 'groups'))
    writeFileSync(group, `import '${good}'; import '${file}'`)
    const isolated = { ...step(), run: `${process.execPath} --test ${group}` }
    const { passed, failed, flakes, said } = await run({ chains: [[isolated]] })
    assert.deepEqual({ passed, failed }, { passed: 2, failed: 0 })
    assert.ok(flakes[0]?.file.endsWith(shown(file)))
    assert.match(said, RegExp(`${RegExp.escape(shown(file))}: try 2, alone`))
  })
  it('a file that fails twice fails the run', async () => {
    const { passed, failed, broken, said } = await run({ chains: [[step(test(''), test(FAIL))]] })
    assert.deepEqual({ passed, failed, broken }, { passed: 1, failed: 1, broken: ['suite'] })
    assert.match(said, /^FAILED \S+ failed 2 times: suite > works - not this time$/m)
  })
  it('more than four failing files get no second try', async () => {
    const flaky = Array.from({ length: 5 }, () => test(`if (tries === 1) ${FAIL}`))
    const { failed, said } = await run({ chains: [[step(...flaky)]] })
    assert.equal(failed, 5)
    assert.match(said, /5 files failed; up to 4 get a second try/)
  })
  it('a failing file of a final step gets no second try', async () => {
    const final = { ...step(test(`if (tries === 1) ${FAIL}`)), isFinal: true }
    assert.equal((await run({ chains: [[final]] })).failed, 1)
  })
  it('a file that was flaky before fails the run unless test/flaky.md lists it', async () => {
    const flaky = () => ({ chains: [[step(test(`if (tries === 1) ${FAIL}`))]] })
    const plan = flaky()
    const { flakes } = await run(flaky())
    const earlier = flakes.map((flake) => ({
      ...flake,
      date: '2026-11-20',
      file: flake.file.replace(/\d+\.test/, `${files - 1}.test`),
    }))
    const again = await run(plan, { earlier })
    assert.equal(again.failed, 1)
    assert.match(again.said, /is flaky again: fix it, or list it/)
    assert.match(flakyLine(flakes[0] as (typeof flakes)[0]), /^FLAKY/)
  })
})

describe('a listed file', () => {
  const listed = (file: string) => [
    { date: '2026-11-28', file: relative(process.cwd(), file), test: 'suite > works' },
  ]
  it('a listed file runs three times, and is clean if all pass', async () => {
    const file = test('')
    const { clean, said } = await run({ chains: [[step(file)]] }, { listed: listed(file) })
    assert.deepEqual(Object.values(clean), [true])
    assert.match(said, /try 3, alone/)
  })
  it('a listed file that fails once of three times is flaky', async () => {
    const file = test(`if (tries === 2) ${FAIL}`)
    const { clean, failed, flakes } = await run({ chains: [[step(file)]] }, { listed: listed(file) })
    assert.deepEqual([Object.values(clean), failed, flakes.length], [[false], 0, 1])
  })
  it('a listed file that fails twice of three times fails the run', async () => {
    const file = test(`if (tries !== 2) ${FAIL}`)
    assert.equal((await run({ chains: [[step(file)]] }, { listed: listed(file) })).failed, 1)
  })
})

describe('a step', () => {
  it('a step that fails without a failing test fails the run, which reports only passed steps', async () => {
    const steps = [
      { name: 'check', run: 'echo no; exit 1' },
      { name: 'audit', run: 'true' },
    ]
    const reported: string[] = []
    const passed = ({ step }: StepResult) => reported.push(step.name)
    const { failed, said } = await run({ chains: [steps] }, { passed })
    assert.equal(failed, 1)
    assert.deepEqual(reported, ['audit'])
    assert.match(said, /no\n-- check: 0 passed, 1 failed/)
  })
  it('a step fails if its tests pass and its command fails', async () => {
    const { failed } = await run({ chains: [[{ ...step(test('')), run: `${step(test('')).run}; exit 2` }]] })
    assert.equal(failed, 1)
  })
  it('a step whose tool cannot be installed fails with the log of the tool', async () => {
    const tools = { kubo: { run: 'echo no compiler; exit 1', lane: 'builds' } } as const
    const { failed, said } = await run({ chains: [[{ ...step(test('')), needs: ['kubo'] }]], tools })
    assert.equal(failed, 1)
    assert.match(said, /kubo could not be installed:\nno compiler/)
  })
  it('a step gets the variables of its tools', async () => {
    const tools = {
      kubo: { run: 'echo building; echo /path/to/ipfs', variable: 'KUBO', lane: 'builds' },
    } as const
    const needy = { name: 'needy', run: '[ "$KUBO" = /path/to/ipfs ]', needs: ['kubo'] }
    assert.equal((await run({ chains: [[needy]], tools })).failed, 0)
  })
  it('the first chains run side by side, and all others after them', async () => {
    const [met, done] = ['met', 'done'].map((name) => join(dir, name))
    const wait = `timeout 30 sh -c 'until [ -e ${met} ]; do sleep 0.1; done'`
    const waits = { name: 'waits', run: `${wait} && touch ${done}` }
    const meets = { name: 'meets', run: `touch ${met}` }
    const later = { name: 'later', run: `[ -e ${done} ]` }
    assert.equal((await run({ first: [[waits], [meets]], chains: [[later]] })).failed, 0)
  })
  it('an interrupted run ends what runs, and starts no other step', async () => {
    const [begun, ended, other] = ['begun', 'ended', 'other'].map((name) => join(dir, name))
    const stop = new AbortController()
    const long = {
      name: 'long',
      run: `trap 'sleep 0.1; touch ${ended}; exit' INT; touch ${begun}; sleep 600 & wait`,
    }
    const running = run(
      { chains: [[long, { name: 'other', run: `touch ${other}` }]] },
      { signal: stop.signal },
    )
    await until('it runs', () => existsSync(begun ?? ''))
    stop.abort(new Error('interrupted'))
    await assert.rejects(running, /interrupted/)
    assert.deepEqual(
      [ended, other].map((path) => existsSync(path ?? '')),
      [true, false],
    )
  })
  it('a step says what it cost, and the summary lists what no step ran, which fails a run of all', async () => {
    const skipping = fileOf(`it('pins', { skip: 'no Kubo' }, () => {}); it('works', () => {})`)
    const { said } = await run({ first: [[step(skipping)]] })
    assert.match(said, /-- suite: 1 passed, 0 failed, \d+ s, [\d?]+ CPU-s/)
    assert.match(said, /Skipped, by what was missing:\n {2}no Kubo:\n {4}\S+ > suite > pins/)
    const whole = await run({ first: [[step(skipping)]] }, { byHand: [] })
    assert.equal(whole.failed, 1)
    assert.match(whole.said, /^FAILED \S+ > suite > pins ran in no step: no Kubo$/m)
    const running = fileOf(`it('pins', () => {})`)
    assert.equal((await run({ first: [[step(skipping), step(running)]] }, { byHand: [] })).failed, 0)
  })
})
