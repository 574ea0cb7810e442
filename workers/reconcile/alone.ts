import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Pool } from '../../src/db/pool.ts'

const LOCK_MS = 10_000

/**
 * Runs `work` unless another process does. The session is its own: the work may take long.
 * @param lock any constant, one for each kind of work.
 */
export async function alone(pool: Pool, lock: number, work: () => Promise<void>): Promise<void> {
  const client = new pg.Client({
    connectionString: pool.options.connectionString,
    connectionTimeoutMillis: LOCK_MS,
    query_timeout: LOCK_MS,
    keepAlive: true,
    application_name: 'berth-reconcile',
  })
  client.on('error', () => {})
  await client.connect()
  try {
    const { rows } = await client.query('SELECT pg_try_advisory_lock($1) AS mine', [lock])
    if (rows[0].mine) await work()
  } finally {
    // On a connection that is dead without a word the goodbye would wait for minutes.
    await Promise.race([client.end().catch(() => {}), delay(LOCK_MS, undefined, { ref: false })])
  }
}
