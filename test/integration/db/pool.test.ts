import assert from 'node:assert/strict'
import type { EventEmitter } from 'node:events'
import { after, before, describe, it } from 'node:test'
import { isDatabaseDown } from '../../../src/db/database-errors.ts'
import { createPool, queryOne, transaction } from '../../../src/db/pool.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'

describe('transaction', () => {
  let database: TestDatabase
  before(async () => {
    database = await startDatabase()
  })
  after(() => database.stop())

  // This happens when a transaction waits for the IPFS node while PostgreSQL restarts.
  it('a dropped connection fails the transaction but not the process', async () => {
    const { pool } = database
    const failed = transaction(pool, async (client) => {
      const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      // Not `once` of node:events, which would also listen for the error.
      const dropped = new Promise((resolve) => (client as unknown as EventEmitter).once('end', resolve))
      await pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid])
      await dropped
      await client.query('SELECT 1')
    })
    await assert.rejects(failed, isDatabaseDown)
    assert.equal((await pool.query('SELECT 1 AS one')).rowCount, 1)
  })
})

describe('a pool on a server whose time zone is not UTC', () => {
  let database: TestDatabase
  before(async () => {
    database = await startDatabase()
    const { name } = await queryOne<{ name: string }>(database.pool, 'SELECT current_database() AS name')
    await database.pool.query(`ALTER DATABASE "${name}" SET timezone = 'Asia/Kolkata'`)
  })
  after(() => database.stop())

  it('Prisma and manual statements read the same times on a server whose time zone is not UTC', async () => {
    const workspaceId = await database.createWorkspace()
    const pool = createPool(database.url, 1, database.log)
    const prisma = createPrisma(pool)
    const expiresAt = new Date('2030-01-01T00:00:00.125Z')
    const key = { workspaceId, name: 'key', publicKey: 'half', secretHash: new Uint8Array(), scopes: [] }
    const { id } = await prisma.apiKey.create({ data: { ...key, expiresAt } })
    const written = await queryOne<{ at: Date }>(
      pool,
      'UPDATE api_key SET revoked_at = now() WHERE id = $1 RETURNING expires_at AS at',
      [id],
    )
    const { revokedAt } = await prisma.apiKey.findUniqueOrThrow({ where: { id } })
    await pool.end()
    assert.deepEqual(written.at, expiresAt)
    const agoMs = Date.now() - Number(revokedAt)
    assert.ok(agoMs >= 0 && agoMs < 60_000, `revoked ${agoMs} ms ago`)
  })
})
