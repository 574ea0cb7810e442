/** Files by a part of their name: the same pages with and without an index of names. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { makeIndexes } from '../../../src/db/late-indexes.ts'
import { listFiles } from '../../../src/files/files.ts'
import { readNameIndex, wordsToLookUp } from '../../../src/files/name-index.ts'
import { useDatabase } from '../../support/database.ts'

const FILES = 2600

const database = await useDatabase()
const workspace = await database.createWorkspace()
const other = await database.createWorkspace()
for (const [owner, prefix] of [
  [workspace, '01900000-0000'],
  [other, '01900000-0001'],
])
  await database.pool.query(
    `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, host_nodes)
     SELECT ($2 || '-7000-8000-' || lpad(i::text, 12, '0'))::uuid, $1::uuid, 'public', 'pinned', 'x', i::text,
       CASE WHEN i % 1000 = 0 THEN '报告' ELSE 'file' END || ' ' || CASE WHEN i <= 25 THEN 'oldest' WHEN i > $3 - 25 THEN 'newest' ELSE 'middle' END
       || CASE WHEN i % 300 = 0 THEN ' seldom' ELSE '' END || ' no' || i || '.txt', jsonb_build_object('even', (i % 2 = 0)::text), '{}'
     FROM generate_series(1, $3::int) i`,
    [owner, prefix, FILES],
  )
await makeIndexes(database.pool, new AbortController().signal)
await database.pool.query('ANALYZE file')

describe(`files by a part of their name among ${FILES}`, () => {
  async function all(
    search: { name: string; keyvalues: string | null; order: 'ASC' | 'DESC'; limit: number },
    isIndexed: boolean,
  ) {
    const ids: string[] = []
    for (let after: string | undefined, more = true; more; ) {
      const filter = { network: 'public' as const, ...search, after }
      const page = await listFiles(database.pool, workspace, filter, async () =>
        isIndexed ? readNameIndex(database.pool) : undefined,
      )
      ids.push(...page.map(({ id }) => id))
      after = page.at(-1)?.id
      more = page.length === search.limit
    }
    return ids
  }

  for (const [name, count] of [
    ['OLDEST', 25],
    ['newest', 25],
    ['seldom', 8],
    ['le sel', 8],
    ['nowhere', 0],
    ['middle', 2550],
    ['FILE middle No1234.txt', 1],
    ['dle no120', 10],
    ['middle no123_.txt', 0],
    // Fewer than three letters or digits in a row match only the beginning of a name.
    ['报告', 2],
    ['报', 2],
    ['FI', 2598],
    ['no', 0],
    ['. _', 0],
  ] as const)
    for (const order of ['ASC', 'DESC'] as const)
      it(`files with ${name} in their name are ${count}, ${order}, with and without an index`, async () => {
        for (const keyvalues of [null, '{"even":"true"}']) {
          const search = { name, keyvalues, order, limit: count > 100 ? 250 : 11 }
          const without = await all(search, false)
          assert.deepEqual(await all(search, true), without)
          if (keyvalues === null) assert.equal(without.length, count)
          assert.deepEqual(without, order === 'ASC' ? without.toSorted() : without.toSorted().reverse())
        }
      })

  it('words that most names contain are not looked up in the name index', async () => {
    const sample = await readNameIndex(database.pool)
    assert.ok(sample)
    assert.deepEqual(wordsToLookUp('file middle no1234.txt', sample), ['no1234'])
  })
})
