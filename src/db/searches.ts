/**
 * Searches: statements whose cost the caller controls, by a part of a name, by key-value pairs, or in the audit. Each
 * may read every row of a workspace. So a workspace may run only a few at a time, each has a short time limit, and the
 * statement of a disconnected client is cancelled.
 */
import { ApiError } from '../errors.ts'
import type { Bounds } from '../lib/bounds.ts'
import { isCanceled } from './database-errors.ts'
import type { Pool } from './pool.ts'
import { inTransaction, type PrismaClient, type Transaction } from './prisma.ts'

const LIMIT_MS = 1500
const RETRY_AFTER_S = 5

export class Searches {
  readonly #parts: { pool: Pool; prisma: PrismaClient; bounds: Bounds }

  constructor(parts: { pool: Pool; prisma: PrismaClient; bounds: Bounds }) {
    this.#parts = parts
  }

  /**
   * Runs a search in a transaction of its own.
   * @param signal fires when the client has disconnected.
   * @throws ApiError 429 while the workspace has too many searches, 503 if it takes longer than 1.5 s.
   */
  async run<T>(
    { workspaceId }: { workspaceId: string },
    signal: AbortSignal,
    search: (db: Transaction) => Promise<T>,
  ): Promise<T> {
    const { pool, prisma, bounds } = this.#parts
    return bounds.run('searches', { workspaceId }, () =>
      inTransaction(prisma, async (tx) => {
        const { rows } = await tx.query<{ pid: number }>(
          `SELECT pg_backend_pid() AS pid, set_config('statement_timeout', '${LIMIT_MS}', true)`,
        )
        let canceled: Promise<unknown> | undefined
        const cancel = () => {
          canceled = pool.query('SELECT pg_cancel_backend($1)', [rows[0]?.pid]).catch(() => {})
        }
        signal.addEventListener('abort', cancel, { once: true })
        if (signal.aborted) cancel()
        try {
          return await search(tx)
        } catch (error) {
          if (signal.aborted) throw signal.reason
          throw isCanceled(error) ? tooSlow() : error
        } finally {
          signal.removeEventListener('abort', cancel)
          // Otherwise the cancellation could hit the connection's next statement.
          await canceled
        }
      }),
    )
  }
}

function tooSlow(): ApiError {
  const message = `The search took longer than ${LIMIT_MS / 1000} seconds: search for a longer part of the name, or add a filter`
  return new ApiError(503, 'search_too_slow', message, { headers: { 'retry-after': `${RETRY_AFTER_S}` } })
}
