/**
 * Applies `prisma/migrations/<name>/migration.sql` in order and records them in `_prisma_migrations`, the table of
 * Prisma's own `migrate` command, so that both agree on which migrations have been applied.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { ConfigError } from '../errors.ts'
import { lockSession } from './advisory-locks.ts'
import { isContention } from './database-errors.ts'
import type { Migration } from './migrations.ts'
import { makePartitions } from './partitions.ts'
import type { Pool, Queryable } from './pool.ts'
import { pendingMigrations, refuseHalfRestored } from './schema-state.ts'

/**
 * The longest wait for a lock. All later statements queue behind it, so it must be short enough for requests. It is
 * also below deadlock_timeout (1 s), after which PostgreSQL would fail one of them.
 */
const LOCK_MS = 500
/** The pause between two attempts, in which waiting sessions continue. */
const PAUSE_MS = 1000
const GIVE_UP_MS = 10 * 60_000

export interface MigrateOptions {
  /** Default: all of this version's. The restore of a backup first creates an earlier version's schema. */
  migrations?: Migration[]
  /** Another, existing schema of the database, instead of Berth's own. */
  schema?: string
  /** Continues even if a restore has not ended. */
  isRestoring?: boolean
  /** Called once for each migration that other sessions hold up. */
  onHeldUp?: (name: string) => void
  /** How long other sessions may hold up a migration. */
  giveUpMs?: number
}

/**
 * Brings the schema up to date, including BullMQ's own schema. Several processes may run it at once, and while others
 * use the tables: a migration that does not get a lock within half a second is retried. Returns the names of the
 * applied migrations.
 * @throws if the file of an applied migration has changed since; ConfigError while a restore has not ended, or if a
 *   table stays locked.
 */
export async function migrate(pool: Pool, options: MigrateOptions = {}): Promise<string[]> {
  // A separate connection: a migration, or the wait for another process's migration, may take longer than any other
  // statement.
  const client = new pg.Client({
    connectionString: pool.directUrl,
    application_name: 'berth-migrate',
  })
  await client.connect()
  try {
    await lockSession(client as Queryable, 'migrate')
    if (options.schema) await client.query(`SET search_path = ${client.escapeIdentifier(options.schema)}`)
    if (!options.isRestoring) await refuseHalfRestored(client as Queryable)
    await client.query(`CREATE TABLE IF NOT EXISTS _prisma_migrations (
      id varchar(36) PRIMARY KEY, checksum varchar(64) NOT NULL, finished_at timestamptz,
      migration_name varchar(255) NOT NULL, logs text, rolled_back_at timestamptz,
      started_at timestamptz NOT NULL DEFAULT now(), applied_steps_count integer NOT NULL DEFAULT 0)`)
    const pending = await pendingMigrations(client as Queryable, options.migrations)
    for (const migration of pending) await applyBetweenOthers(client, migration, options)
    await makePartitions(client as Queryable)
    // Loaded only here: checking the schema does not need BullMQ.
    const { runMigrations } = await import('bullmq')
    await runMigrations(client, 'bullmq')
    return pending.map(({ name }) => name)
  } finally {
    // Closing the connection always releases the lock.
    await client.end()
  }
}

async function applyBetweenOthers(
  client: pg.Client,
  migration: Migration,
  { onHeldUp, giveUpMs = GIVE_UP_MS }: MigrateOptions,
): Promise<void> {
  const deadline = performance.now() + giveUpMs
  for (let attempt = 1; ; attempt++) {
    try {
      return await apply(client, migration)
    } catch (error) {
      const { cause } = error as Error
      if (!isContention(cause)) throw error
      if (performance.now() > deadline)
        throw new ConfigError(
          `DATABASE_URL: migration ${migration.name} was held up for ${giveUpMs / 1000} s by other sessions, such as a backup; end them (pg_stat_activity) and run it again`,
          { cause },
        )
      if (attempt === 1) onHeldUp?.(migration.name)
      await delay(PAUSE_MS)
    }
  }
}

/** The migration and its record commit together: a crash leaves neither or both. */
async function apply(client: pg.Client, { name, sql, checksum, needs }: Migration): Promise<void> {
  await client.query('BEGIN')
  try {
    await client.query(`SET LOCAL lock_timeout = ${LOCK_MS}`)
    await client.query(sql)
    await client.query(
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count, logs)
       VALUES ($1, $2, $3, now(), 1, $4)`,
      [randomUUID(), checksum, name, needs ? `needs ${needs}` : null],
    )
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw new Error(`migration ${name} failed: ${(error as Error).message}`, { cause: error })
  }
}
