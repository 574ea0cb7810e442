/** Tables partitioned by day, and the immutability of `audit` rows. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { migrate } from '../../../src/db/migrate.ts'
import { dropPartitions, makePartition, makePartitions, partitionsOf } from '../../../src/db/partitions.ts'
import { transaction } from '../../../src/db/pool.ts'
import { auditRow, writeAudit } from '../../../src/db/statements/audit.ts'
import { useDatabase } from '../../support/database.ts'

// Migrate now, because the databases of the other tests may have been migrated yesterday.
const database = await useDatabase({ isEmpty: true })
await migrate(database.pool)

const write = (id: string) =>
  database.pool.query(
    `INSERT INTO audit (id, created_at, via, action, resource) VALUES ($1, now(), 'terminal', 'a', 'b')`,
    [id],
  )
/** The lowest id of a day. */
const idOf = (day: string) => {
  const hex = Date.parse(day).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000001`
}

describe('tables by day', () => {
  it('a migrated database has the partitions of yesterday, today and the next week', async () => {
    assert.equal((await partitionsOf(database.pool, 'audit')).length, 9)
    await write(uuidv7())
    for (const days of [-1, 7]) {
      const day = new Date(Date.now() + days * 86_400_000)
      await write(idOf(day.toISOString().slice(0, 10)))
    }
  })

  it('missing partitions are created once by concurrent processes', async () => {
    const [first = ''] = await partitionsOf(database.pool, 'audit')
    await database.pool.query(`DROP TABLE ${first}`)
    await Promise.all(Array.from({ length: 8 }, () => makePartitions(database.pool)))
    assert.equal((await partitionsOf(database.pool, 'audit'))[0], first)
  })

  it('writing an audit entry creates missing partitions, as after a week of sleep', async () => {
    const names = await partitionsOf(database.pool, 'audit')
    await database.pool.query(`DROP TABLE ${names.join(', ')}`)
    const { pool } = database
    const nobody = {
      workspaceId: null,
      userId: null,
      keyId: null,
      agentId: null,
      address: null,
      userAgent: null,
    }
    const nothing = {
      method: null,
      route: null,
      resource: '',
      status: null,
      errorCode: null,
      requestId: null,
    }
    const entry = () => auditRow({ via: 'terminal', action: 'awake', ...nobody, ...nothing })
    await Promise.all(Array.from({ length: 4 }, () => writeAudit(pool, [entry()])))
    const { rows } = await pool.query("SELECT FROM audit WHERE action = 'awake'")
    assert.equal(rows.length, 4)
    assert.equal((await partitionsOf(database.pool, 'audit')).length, 9)
  })

  it('partitions are created and dropped during an open transaction', async () => {
    await transaction(database.pool, async (client) => {
      await client.query('SELECT FROM audit LIMIT 1')
      await makePartition(database.pool, 'audit', '20200101')
    })
    await write(idOf('2020-01-01'))
    await makePartition(database.pool, 'audit', '20200102')
    await write(idOf('2020-01-02'))
    await assert.rejects(write(idOf('2020-01-03')), { code: '23514' })
  })

  it('only days beyond the retention are removed', async () => {
    const days = (Date.now() - Date.parse('2020-01-02')) / 86_400_000
    await dropPartitions(database.pool, 'audit', Math.floor(days))
    const { rows } = await database.pool.query<{ id: string }>('SELECT id FROM audit ORDER BY id LIMIT 1')
    assert.equal(rows[0]?.id, idOf('2020-01-02'))
  })

  it('a process whose clock is ahead drops no unfinished day', async (t) => {
    const before = await partitionsOf(database.pool, 'audit')
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 100 * 86_400_000 })
    await dropPartitions(database.pool, 'audit', 9000)
    assert.deepEqual(await partitionsOf(database.pool, 'audit'), before)
  })

  it('a partition that is being read is dropped by a later call', async () => {
    await transaction(database.pool, async (client) => {
      await client.query('SELECT FROM audit_20200102')
      await dropPartitions(database.pool, 'audit', 1)
    })
    const names = await partitionsOf(database.pool, 'audit')
    assert.ok(names.includes('audit_20200102'))
    await dropPartitions(database.pool, 'audit', 1)
    assert.equal((await partitionsOf(database.pool, 'audit')).length, 9)
  })

  it('audit rows can be neither changed nor removed, in the table or in a partition', async () => {
    const id = uuidv7()
    await write(id)
    const today = new Date().toISOString().slice(0, 10).replaceAll('-', '')
    for (const table of ['audit', `audit_${today}`])
      for (const change of [
        `UPDATE ${table} SET action = 'x'`,
        `DELETE FROM ${table}`,
        `TRUNCATE ${table}`,
        `INSERT INTO audit SELECT * FROM ${table} WHERE id = '${id}' ON CONFLICT (id) DO UPDATE SET action = 'x'`,
      ])
        await assert.rejects(database.pool.query(change), { code: '42501' }, change)
    const { rows } = await database.pool.query('SELECT FROM audit WHERE id = $1', [id])
    assert.equal(rows.length, 1)
  })
})
