/**
 * Tables partitioned by day (UTC): old rows are dropped as a whole table, which costs the same for any number of rows.
 * Each migration and every `web` and `worker` create partitions a week ahead, so that every write finds its partition.
 */
import { isContention, isWithoutPartition } from './database-errors.ts'
import { type Queryable, queryOne } from './pool.ts'

/** Partitioned tables, with the type of the key: a version 7 UUID begins with its time. */
const TABLES = { audit: 'uuid' } as const
export type Partitioned = keyof typeof TABLES

export const isPartitioned = (table: string): table is Partitioned => Object.hasOwn(TABLES, table)

/** Days relative to today. Yesterday's partition is for clocks that differ. */
const FIRST_DAY = -1
const LAST_DAY = 7
const DAY_MS = 86_400_000
/** The longest wait for a lock: all later statements queue behind it. */
const LOCK_MS = 500

/** Creates the missing partitions from yesterday to next week, for tables that exist. */
export async function makePartitions(db: Queryable): Promise<void> {
  const { rows } = await db.query<{ table: Partitioned; day: string }>(
    `SELECT t AS table, to_char(day, 'YYYYMMDD') AS day
     FROM unnest($1::text[]) AS t, generate_series($2::int, $3::int) AS ahead,
       LATERAL (SELECT (now() AT TIME ZONE 'UTC')::date + ahead AS day) AS days
     WHERE to_regclass(t) IS NOT NULL AND to_regclass(t || to_char(day, '_YYYYMMDD')) IS NULL`,
    [Object.keys(TABLES), FIRST_DAY, LAST_DAY],
  )
  for (const { table, day } of rows) await makePartition(db, table, day)
}

/**
 * Writes rows with the current time. A process that slept for longer than a week, or whose clock was set, may be ahead
 * of the loop that creates partitions, so it creates them itself.
 * @param write one statement, outside any transaction of its caller.
 */
export async function inPartition<T>(db: Queryable, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (!isWithoutPartition(error)) throw error
    await makePartitions(db)
    return write()
  }
}

/**
 * Creates the partition of a day without blocking reads or writes of the others. PostgreSQL does not copy the triggers
 * that reject TRUNCATE, so they are created here.
 * @param day as `YYYYMMDD`.
 */
export async function makePartition(db: Queryable, table: Partitioned, day: string): Promise<void> {
  const name = `${table}_${day}`
  const start = Date.parse(`${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6)}`)
  const [from, to] = [start, start + DAY_MS].map((ms) => keyAt(table, ms))
  await db.query(`DO $make$
    DECLARE refusal record;
    BEGIN
      LOCK TABLE ${table} IN SHARE UPDATE EXCLUSIVE MODE;
      IF to_regclass('${name}') IS NOT NULL THEN RETURN; END IF;
      CREATE TABLE ${name} (LIKE ${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
      ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${to}');
      FOR refusal IN SELECT tgname, tgfoid::regproc AS function FROM pg_trigger
        WHERE tgrelid = '${table}'::regclass AND tgtype & 32 <> 0
      LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON ${name} FOR EACH STATEMENT EXECUTE FUNCTION %s()',
          refusal.tgname, refusal.function);
      END LOOP;
    END $make$`)
}

/** The names of a table's partitions, oldest first. */
export async function partitionsOf(db: Queryable, table: Partitioned): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = to_regclass($1) ORDER BY name`,
    [table],
  )
  return rows.map(({ name }) => name)
}

/**
 * The time so many days ago, by the database's clock: a single process's clock may be far ahead, and dropped partitions
 * are gone for good.
 */
export async function daysAgo(db: Queryable, days: number): Promise<Date> {
  const { time } = await queryOne<{ time: Date }>(db, `SELECT now() - $1 * interval '24 hours' AS time`, [
    days,
  ])
  return time
}

/**
 * Drops the partitions of days that ended more than this many days ago; a partition that is being read waits for a
 * later call.
 */
export async function dropPartitions(db: Queryable, table: Partitioned, days: number): Promise<void> {
  const past = (await daysAgo(db, days)).toISOString().slice(0, 10).replaceAll('-', '')
  for (const name of await partitionsOf(db, table))
    if (name < `${table}_${past}`) await dropPartition(db, name)
}

async function dropPartition(db: Queryable, name: string): Promise<void> {
  const dropped = db.query(
    `DO $drop$ BEGIN PERFORM set_config('lock_timeout', '${LOCK_MS}', true); DROP TABLE IF EXISTS ${name}; END $drop$`,
  )
  await dropped.catch((error) => {
    if (!isContention(error)) throw error
  })
}

/** The smallest key for a moment. */
const keyAt = (table: Partitioned, ms: number): string =>
  TABLES[table] === 'uuid' ? leastUuid(ms) : new Date(ms).toISOString()

/** The time in a version 7 UUID, which begins with its milliseconds (RFC 9562, 5.7). */
export const timeOfUuid = (id: string): Date =>
  new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))

/** The smallest UUID for a time; times before 1970 count as 1970. */
export function leastUuid(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}
