/** Metrics from the database are correct right after every change, and as cheap over many rows as over none. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { Registry } from 'prom-client'
import { uuidv7 } from 'uuidv7'
import { queryOne } from '../../../src/db/pool.ts'
import { readUsage, sumKeptContent, sumStoredContent } from '../../../src/db/statements/files.ts'
import { readUsed } from '../../../src/db/statements/uploads.ts'
import { addDatabaseMetrics, COUNT_LIMIT, STATEMENTS } from '../../../src/health/database-metrics.ts'
import { recordRepairs } from '../../../src/operations/repairs.ts'
import { useDatabase } from '../../support/database.ts'

const database = await useDatabase()
const workspace = await database.createWorkspace()

/** A new registry each time, because a registry caches what it has read for a moment. */
async function read(name: string): Promise<Map<string, number>> {
  const registry = new Registry()
  addDatabaseMetrics(registry, database.pool)
  const { values } = (await registry.getSingleMetric(name)?.get()) ?? assert.fail(name)
  return new Map(values.map(({ labels, value }) => [Object.values(labels).join(' '), value]))
}

const addFile = async (network: string, status: string, size: number | null) => {
  const id = uuidv7()
  await database.pool.query(
    `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, size)
     VALUES ($1, $2, $3, $4, 'x', 'x', '{}', '{}', $5)`,
    [id, workspace, network, status, size],
  )
  return id
}

describe('pinned files', () => {
  const assertKept = async (expected: { files: number; bytes: number }) => {
    assert.equal((await read('berth_kept_files')).get('private'), expected.files)
    assert.equal((await read('berth_kept_bytes')).get('private'), expected.bytes)
    assert.deepEqual(await readUsage.one(database.pool, workspace), expected)
    const { used } = await readUsed.one(database.pool, workspace)
    assert.equal(used, expected.bytes)
  }

  it('pinned files are counted through their whole life, before and after the sums are merged', async () => {
    await assertKept({ files: 0, bytes: 0 })
    const id = await addFile('private', 'searching', null)
    await assertKept({ files: 0, bytes: 0 })
    const update = (set: string) => database.pool.query(`UPDATE file SET ${set} WHERE id = $1`, [id])
    await update(`status = 'pinned', size = 1000`)
    await assertKept({ files: 1, bytes: 1000 })
    await sumKeptContent.run(database.pool)
    await sumStoredContent.run(database.pool)
    await assertKept({ files: 1, bytes: 1000 })
    await update('size = 1500')
    await addFile('private', 'pinned', 7)
    await assertKept({ files: 2, bytes: 1507 })
    await update('removed_at = now()')
    await assertKept({ files: 1, bytes: 7 })
    await sumKeptContent.run(database.pool)
    await sumStoredContent.run(database.pool)
    await database.pool.query('DELETE FROM file WHERE id = $1', [id])
    await assertKept({ files: 1, bytes: 7 })
    await database.pool.query(`DELETE FROM file WHERE network = 'private'`)
    await Promise.all(
      [sumKeptContent, sumKeptContent, sumStoredContent, sumStoredContent].map((sum) =>
        sum.run(database.pool),
      ),
    )
    await assertKept({ files: 0, bytes: 0 })
  })
})

describe('repairs', () => {
  it('repairs are counted from zero, so that the first increase is visible', async () => {
    assert.equal((await read('berth_reconcile_repairs_total')).get('pins pin missing'), 0)
  })
  it('repairs are counted long after their rows were deleted', async () => {
    await recordRepairs(database.pool, 'operations', 'lease expired', ['a', 'b'])
    await recordRepairs(database.pool, 'operations', 'lease expired', ['c'])
    await database.pool.query('DELETE FROM repair')
    assert.equal((await read('berth_reconcile_repairs_total')).get('operations lease expired'), 3)
  })
})

describe('over 50,000 finished operations, 20,000 queued ones and 20,000 pins', () => {
  before(async () => {
    const { pool } = database
    const client = await pool.connect()
    try {
      // Without a query for the workspace of each row.
      await client.query('SET statement_timeout = 0; SET session_replication_role = replica')
      const fill = (from: number, count: number, kind: string, queue: string, state: string) =>
        client.query({
          text: `INSERT INTO operation (id, workspace_id, kind, queue, target_id, state, created_at, finished_at)
            SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, $1::uuid, $2, $3, $1::uuid, $4,
              now() - interval '1 hour', CASE $4 WHEN 'succeeded' THEN now() END
            FROM generate_series($5::int, $6::int) AS i`,
          values: [workspace, kind, queue, state, from, from + count - 1],
          query_timeout: 600_000,
        } as never)
      await fill(1, 50_000, 'pin.add', 'pins', 'succeeded')
      await fill(2_000_000, 20_000, 'pin.add', 'pins', 'queued')
      await fill(3_000_000, 3, 'agent.provision', 'agents', 'queued')
      await client.query('SET session_replication_role = origin')
      // In batches, as the worker's loop sums them: one sum over all rows may exceed the statement's time limit.
      for (let from = 1; from < 20_000; from += 10_000) {
        await client.query({
          text: `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, size)
            SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, $1::uuid, 'public', 'pinned', 'x', i::text, '{}', '{}', 10
            FROM generate_series($2::int, $2::int + 9999) AS i`,
          values: [workspace, from],
          query_timeout: 600_000,
        } as never)
        await sumKeptContent.run(pool)
      }
      await client.query({ text: 'ANALYZE operation', query_timeout: 600_000 } as never)
    } finally {
      client.release(true)
    }
  })

  it('a scrape over 50,000 finished operations, 20,000 queued ones and 20,000 pins is correct', async () => {
    const operations = await read('berth_operations')
    assert.equal(operations.get('pin.add queued'), COUNT_LIMIT)
    assert.equal(operations.get('agent.provision queued'), 3)
    assert.equal(operations.get('agent.provision running'), 0)
    const oldest = await read('berth_operation_oldest_seconds')
    assert.ok((oldest.get('pins') ?? 0) > 3599)
    assert.equal(oldest.get('storage'), 0)
    assert.equal((await read('berth_kept_bytes')).get('public'), 200_000)
  })

  for (const [name, { text, values }] of Object.entries(STATEMENTS))
    it(`a scrape of a large database reads few rows: ${name}`, async (t) => {
      const explain = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`
      await database.pool.query(explain, values)
      const { 'QUERY PLAN': plans } = await queryOne<{
        'QUERY PLAN': [{ Plan: PlanNode; 'Execution Time': number }]
      }>(database.pool, explain, values)
      const [{ Plan, 'Execution Time': ms }] = plans
      const nodes: PlanNode[] = []
      const collect = (node: PlanNode) => {
        nodes.push(node)
        for (const child of node.Plans ?? []) collect(child)
      }
      collect(Plan)
      for (const node of nodes.filter((one) => one['Node Type'] === 'Seq Scan'))
        assert.ok(!['operation', 'file'].includes(node['Relation Name'] ?? ''), JSON.stringify(node))
      const read = Math.max(...nodes.map((node) => node['Actual Rows'] * node['Actual Loops']))
      assert.ok(read <= COUNT_LIMIT + 100, `${read} rows`)
      t.diagnostic(`${ms} ms, ${read} rows at most, ${Plan['Shared Hit Blocks']} pages`)
    })
})

interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Shared Hit Blocks': number
  Plans?: PlanNode[]
}
