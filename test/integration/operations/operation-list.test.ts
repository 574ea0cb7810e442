/** Lists of operations: the same pages with and without the indexes of kinds. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { makeIndexes } from '../../../src/db/late-indexes.ts'
import { OPERATION_KINDS, type OperationKind, type OperationState } from '../../../src/operations/catalog.ts'
import { listOperations, watchKindIndexes } from '../../../src/operations/operation-list.ts'
import { useDatabase } from '../../support/database.ts'

const database = await useDatabase()
const { pool } = database
const workspace = await database.createWorkspace()
const other = await database.createWorkspace()
for (const [owner, prefix] of [
  [workspace, '01900000-0000'],
  [other, '01900000-0001'],
])
  await pool.query(
    `INSERT INTO operation (id, workspace_id, kind, queue, target_id, state)
     SELECT ($2 || '-7000-8000-' || lpad(i::text, 12, '0'))::uuid, $1::uuid,
       CASE WHEN i % 50 = 0 THEN 'pin.remove' WHEN i % 7 = 0 THEN 'agent.sync' ELSE 'pin.add' END, 'pins', gen_random_uuid(),
       (ARRAY['succeeded', 'queued', 'running', 'failed', 'canceled', 'succeeded'])[1 + i % 6]
     FROM generate_series(1, 600) i`,
    [owner, prefix],
  )
await makeIndexes(pool, new AbortController().signal)
await pool.query('ANALYZE operation')

describe('operations of a workspace', () => {
  const ofAgents = OPERATION_KINDS.filter((kind) => kind.startsWith('agent.'))
  async function all(
    filter: { state?: OperationState; kind?: OperationKind },
    isIndexed: boolean,
    order: 'ASC' | 'DESC',
    readable = OPERATION_KINDS,
  ) {
    const ids: string[] = []
    for (let after: string | undefined, more = true; more; ) {
      const page = await listOperations(
        pool,
        workspace,
        { ...filter, readable, order, after, limit: 9 },
        isIndexed,
      )
      ids.push(...page.map(({ id }) => id))
      after = page.at(-1)?.id
      more = page.length === 9
    }
    return ids
  }

  it('the indexes of kinds are noticed', async () => {
    assert.equal(await watchKindIndexes(pool)(), true)
  })

  for (const [filter, count, readable] of [
    [{}, 84, ofAgents],
    [{ state: 'queued' }, 100],
    [{ state: 'queued' }, 15, ofAgents],
    [{ state: 'failed' }, 14, ofAgents],
    [{ kind: 'pin.remove' }, 12],
    [{ kind: 'pin.remove', state: 'succeeded' }, 4],
    [{ kind: 'pin.add', state: 'queued' }, 85],
    [{ kind: 'agent.push' }, 0],
    [{ kind: 'pin.remove' }, 0, ofAgents],
  ] as [{ state?: OperationState; kind?: OperationKind }, number, OperationKind[]?][])
    it(`operations by ${JSON.stringify(filter)} are the same with and without indexes, of ${(readable ?? OPERATION_KINDS).length} kinds`, async () => {
      for (const order of ['ASC', 'DESC'] as const) {
        const without = await all(filter, false, order, readable)
        assert.deepEqual(await all(filter, true, order, readable), without)
        assert.deepEqual(without, order === 'ASC' ? without.toSorted() : without.toSorted().reverse())
        assert.equal(without.length, count)
      }
    })
})
