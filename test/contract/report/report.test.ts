/** The contract page: which records prove a row, and that rows, tests and the page agree. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import type { TestRecord } from '../../../scripts/ci/records.ts'
import { flawsOf, renderPage } from './page.ts'
import { declares, passedProofs } from './proofs.ts'
import { sections } from './rows.ts'

const read = (path: string) => readFile(new URL(path, import.meta.url), 'utf8')

describe('proofs', () => {
  const record = (path: string, status: TestRecord['status'], type: TestRecord['type'] = 'test') => ({
    file: 'test/contract/openclaw/chat.test.ts',
    names: path.split(' > '),
    status,
    type,
  })
  it('a proof is a passed test, named by its file and the suites around it', () => {
    const records = [
      JSON.parse('{"command": ["node", "--test"], "env": {}}'),
      record('chat > deeper > last', 'passed'),
      record('chat > deeper', 'passed', 'suite'),
      record('chat > skipped', 'skipped'),
      record('chat > failed', 'failed'),
      record('chat', 'failed', 'suite'),
      record('alone', 'passed'),
    ]
    const proofs = ['openclaw/chat > chat > deeper > last', 'openclaw/chat > alone']
    assert.deepEqual([...passedProofs(records)], proofs)
  })
  it('a proof may fail in one run and pass in another', () => {
    const records = [record('retried', 'failed'), record('retried', 'passed'), record('retried', 'failed')]
    assert.deepEqual([...passedProofs(records)], ['openclaw/chat > retried'])
  })
})

describe('the source of a test file', () => {
  const source = String.raw`
describe('outer', () => {
  it("has 'quotes' and \"escapes\"", () => {})
  describe('inner', () => {
    it(
      'on its own line',
      () => {},
    )
  })
  it('short', () => {})
  for (const [what, { length }] of CASES)
    it(@is #{length} for #{JSON.stringify({ what })} (#{@a #{what}@})@, () => {})
  it('cut'.slice(1), () => {})
  describe(path, () => {
    it('of a variable', () => {})
  })
  it(path, () => {})
})
for (const network of NETWORKS) {
  it('beside', () => {})
}
it.skip('skipped', () => {})
// it('in a comment', () => {})
`
    .replaceAll('@', '`')
    .replaceAll('#', '$')
  const declared = (path: string) => declares(source, path.split(' > '))

  it('declared tests are found by strings and templates, in suites with any title', () => {
    const paths = [
      `outer > has 'quotes' and "escapes"`,
      'outer > inner > on its own line',
      'outer > is 400 for {"what":"two\nlines"} (a case)',
      'outer > /path > of a variable',
      'beside',
    ]
    assert.deepEqual(paths.filter(declared), paths)
  })
  it('suites, and tests with another title or suite, are not declared tests', () => {
    const paths = [
      'outer',
      'outer > inner',
      'outer > on its own',
      'outer > is 400 for (a case) and more',
      'outer > on its own line',
      'inner > on its own line',
      'outer > short > is 400 for {} (a case)',
      'outer > cut',
      'outer > ut',
      'outer > of a variable',
      'outer > any text',
      'outer > beside',
      'skipped',
      'in a comment',
    ]
    assert.deepEqual(paths.filter(declared), [])
  })
})

describe('contract rows', () => {
  it('a contract row is proven if it has proofs and all of them passed', () => {
    const passed = new Set(['a > b'])
    const rows: [string, ...string[]][] = [['x', 'a > b'], ['y'], ['z', 'a > b', 'a > c', 'a > d']]
    assert.deepEqual(flawsOf([{ title: 'T', rows }], passed), [
      'T: y: no test proves it',
      'T: z: not proven by a > c; a > d',
    ])
  })
  it('proofs in files that did not run wait for their turn', () => {
    const rows: [string, ...string[]][] = [['x', 'ran > b', 'other > c']]
    assert.deepEqual(flawsOf([{ title: 'T', rows }], new Set(), new Set(['ran'])), [
      'T: x: not proven by ran > b',
    ])
  })
  it('each contract row has proofs, and each proof is a test that its file declares', async () => {
    const declared = new Set<string>()
    for (const proof of new Set(sections.flatMap(({ rows }) => rows.flatMap(([, ...proofs]) => proofs)))) {
      const [file, ...names] = proof.split(' > ')
      if (declares(await read(`../${file}.test.ts`), names)) declared.add(proof)
    }
    assert.deepEqual(flawsOf(sections, declared), [])
  })
  it('docs/contract.md shows the contract rows with their proofs', async () => {
    assert.ok(
      (await read('../../../docs/contract.md')) === renderPage(sections),
      'docs/contract.md is out of date',
    )
  })
  it('each contract row appears once in its section', () => {
    for (const { title, rows } of sections)
      assert.equal(new Set(rows.map(([says]) => says)).size, rows.length, title)
  })
})
