/** The schema of an earlier version. */
import { createHash, randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import type { Pool } from '../../src/db/pool.ts'

const FOLDER = new URL('../../prisma/migrations/', import.meta.url)

/** Creates the schema of the version with this last migration, like its `migrate` did in an empty database. */
export async function migrateTo(pool: Pool, last: string): Promise<void> {
  await pool.query(`CREATE TABLE _prisma_migrations (
    id varchar(36) PRIMARY KEY, checksum varchar(64) NOT NULL, finished_at timestamptz,
    migration_name varchar(255) NOT NULL, logs text, rolled_back_at timestamptz,
    started_at timestamptz NOT NULL DEFAULT now(), applied_steps_count integer NOT NULL DEFAULT 0)`)
  const names = (await readdir(FOLDER)).filter((name) => /^\d{4}_/.test(name) && name <= last).sort()
  for (const name of names) {
    const sql = await readFile(new URL(`${name}/migration.sql`, FOLDER), 'utf8')
    await pool.query(sql)
    await pool.query(
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at) VALUES ($1, $2, $3, now())`,
      [randomUUID(), createHash('sha256').update(sql).digest('hex'), name],
    )
  }
}
