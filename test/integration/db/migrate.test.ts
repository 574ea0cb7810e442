/** Migrations, while processes of the version before go on with their work. */
import assert from 'node:assert/strict'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { migrate, schemaState } from '../../../src/db/migrate.ts'
import { createPool, type Pool } from '../../../src/db/pool.ts'
import { createLogger } from '../../../src/log.ts'
import { type EmbeddedPostgres, startPostgres } from '../../../src/standalone/postgres.ts'
import { migrateTo } from '../../support/former-schema.ts'

/** The last migration of 0.1.0. */
const FORMER = '0008_ownership'

const log = createLogger('test', 'silent')
let dir: string
let postgres: EmbeddedPostgres
let pool: Pool

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'berth-migrate-'))
  await chmod(dir, 0o711)
  postgres = await startPostgres({ dataDir: dir, log })
  pool = createPool(postgres.url, 4, log)
})
beforeEach(async () => {
  await pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  await migrateTo(pool, FORMER)
})
after(async () => {
  await pool?.end()
  await postgres?.stop()
  await rm(dir, { recursive: true, force: true })
})

/** Resolves when the migration waits for a lock that another session holds. */
async function migrationWaits(): Promise<void> {
  for (;;) {
    const { rowCount } = await pool.query(
      `SELECT FROM pg_stat_activity WHERE application_name = 'berth-migrate' AND wait_event_type = 'Lock'`,
    )
    if (rowCount) return
    await sleep(20)
  }
}

describe('the update from 0.1.0', () => {
  // Handlers change the row of a file or an agent and end its operation; a request is accepted the other way around.
  for (const [first, second] of [
    ['file', 'operation'],
    ['operation', 'file'],
    ['agent', 'operation'],
    ['operation', 'worker'],
    ['worker', 'operation'],
  ] as const)
    it(`the update from 0.1.0 lets a transaction end that has changed ${first} and then changes ${second}`, {
      timeout: 30_000,
    }, async () => {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        await client.query(`LOCK TABLE ${first} IN ROW EXCLUSIVE MODE`)
        const migrated = migrate(pool)
        await Promise.race([migrationWaits(), migrated])
        await client.query(`LOCK TABLE ${second} IN ROW EXCLUSIVE MODE`)
        await client.query('COMMIT')
        await migrated
        assert.equal(await schemaState(pool), 'current')
      } finally {
        client.release()
      }
    })
})
