/** Compares the schema of the database with this version of Berth. */
import gt from 'semver/functions/gt.js'
import packageJson from '../../package.json' with { type: 'json' }
import { ConfigError } from '../errors.ts'
import { type Migration, migrationNames, readMigrations } from './migrations.ts'
import { type Pool, type Queryable, queryOne } from './pool.ts'

/**
 * `older` lacks migrations of this version. `newer` has others that leave everything this version uses; `unusable` has
 * a migration that declares otherwise.
 */
export type SchemaState = 'current' | 'older' | 'newer' | 'unusable'

/**
 * The mark of a restore: created before its first change, dropped with its last. Its row names the backup and the
 * progress.
 */
export const RESTORE_MARK = 'restore_under_way'

interface Applied {
  name: string
  checksum: string
  /** The version of Berth that the migration requires. */
  needs: string | null
}

/** Compares only names, unlike {@link requireSchema}: cheap enough to call all the time. */
export async function schemaState(pool: Pool): Promise<SchemaState> {
  const [rows, names] = await Promise.all([
    readApplied(pool).catch((error) => {
      // 42P01: the table does not exist yet.
      if (error.code === '42P01') return [] as Applied[]
      throw error
    }),
    migrationNames(),
  ])
  const applied = new Set(rows.map(({ name }) => name))
  if (names.some((name) => !applied.has(name))) return 'older'
  if (rows.some(isBeyond)) return 'unusable'
  return applied.size > names.length ? 'newer' : 'current'
}

/**
 * Checks the schema before a process uses the database.
 * @returns the applied migrations that this version does not know; they leave everything that this version uses.
 * @throws ConfigError while a restore has not ended, if the schema is older, or if it needs a newer version.
 */
export async function requireSchema(pool: Pool): Promise<string[]> {
  await refuseHalfRestored(pool)
  const { present } = await queryOne<{ present: boolean }>(
    pool,
    `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS present`,
  )
  if (!present || (await pendingMigrations(pool)).length > 0)
    throw new ConfigError('DATABASE_URL: the schema is not up to date; run `npx berth migrate`')
  const applied = await readApplied(pool)
  const beyond = applied.find(isBeyond)
  if (beyond)
    throw new ConfigError(
      `DATABASE_URL: the schema needs Berth ${beyond.needs} or later (migration ${beyond.name}); this is ${packageJson.version}`,
    )
  const known = new Set(await migrationNames())
  return applied.map(({ name }) => name).filter((name) => !known.has(name))
}

/** @throws ConfigError while a restore has not ended. */
export async function refuseHalfRestored(db: Queryable): Promise<void> {
  const { marked } = await queryOne<{ marked: boolean }>(
    db,
    `SELECT to_regclass('public.${RESTORE_MARK}') IS NOT NULL AS marked`,
  )
  if (marked)
    throw new ConfigError(
      'DATABASE_URL: a restore into this database has not ended; run the same `npx berth restore` again',
    )
}

/**
 * The migrations that the database lacks, in order; by default those of this version.
 * @throws if the file of an applied migration was changed.
 */
export async function pendingMigrations(db: Queryable, migrations?: Migration[]): Promise<Migration[]> {
  const applied = new Map((await readApplied(db)).map((row) => [row.name, row.checksum]))
  const all = migrations ?? (await readMigrations())
  for (const { name, checksum } of all) {
    if (applied.has(name) && applied.get(name) !== checksum) {
      throw new Error(`migration ${name} was changed after it had been applied to this database`)
    }
  }
  return all.filter(({ name }) => !applied.has(name))
}

async function readApplied(db: Queryable): Promise<Applied[]> {
  // Prisma's tools write `logs` for failed migrations, which this query excludes.
  const { rows } = await db.query<Applied>(
    `SELECT migration_name AS name, checksum, substring(logs FROM '^needs (.*)') AS needs FROM _prisma_migrations
     WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL ORDER BY migration_name`,
  )
  return rows
}

function isBeyond({ needs }: Applied): boolean {
  return needs !== null && gt(needs, packageJson.version)
}
