/**
 * Applies `prisma/migrations/<name>/migration.sql` in order and records them in `_prisma_migrations`,
 * the table of Prisma's own `migrate` command, so that both agree on what has been applied.
 */
import { createHash, randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'
import { ConfigError } from '../errors.ts'
import { lockSession } from './advisory-locks.ts'
import { type Pool, type Queryable, queryOne } from './pool.ts'

const FOLDER = new URL('../../prisma/migrations/', import.meta.url)

interface Migration {
  name: string
  sql: string
  checksum: string
}

/**
 * Brings the schema up to date, BullMQ's own schema included. Safe to run from several processes at
 * once. Returns the names of the migrations that were applied.
 * @param restoring for the restore of a backup: `upTo` leaves the schema at an earlier version's last migration; `schema`
 *   names another one of the database, which is there, in place of Berth's own.
 * @throws when an applied migration's file has changed since; ConfigError while a restore has not ended.
 */
export async function migrate(pool: Pool, restoring?: { upTo?: string; schema?: string }): Promise<string[]> {
  // A connection of its own: a migration, or the wait for another's, may take longer than any other statement.
  const client = new pg.Client({
    connectionString: pool.options.connectionString,
    application_name: 'berth-migrate',
  })
  await client.connect()
  try {
    await lockSession(client as Queryable, 'migrate')
    if (restoring?.schema)
      await client.query(`SET search_path = ${client.escapeIdentifier(restoring.schema)}`)
    if (!restoring) await refuseHalfRestored(client as Queryable)
    await client.query(`CREATE TABLE IF NOT EXISTS _prisma_migrations (
      id varchar(36) PRIMARY KEY, checksum varchar(64) NOT NULL, finished_at timestamptz,
      migration_name varchar(255) NOT NULL, logs text, rolled_back_at timestamptz,
      started_at timestamptz NOT NULL DEFAULT now(), applied_steps_count integer NOT NULL DEFAULT 0)`)
    const last = restoring?.upTo ?? '\uffff'
    const pending = (await pendingMigrations(client as Queryable)).filter(({ name }) => name <= last)
    for (const migration of pending) await apply(client, migration)
    // Loaded for this alone: who only looks at the schema has no use for BullMQ.
    const { runMigrations } = await import('bullmq')
    await runMigrations(client, 'bullmq')
    return pending.map(({ name }) => name)
  } finally {
    // Closing the connection releases the lock, whatever happened before.
    await client.end()
  }
}

/** How the schema stands to this version of Berth. */
export type SchemaState = 'current' | 'older' | 'newer'

/** Compares names only, unlike {@link isMigrated}: cheap enough to be asked all the time. */
export async function schemaState(pool: Pool): Promise<SchemaState> {
  const [{ rows }, entries] = await Promise.all([
    pool
      .query<{ migration_name: string }>(
        'SELECT migration_name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
      )
      // 42P01: there is no such table yet.
      .catch((error) => (error.code === '42P01' ? { rows: [] } : Promise.reject(error))),
    readNames(),
  ])
  const applied = new Set(rows.map((row) => row.migration_name))
  if (entries.some((name) => !applied.has(name))) return 'older'
  return applied.size > entries.length ? 'newer' : 'current'
}

/**
 * The mark of a restore: made before its first change, dropped with its last. Its row says which backup it restores and
 * how far it is.
 */
export const RESTORE_MARK = 'restore_under_way'

async function refuseHalfRestored(db: Queryable): Promise<void> {
  const { marked } = await queryOne<{ marked: boolean }>(
    db,
    `SELECT to_regclass('public.${RESTORE_MARK}') IS NOT NULL AS marked`,
  )
  if (marked)
    throw new ConfigError(
      'DATABASE_URL: a restore into this database has not ended; run the same `npx berth restore` again',
    )
}

/** The names of this version's migrations, in order. */
export const migrationNames = (): Promise<string[]> => readNames()

/** Whether the database has every migration of this version of Berth. @throws ConfigError while a restore has not ended. */
export async function isMigrated(pool: Pool): Promise<boolean> {
  await refuseHalfRestored(pool)
  const { present } = await queryOne<{ present: boolean }>(
    pool,
    `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS present`,
  )
  if (!present) return false
  return (await pendingMigrations(pool)).length === 0
}

async function pendingMigrations(db: Queryable): Promise<Migration[]> {
  const { rows } = await db.query<{ migration_name: string; checksum: string }>(
    'SELECT migration_name, checksum FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
  )
  const applied = new Map(rows.map((row) => [row.migration_name, row.checksum]))
  const all = await readMigrations()
  for (const { name, checksum } of all) {
    if (applied.has(name) && applied.get(name) !== checksum) {
      throw new Error(`migration ${name} was changed after it had been applied to this database`)
    }
  }
  return all.filter(({ name }) => !applied.has(name))
}

async function readNames(): Promise<string[]> {
  const entries = await readdir(FOLDER, { withFileTypes: true })
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
}

async function readMigrations(): Promise<Migration[]> {
  return Promise.all(
    (await readNames()).map(async (name) => {
      const sql = await readFile(new URL(`${name}/migration.sql`, FOLDER), 'utf8')
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
    }),
  )
}

/** The migration and its record commit together: a crash leaves neither or both. */
async function apply(client: pg.Client, { name, sql, checksum }: Migration): Promise<void> {
  await client.query('BEGIN')
  try {
    await client.query(sql)
    await client.query(
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
       VALUES ($1, $2, $3, now(), 1)`,
      [randomUUID(), checksum, name],
    )
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw new Error(`migration ${name} failed: ${(error as Error).message}`, { cause: error })
  }
}
