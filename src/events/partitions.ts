/** The partitions of events: one for each day, created ahead of time and dropped when it expires. */
import { lock, tryLockSession } from '../db/advisory-locks.ts'
import { daysAgo } from '../db/partitions.ts'
import { type Pool, type Queryable, transaction } from '../db/pool.ts'
import { withSession } from '../db/session.ts'
import { readEventPartitions } from '../db/statements/events.ts'

const DAY_MS = 86_400_000
/** Days ahead that have a partition: a worker adds partitions once an hour. */
const AHEAD = 2
/** Number of ids per millisecond. */
const PER_MS = 1024n
/** Detaching a partition waits for everything that reads events, such as a database dump. */
const DETACH_MS = 3_600_000

/** The first id that an event published at this time may have. */
export const idAt = (ms: number): bigint => BigInt(ms) * PER_MS

/**
 * Creates the partitions of the next days, each beginning where the previous one ends. The first begins now, because no
 * event is older. Readers and writers of events are not blocked.
 */
export async function addPartitions(pool: Pool, ahead = AHEAD): Promise<void> {
  await transaction(pool, async (tx) => {
    await lock(tx, 'eventPartitions', '')
    const { rows } = await readEventPartitions.run(tx)
    const now = Date.now()
    let from = rows.at(-1) ? BigInt((rows.at(-1) as { upper: string }).upper) : idAt(now)
    const last = startOfDay(now) + ahead * DAY_MS
    while (from < idAt(last)) {
      // If Berth was stopped for days, one partition covers all of them.
      const day = Math.max(startOfDay(Number(from / PER_MS)), startOfDay(now))
      const to = idAt(day + DAY_MS)
      const name = `event_${new Date(day).toISOString().slice(0, 10).replaceAll('-', '')}`
      // CREATE TABLE … PARTITION OF would block all readers and writers of events; ATTACH does not.
      await tx.query(`CREATE TABLE ${name} (LIKE event INCLUDING ALL)`)
      await tx.query(`ALTER TABLE event ATTACH PARTITION ${name} FOR VALUES FROM (${from}) TO (${to})`)
      from = to
    }
  })
}

const startOfDay = (ms: number): number => ms - (ms % DAY_MS)

/**
 * Drops the partitions whose events are all older than `days`, unless another process is doing so. @returns how many.
 */
export async function dropOldPartitions(pool: Pool, days: number, signal: AbortSignal): Promise<number> {
  const options = { name: 'berth-events', statementMs: DETACH_MS, signal }
  return withSession(pool.directUrl, options, async (session) => {
    if (!(await tryLockSession(session, 'events'))) return 0
    const end = idAt((await daysAgo(session, days)).getTime())
    const { rows } = await readEventPartitions.run(session)
    let dropped = 0
    for (const { name, upper, isLeaving } of rows) {
      if (!isLeaving && BigInt(upper) > end) continue
      // An interrupted detachment is finished first: PostgreSQL does not allow two at the same time.
      await session.query(
        `ALTER TABLE event DETACH PARTITION ${name} ${isLeaving ? 'FINALIZE' : 'CONCURRENTLY'}`,
      )
      dropped++
    }
    await dropDetached(session)
    return dropped
  })
}

/** Drops detached partitions: those of this call, and those left by a killed process. */
async function dropDetached(session: Queryable): Promise<void> {
  const { rows } = await session.query<{ name: string }>(
    `SELECT relname::text AS name FROM pg_class
     WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname ~ '^event_[0-9]{8}$' AND NOT relispartition`,
  )
  for (const { name } of rows) await session.query(`DROP TABLE ${name}`)
}
