/** The page of the contract: what counts as proven, and that nothing else is shown as such. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import type { TestEvent } from 'node:test/reporters'
import { Outcomes } from './outcomes.ts'
import { flawOf, renderPage } from './page.ts'
import { sections } from './rows.ts'

const file = new URL('../openclaw/chat.test.ts', import.meta.url).pathname
type Kind = 'suite' | 'test'

/** Node's events of a test or suite, and of all that is in it. */
const run = (
  name: string,
  nesting: number,
  inner: object[][] = [],
  end: object = {},
  type: Kind = 'test',
) => [
  { type: 'test:start', data: { name, nesting, file } },
  ...inner.flat(),
  { type: 'test:pass', data: { name, nesting, file, details: { type }, ...end } },
]
const outcomesOf = (...events: object[][]) => {
  const outcomes = new Outcomes()
  for (const event of events.flat()) outcomes.add(event as TestEvent)
  return [...outcomes.passed]
}

describe('a test that passed', () => {
  it('a test that passed is named by its file and the suites around it', () => {
    const inner = [run('first', 1), run('deeper', 1, [run('last', 2)], {}, 'suite')]
    assert.deepEqual(outcomesOf(run('chat', 0, inner, {}, 'suite'), run('alone', 0)), [
      'openclaw/chat > chat > first',
      'openclaw/chat > chat > deeper > last',
      'openclaw/chat > chat > deeper',
      'openclaw/chat > chat',
      'openclaw/chat > alone',
    ])
  })
  it('a test that was skipped, is to be done, failed, or holds nothing has not passed', () => {
    const failed = [
      { type: 'test:start', data: { name: 'failed', nesting: 0, file } },
      { type: 'test:fail', data: { name: 'failed', nesting: 0, file, details: {} } },
    ]
    const skipped = run('skipped', 1, [], { skip: 'no Docker' })
    const events = [run('of none', 0, [skipped], {}, 'suite'), run('later', 0, [], { todo: true }), failed]
    assert.deepEqual(outcomesOf(...events), [])
  })
})

describe('a row', () => {
  it('a row of the contract is proven when all its proofs passed, and there is one', () => {
    const passed = new Set(['a > b'])
    assert.equal(flawOf(['says', 'a > b'], passed), undefined)
    assert.match(flawOf(['says'], passed) ?? '', /^says: no test/)
    assert.equal(flawOf(['says', 'a > b', 'a > c'], passed), 'says: did not pass: a > c')
  })
  it('a row of the contract that is not proven is marked on the page', () => {
    const page = renderPage([{ title: 'T', rows: [['x', 'a > b'], ['y']] }], new Set(['a > b']))
    assert.match(
      page,
      /\| x \| \[a\]\(\.\.\/test\/contract\/a\.test\.ts\): b \|\n\| y \| \*\*not proven\*\* \|/,
    )
  })
  it('a row of the contract names files of tests that are there, and so does docs/contract.md', async () => {
    const proofs = sections.flatMap(({ rows }) => rows.flatMap(([, ...proofs]) => proofs))
    const page = await readFile(new URL('../../../docs/contract.md', import.meta.url), 'utf8')
    const linked = [...page.matchAll(/\]\(\.\.\/test\/contract\/([^)]+)\.test\.ts\)/g)].map(
      ([, name]) => name,
    )
    for (const name of new Set([...proofs.map((proof) => proof.split(' > ')[0]), ...linked]))
      assert.ok(existsSync(new URL(`../${name}.test.ts`, import.meta.url)), name)
  })
  it('a row of the contract is said once in its section', () => {
    for (const { title, rows } of sections)
      assert.equal(new Set(rows.map(([says]) => says)).size, rows.length, title)
  })
})
