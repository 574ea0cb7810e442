import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Queryable } from './pool.ts'

const GOODBYE_MS = 10_000

export interface SessionOptions {
  /** Name of the session, as shown by PostgreSQL. */
  name?: string
  /** Time limit for connecting; default: none. */
  connectMs?: number
  /** Time after which the client abandons a statement; default: never. */
  queryMs?: number
  /** Time after which the server ends a statement; default: never. */
  statementMs?: number
  /** Ends the connection; a running statement may continue in the server. */
  signal?: AbortSignal
}

/**
 * Runs `work` on a separate connection outside the pool: for work that takes longer than the pool's statements may, for
 * session locks and temporary tables, and before a pool exists.
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
  // The next statement notices a dropped connection; without a listener it would end the process.
  client.on('error', () => {})
  const end = () => void client.end().catch(() => {})
  try {
    await client.connect()
    signal?.throwIfAborted()
    signal?.addEventListener('abort', end)
    return await work(client as Queryable)
  } finally {
    signal?.removeEventListener('abort', end)
    // On a silently dead connection, the goodbye would wait for minutes.
    await Promise.race([client.end().catch(() => {}), delay(GOODBYE_MS, undefined, { ref: false })])
  }
}
