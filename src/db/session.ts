import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Queryable } from './pool.ts'

const GOODBYE_MS = 10_000

export interface SessionOptions {
  /** Name of the session, as PostgreSQL shows it. */
  name?: string
  /** Time for connecting; without it, any. */
  connectMs?: number
  /** Time after which this side gives up a statement; without it, never. */
  queryMs?: number
  /** Time after which the server ends a statement; without it, never. */
  statementMs?: number
  /** Ends the connection; a statement under way may go on in the server. */
  signal?: AbortSignal
}

/**
 * Runs `work` on a connection of its own beside the pool: for what takes longer than a statement of the pool may, for
 * locks and temporary tables of a session, and before there is a pool.
 */
export async function withSession<T>(
  url: string | undefined,
  { name, connectMs, queryMs, statementMs, signal }: SessionOptions,
  work: (session: Queryable) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: connectMs,
    query_timeout: queryMs,
    statement_timeout: statementMs,
    keepAlive: true,
    application_name: name,
  })
  // A connection that drops is found by the next statement; without a listener it would end the process.
  client.on('error', () => {})
  const end = () => void client.end().catch(() => {})
  try {
    await client.connect()
    signal?.throwIfAborted()
    signal?.addEventListener('abort', end)
    return await work(client as Queryable)
  } finally {
    signal?.removeEventListener('abort', end)
    // On a connection that is dead without a word the goodbye would wait for minutes.
    await Promise.race([client.end().catch(() => {}), delay(GOODBYE_MS, undefined, { ref: false })])
  }
}
