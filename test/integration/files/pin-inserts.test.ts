/** Pins that arrive at the same time and share statements. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { createPool, type Pool, transaction } from '../../../src/db/pool.ts'
import { PinInserts } from '../../../src/files/pins/pin-inserts.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

const PINS = 200

describe('concurrent pins', () => {
  let database: TestDatabase
  /** Has only the connections of the inserts. */
  let pool: Pool
  let inserts: PinInserts
  before(async () => {
    database = await startDatabase()
    pool = createPool(database.url, 10, database.log)
    inserts = new PinInserts(pool)
  })
  after(async () => {
    await pool?.end()
    await database?.stop()
  })

  const pin = (n: number, name = `file ${n}`) => ({
    cid: `Cid${n}`,
    canonical: `cid${n}`,
    name,
    groupId: null,
    keyvalues: { b: `"${n}"`, a: 'ä\\' },
    hostNodes: n % 2 ? [] : ['one, "two"', '{three}'],
    hostNodesOptional: n % 3 === 0,
  })
  const caller = async () => ({ workspaceId: await database.createWorkspace(), userId: uuidv7() })
  const insertAll = (callers: Awaited<ReturnType<typeof caller>>[]) =>
    Array.from({ length: PINS }, (_, n) => inserts.insert(callers[n % callers.length] as never, pin(n)))

  it('concurrent pins of several workspaces share few statements and keep their workspaces', async () => {
    const callers = [await caller(), await caller()]
    const accepted = await Promise.all(insertAll(callers))
    const { rows: transactions } = await database.pool.query('SELECT DISTINCT xmin::text FROM file')
    assert.ok(transactions.length < PINS / 10, `${transactions.length} transactions`)
    for (const [n, pinned] of accepted.entries()) {
      const asked = pin(n)
      const { rows } = await database.pool.query(
        `SELECT cid, cid_v1 AS canonical, name, group_id AS "groupId", keyvalues, host_nodes AS "hostNodes",
           host_nodes_optional AS "hostNodesOptional", file.workspace_id AS "workspaceId", user_id AS "userId"
         FROM operation JOIN file ON file.id = target_id AND file.workspace_id = operation.workspace_id
         WHERE file.id = $1 AND operation.id = $2 AND state = 'queued' AND kind = 'pin.add'
           AND concurrency_key = 'file:' || file.id`,
        [pinned?.record.id, pinned?.operationId],
      )
      assert.deepEqual(rows, [{ ...asked, ...callers[n % callers.length] }])
      const { cid, name, keyvalues, host_nodes, status } = pinned?.record ?? {}
      assert.deepEqual(
        { cid, name, keyvalues },
        { cid: asked.cid, name: asked.name, keyvalues: asked.keyvalues },
      )
      assert.deepEqual({ host_nodes, status }, { host_nodes: asked.hostNodes, status: 'prechecking' })
    }
  })

  it('a pin that PostgreSQL rejects fails without failing the concurrent pins', async () => {
    const owner = await caller()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => inserts.insert(owner, pin(n, n === 9 ? 'a NUL: \0' : 'a name'))),
    )
    assert.deepEqual(
      outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [n] : [])),
      [9],
    )
    const { rows } = await database.pool.query('SELECT FROM file WHERE workspace_id = $1', [
      owner.workspaceId,
    ])
    assert.equal(rows.length, 19)
  })

  it('concurrent pins that wait for a statement fail with it if nothing could be written', async () => {
    const owner = await caller()
    await transaction(database.pool, async (client) => {
      await client.query('LOCK TABLE file IN EXCLUSIVE MODE')
      /** A statement that is slow to end is cancelled again. */
      const canceled = new Set<string>()
      let haveEnded = false
      const outcomes = Promise.allSettled(insertAll([owner])).finally(() => {
        haveEnded = true
      })
      await until('statements that were canceled', async () => {
        const { rows } = await database.pool.query<{ statement: string }>(
          `SELECT pid || ' ' || query_start AS statement, pg_cancel_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        )
        for (const { statement } of rows) canceled.add(statement)
        return haveEnded
      })
      assert.deepEqual(new Set((await outcomes).map(({ status }) => status)), new Set(['rejected']))
      assert.ok(canceled.size <= 3, `${canceled.size} statements were tried`)
    })
    const [accepted] = await Promise.all(insertAll([owner]))
    assert.ok(accepted)
  })
})
