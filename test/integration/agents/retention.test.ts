/** Which snapshots of a history are kept. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { idAfter, pruneSnapshots } from '../../../src/agents/snapshots/index.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { useDatabase } from '../../support/database.ts'

const database = await useDatabase()
const workspaceId = await database.createWorkspace()

describe('a history', () => {
  /** Creates a history with snapshots of these ages in days, oldest first. @returns the ages that are left. */
  async function pruned(ages: number[], policy: { keep: number; keepDays: number }): Promise<number[]> {
    const { pool } = database
    const { id } = await insertAgentRow(pool, { workspaceId })
    let last: string | undefined
    for (const age of ages) {
      last = idAfter(last)
      // From noon, so that a fraction of a day stays on the same date.
      await pool.query(
        `INSERT INTO snapshot (id, agent_id, workspace_id, user_id, network, cid, commit_sha, commit_object, tree_sha,
           created_at)
         VALUES ($1, $2, $3, $3, 'private', $4, $4, '', '',
           (date_trunc('day', now() AT TIME ZONE 'UTC') + interval '12 hours' - $5 * interval '1 day') AT TIME ZONE 'UTC')`,
        [last, id, workspaceId, `${age}`, age],
      )
    }
    await pruneSnapshots(pool, { id }, policy)
    const { rows } = await pool.query<{ cid: string }>(
      'SELECT cid FROM snapshot WHERE agent_id = $1 ORDER BY id',
      [id],
    )
    return rows.map(({ cid }) => Number(cid))
  }

  it('a history keeps the newest snapshots and the last one of each recent day', async () => {
    const ages = [9, 3.2, 3.1, 2.3, 2.1, 1.2, 1.1, 0.3, 0.2, 0.1]
    assert.deepEqual(await pruned(ages, { keep: 2, keepDays: 0 }), [0.2, 0.1])
    assert.deepEqual(await pruned(ages, { keep: 2, keepDays: 1 }), [0.2, 0.1])
    assert.deepEqual(await pruned(ages, { keep: 2, keepDays: 3 }), [2.1, 1.1, 0.2, 0.1])
    assert.deepEqual(await pruned(ages, { keep: 1, keepDays: 4 }), [3.1, 2.1, 1.1, 0.1])
    assert.deepEqual(await pruned(ages, { keep: 10, keepDays: 0 }), ages)
  })
  it('a history releases the content of a snapshot that is removed', async () => {
    await pruned([0.4, 0.3], { keep: 1, keepDays: 0 })
    const { rows } = await database.pool.query(
      `SELECT input FROM operation WHERE kind = 'content.release' AND input->>'cid' = '0.4'`,
    )
    assert.deepEqual(rows, [{ input: { network: 'private', cid: '0.4' } }])
  })
  it('a history stays in order even if a clock was set back', () => {
    const later = '0199ffff-ffff-7fff-bfff-ffffffffffff'
    const future = `ffff${later.slice(4)}`
    assert.ok(idAfter(undefined) > later)
    assert.ok(idAfter(future.replace('ffff', 'f000')) > future.replace('ffff', 'f000'))
  })
})
