/**
 * The plan of `migrate`: what it would do to this database, and which tables it would lock. It touches nothing of
 * Berth's: the migrations run on empty tables in a separate schema, and PostgreSQL reports the locks that they took.
 */
import { lockSession } from './advisory-locks.ts'
import { type Migration, readMigrations } from './migrations.ts'
import type { Pool, Queryable } from './pool.ts'
import { pendingMigrations } from './schema-state.ts'
import { withSession } from './session.ts'

/** A schema that is recreated each time, replacing the remains of a process that died. */
const SCRATCH = 'berth_migrate_plan'

/** Lock modes that others notice, strongest first. */
const MODES = [
  ['AccessExclusiveLock', 'ACCESS EXCLUSIVE'],
  ['ExclusiveLock', 'EXCLUSIVE'],
  ['ShareRowExclusiveLock', 'SHARE ROW EXCLUSIVE'],
  ['ShareLock', 'SHARE'],
  ['ShareUpdateExclusiveLock', 'SHARE UPDATE EXCLUSIVE'],
  ['RowExclusiveLock', 'ROW EXCLUSIVE'],
] as const

export type LockMode = (typeof MODES)[number][1]

export interface TableLock {
  table: string
  /** The strongest mode, held until the migration ends. */
  mode: LockMode
  /** PostgreSQL's estimate. */
  rows: number
  /** Including indexes. */
  bytes: number
  /** The migration reads every row: it checks them, or builds an index. */
  isRead: boolean
  /** The migration rewrites every row. */
  isRewritten: boolean
}

export interface PlannedMigration extends Pick<Migration, 'name' | 'title' | 'needs'> {
  /** On tables that exist now. */
  locks: TableLock[]
}

/**
 * The migrations that this database lacks, in order; by default those of this version.
 * @throws if the file of an applied migration has changed since.
 */
export async function planMigrations(pool: Pool, migrations?: Migration[]): Promise<PlannedMigration[]> {
  const all = migrations ?? (await readMigrations())
  return withSession(pool.directUrl, { name: 'berth-migrate-plan' }, async (session) => {
    await lockSession(session, 'migrate')
    const sizes = await readSizes(session)
    const pending = sizes.has('_prisma_migrations') ? await pendingMigrations(session, all) : all
    if (pending.length === 0) return []
    const names = new Set(pending.map(({ name }) => name))
    const applied = all.filter(({ name }) => !names.has(name))
    try {
      await session.query(`DROP SCHEMA IF EXISTS ${SCRATCH} CASCADE`)
      await session.query(`BEGIN; CREATE SCHEMA ${SCRATCH}; SET search_path = ${SCRATCH}`)
      for (const { sql } of applied) await session.query(sql)
      await session.query('COMMIT')
      const planned: PlannedMigration[] = []
      for (const migration of pending) planned.push(await tryOut(session, migration, sizes))
      return planned
    } finally {
      await session.query('ROLLBACK')
      await session.query(`DROP SCHEMA IF EXISTS ${SCRATCH} CASCADE`)
    }
  })
}

type Sizes = Map<string, { rows: number; bytes: number }>

async function readSizes(db: Queryable): Promise<Sizes> {
  const { rows } = await db.query<{ name: string; rows: number; bytes: number }>(
    `SELECT c.relname AS name, greatest(c.reltuples, s.n_live_tup, 0)::float8 AS rows,
       pg_total_relation_size(c.oid)::float8 AS bytes
     FROM pg_class c LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
     WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace`,
  )
  return new Map(rows.map(({ name, ...size }) => [name, size]))
}

async function tryOut(
  session: Queryable,
  { name, sql, title, needs }: Migration,
  sizes: Sizes,
): Promise<PlannedMigration> {
  await session.query('BEGIN')
  const before = await readTables(session)
  await session.query(sql)
  const after = await readTables(session)
  await session.query('COMMIT')
  const locks = before.flatMap(({ oid, table, file, scans }): TableLock[] => {
    const size = sizes.get(table)
    // A dropped table no longer has a row.
    const now: Pick<Table, 'modes' | 'scans' | 'file'> = after.find((row) => row.oid === oid) ?? {
      modes: [MODES[0][0]],
      scans,
      file,
    }
    const mode = MODES.find(([lock]) => now.modes.includes(lock))?.[1]
    return size && mode
      ? [{ table, mode, ...size, isRead: now.scans > scans, isRewritten: now.file !== file }]
      : []
  })
  return { name, title, needs, locks }
}

interface Table {
  oid: number
  table: string
  file: number
  /** Lock modes that this transaction holds. */
  modes: readonly string[]
  /** How often this session has read the whole table; PostgreSQL resets it only between transactions. */
  scans: number
}

async function readTables(db: Queryable): Promise<Table[]> {
  const { rows } = await db.query<Table>(
    `SELECT c.oid, c.relname AS table, c.relfilenode AS file,
       ARRAY(SELECT mode FROM pg_locks WHERE relation = c.oid AND pid = pg_backend_pid()) AS modes,
       pg_stat_get_xact_numscans(c.oid)::int AS scans
     FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = '${SCRATCH}'::regnamespace ORDER BY c.relname`,
  )
  return rows
}
