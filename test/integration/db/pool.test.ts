import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { isDatabaseDown } from '../../../src/db/errors.ts'
import { transaction } from '../../../src/db/pool.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'

describe('transaction', () => {
  let database: TestDatabase
  before(async () => {
    database = await startDatabase()
  })
  after(() => database.stop())

  // As in a transaction that waits for the IPFS node while PostgreSQL restarts.
  it('fails, and the process lives, when the connection drops between two of its queries', async () => {
    const { pool } = database
    const failed = transaction(pool, async (client) => {
      const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
      // Not `once` of node:events, which would listen for the error as well.
      const dropped = new Promise((resolve) => client.once('end', resolve))
      await pool.query('SELECT pg_terminate_backend($1)', [rows[0].pid])
      await dropped
      await client.query('SELECT 1')
    })
    await assert.rejects(failed, isDatabaseDown)
    assert.equal((await pool.query('SELECT 1 AS one')).rows[0].one, 1)
  })
})
