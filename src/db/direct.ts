/** Checks that sessions last: a pooler in transaction mode gives each transaction another one. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import pg from 'pg'
import { ConfigError } from '../errors.ts'
import { explainOutage } from './database-errors.ts'
import type { Pool } from './pool.ts'

const CONNECT_MS = 10_000
const ARRIVE_MS = 5000

/**
 * Checks that locks and notifications work at the pool's direct address: that a notification from the pool arrives
 * there. PostgreSQL itself, without a separate direct address, needs no check.
 * @throws ConfigError naming the setting that is missing or wrong; DatabaseAwayError if nothing answers there.
 */
export async function requireSessions(pool: Pool): Promise<void> {
  const setting = pool.directUrl === pool.options.connectionString ? 'DATABASE_URL' : 'DATABASE_DIRECT_URL'
  if (setting === 'DATABASE_URL' && !(await isPooler(pool))) return
  if (await hears(pool, setting)) return
  throw new ConfigError(
    setting === 'DATABASE_URL'
      ? 'DATABASE_URL: leads through a pooler in transaction mode; set DATABASE_DIRECT_URL to the database itself'
      : 'DATABASE_DIRECT_URL: must be the database of DATABASE_URL, without a pooler in transaction mode',
  )
}

async function hears(pool: Pool, setting: 'DATABASE_URL' | 'DATABASE_DIRECT_URL'): Promise<boolean> {
  const client = new pg.Client({ connectionString: pool.directUrl, connectionTimeoutMillis: CONNECT_MS })
  client.on('error', () => {})
  const channel = `berth_check_${randomBytes(8).toString('hex')}`
  try {
    await client.connect()
    await client.query(`LISTEN ${channel}`)
    const heard = once(client, 'notification', { signal: AbortSignal.timeout(ARRIVE_MS) }).then(
      () => true,
      () => false,
    )
    await pool.query('SELECT pg_notify($1, $2)', [channel, ''])
    return await heard
  } catch (error) {
    return explainOutage(error as Error, setting)
  } finally {
    await client.end().catch(() => {})
  }
}

/** True if another program answers for PostgreSQL: it does not know the process that will serve a connection. */
async function isPooler(pool: Pool): Promise<boolean> {
  const connection = await pool.connect()
  try {
    const { rows } = await connection.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    return rows[0]?.pid !== (connection as unknown as { processID: number }).processID
  } finally {
    connection.release()
  }
}
