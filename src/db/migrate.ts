/**
 * Applies `prisma/migrations/<name>/migration.sql` in order and records them in `_prisma_migrations`,
 * the table of Prisma's own `migrate` command, so that both agree on what has been applied.
 */
import { createHash, randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { runMigrations } from 'bullmq'
import pg from 'pg'
import type { Pool } from './pool.ts'

const FOLDER = new URL('../../prisma/migrations/', import.meta.url)
/** Any constant: whoever migrates this database holds this advisory lock. */
const LOCK = 0x6265727468

interface Migration {
  name: string
  sql: string
  checksum: string
}

/**
 * Brings the schema up to date, BullMQ's own schema included. Safe to run from several processes at
 * once. Returns the names of the migrations that were applied.
 * @throws when an applied migration's file has changed since.
 */
export async function migrate(pool: Pool): Promise<string[]> {
  // A connection of its own: a migration, or the wait for another's, may take longer than any other statement.
  const client = new pg.Client({
    connectionString: pool.options.connectionString,
    application_name: 'berth-migrate',
  })
  await client.connect()
  try {
    await client.query('SELECT pg_advisory_lock($1)', [LOCK])
    await client.query(`CREATE TABLE IF NOT EXISTS _prisma_migrations (
      id varchar(36) PRIMARY KEY, checksum varchar(64) NOT NULL, finished_at timestamptz,
      migration_name varchar(255) NOT NULL, logs text, rolled_back_at timestamptz,
      started_at timestamptz NOT NULL DEFAULT now(), applied_steps_count integer NOT NULL DEFAULT 0)`)
    const pending = await pendingMigrations(client)
    for (const migration of pending) await apply(client, migration)
    await runMigrations(client, 'bullmq')
    return pending.map(({ name }) => name)
  } finally {
    // Closing the connection releases the lock, whatever happened before.
    await client.end()
  }
}

/** Whether the database has every migration of this version of Berth. */
export async function isMigrated(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query(`SELECT to_regclass('_prisma_migrations') IS NOT NULL AS present`)
  if (!rows[0].present) return false
  return (await pendingMigrations(pool)).length === 0
}

async function pendingMigrations(db: Pick<pg.ClientBase, 'query'>): Promise<Migration[]> {
  const { rows } = await db.query(
    'SELECT migration_name, checksum FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
  )
  const applied = new Map<string, string>(rows.map((row) => [row.migration_name, row.checksum]))
  const all = await readMigrations()
  for (const { name, checksum } of all) {
    if (applied.has(name) && applied.get(name) !== checksum) {
      throw new Error(`migration ${name} was changed after it had been applied to this database`)
    }
  }
  return all.filter(({ name }) => !applied.has(name))
}

async function readMigrations(): Promise<Migration[]> {
  const entries = await readdir(FOLDER, { withFileTypes: true })
  const names = entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
  return Promise.all(
    names.map(async (name) => {
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
