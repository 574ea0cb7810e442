/** Indexes that no migration creates: who creates them, and that the name index changes no results. */
import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { makeIndexes, missingIndexes } from '../../../src/db/late-indexes.ts'
import { createPool, queryOne } from '../../../src/db/pool.ts'
import { escapeLike } from '../../../src/db/statements/statement.ts'
import { useDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

const NAMES = [
  'Report 2026.pdf',
  'rapport_2026',
  '100% done',
  'a\\b',
  'Ünïcode Straße',
  'x',
  'ab',
  'report',
  null,
]
const PARTS = [
  'report',
  'REPORT',
  'port 2',
  '_2026',
  '%',
  '100%',
  '\\',
  'ÜNÏ',
  'straße',
  'x',
  'ab',
  'zz',
  'no such name',
]

const database = await useDatabase()
const workspace = await database.createWorkspace()
for (const name of NAMES)
  await database.pool.query(
    `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, host_nodes)
     VALUES ($1, $2, 'public', 'pinned', 'x', 'x', $3, '{}', '{}')`,
    [uuidv7(), workspace, name],
  )

describe('late indexes', () => {
  const { signal } = new AbortController()
  beforeEach(() => database.pool.query('DROP INDEX IF EXISTS file_name_part, file_rest_part, file_type'))

  const find = async (part: string) => {
    const { rows } = await database.pool.query<{ name: string }>(
      `SELECT name FROM file WHERE status = 'pinned' AND name ILIKE $1 ORDER BY name`,
      [`%${escapeLike(part)}%`],
    )
    return rows.map(({ name }) => name)
  }

  it('late indexes are created once by concurrent callers', async () => {
    const missing = await missingIndexes(database.pool)
    assert.ok(missing.includes('file_name_part') && missing.includes('file_type'))
    const made = await Promise.all([1, 2, 3].map(() => makeIndexes(database.pool, signal)))
    assert.deepEqual(made, [undefined, undefined, undefined])
    assert.deepEqual(await missingIndexes(database.pool), [])
    assert.equal(await makeIndexes(database.pool, signal), undefined)
  })

  it('a late index is recreated if its creation was interrupted', async () => {
    await makeIndexes(database.pool, signal)
    await database.pool.query(
      `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'file_name_part'::regclass`,
    )
    assert.deepEqual(await missingIndexes(database.pool), ['file_name_part'])
    await makeIndexes(database.pool, signal)
    assert.deepEqual(await missingIndexes(database.pool), [])
  })

  it('the name index changes no results', async () => {
    const without = await Promise.all(PARTS.map(find))
    assert.deepEqual(without[0], ['Report 2026.pdf', 'report'])
    await makeIndexes(database.pool, signal)
    const client = await database.pool.connect()
    try {
      // This leaves the planner no alternative; the connection is closed before the transaction commits.
      await client.query('BEGIN; SET LOCAL enable_seqscan = off')
      await client.query(
        'DROP INDEX file_list, file_content, file_keyvalues, file_size, file_type, file_name_start',
      )
      for (const [i, part] of PARTS.entries()) {
        const statement = `SELECT name FROM file WHERE status = 'pinned' AND name ILIKE $1`
        const values = [`%${escapeLike(part)}%`]
        const { rows: plan } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${statement}`, values)
        if (part.length > 2) assert.match(plan.map((row) => row['QUERY PLAN']).join('\n'), /file_name_part/)
        const { rows } = await client.query<{ name: string }>(`${statement} ORDER BY name`, values)
        assert.deepEqual(
          rows.map(({ name }) => name),
          without[i],
          part,
        )
      }
    } finally {
      client.release(true)
    }
  })

  it('the name index needs no superuser, and a missing permission is reported', async () => {
    const { pool, url } = database
    await pool.query('DROP EXTENSION IF EXISTS pg_trgm')
    const user = `plain_${process.pid}`
    const { database: name } = await queryOne<{ database: string }>(
      pool,
      'SELECT current_database() AS database',
    )
    await pool.query(`CREATE ROLE ${user} LOGIN PASSWORD 'plain'`)
    await pool.query(`ALTER TABLE file OWNER TO ${user}; ALTER TABLE operation OWNER TO ${user}`)
    await pool.query(`GRANT CREATE, USAGE ON SCHEMA public TO ${user}`)
    const address = Object.assign(new URL(url), { username: user, password: 'plain' })
    const plain = createPool(address.href, 1, database.log)
    try {
      assert.match((await makeIndexes(plain, signal)) ?? '', /permission denied to create extension/)
      await pool.query(`GRANT CREATE ON DATABASE "${name}" TO ${user}`)
      assert.equal(await makeIndexes(plain, signal), undefined)
      assert.deepEqual(await missingIndexes(plain), [])
    } finally {
      await plain.end()
      await pool.query(`REASSIGN OWNED BY ${user} TO CURRENT_USER; DROP OWNED BY ${user}; DROP ROLE ${user}`)
    }
  })

  it('late indexes are aborted by a signal and created by the next call', async () => {
    const controller = new AbortController()
    const other = await database.pool.connect()
    try {
      // The index waits for this transaction, which began before it.
      await other.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM file')
      const making = makeIndexes(database.pool, controller.signal)
      setImmediate(() => controller.abort())
      await assert.rejects(making)
      await other.query('COMMIT')
    } finally {
      other.release()
    }
    // The server may continue the work it has begun.
    await until('the indexes exist', async () => {
      await makeIndexes(database.pool, signal)
      return (await missingIndexes(database.pool)).length === 0
    })
  })
})
