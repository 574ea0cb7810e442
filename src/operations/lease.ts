/**
 * What a worker does to an operation's row. A claim bumps the epoch, and every later write says
 * `epoch = mine AND state = 'running'`: a worker that lost its lease changes nothing any more.
 */
import type { Pool, Queryable } from '../db/pool.ts'
import type { OperationKind } from './catalog.ts'

/** A lease lasts this long; its worker renews it every {@link RENEW_MS}. */
const LEASE_MS = 3000
export const RENEW_MS = 1000

export interface Claim {
  id: string
  kind: OperationKind
  workspaceId: string
  targetId: string
  epoch: number
  /** Tries so far, this one included. */
  attempts: number
  faults: number
  /** Milliseconds since the first try began. */
  ageMs: number
  /** What the kind needs to know beside its target. */
  input: Record<string, unknown> | null
  /** What the try before reported last. */
  progress: Record<string, unknown> | null
}

/** The write was refused: the lease ran out and somebody else has the operation, or it was ended. */
export class LeaseLost extends Error {
  override name = 'LeaseLost'
}

/**
 * Claims an operation that is due, or whose worker let the lease run out. Undefined when it is not
 * to be had: finished, claimed by another worker, cancelled, or waiting behind an older one.
 */
export async function claim(db: Queryable, id: string, worker: string): Promise<Claim | undefined> {
  const { rows } = await db.query({
    name: 'operation-claim',
    text: `UPDATE operation o
      SET state = 'running', epoch = epoch + 1, attempts = attempts + 1, version = version + 1,
          worker = $2, lease_until = now() + $3 * interval '1 ms', handed_over_at = NULL,
          started_at = coalesce(started_at, now())
      WHERE id = $1
        AND (state = 'queued' AND next_attempt_at <= now() OR state = 'running' AND lease_until < now())
        AND NOT EXISTS (SELECT FROM operation older
                        WHERE older.exclusive_key = o.exclusive_key AND older.id < o.id
                          AND older.state IN ('queued', 'running'))
      RETURNING id, kind, workspace_id AS "workspaceId", target_id AS "targetId", epoch, attempts, faults, input, progress,
                (extract(epoch FROM now() - started_at) * 1000)::float AS "ageMs"`,
    values: [id, worker, LEASE_MS],
  })
  return rows[0]
}

/**
 * Renews the lease.
 * @returns whether the client asked to cancel.
 * @throws LeaseLost
 */
export async function renew(db: Queryable, { id, epoch }: Claim): Promise<boolean> {
  const { rows } = await db.query({
    name: 'operation-renew',
    text: `UPDATE operation SET lease_until = now() + $3 * interval '1 ms'
      WHERE id = $1 AND epoch = $2 AND state = 'running' RETURNING cancel_requested`,
    values: [id, epoch, LEASE_MS],
  })
  if (!rows[0]) throw new LeaseLost(`operation ${id}, epoch ${epoch}`)
  return rows[0].cancel_requested
}

/**
 * Writes the visible step and progress, and tells whoever waits.
 * @throws LeaseLost
 */
export async function report(
  db: Queryable,
  { id, epoch }: Claim,
  step: string,
  progress: Record<string, unknown> | null,
): Promise<void> {
  const { rowCount } = await db.query({
    name: 'operation-report',
    text: `WITH changed AS (
        UPDATE operation SET step = $3, progress = $4, version = version + 1
        WHERE id = $1 AND epoch = $2 AND state = 'running' RETURNING id)
      SELECT pg_notify('berth_operation', id::text) FROM changed`,
    values: [id, epoch, step, progress && JSON.stringify(progress)],
  })
  if (!rowCount) throw new LeaseLost(`operation ${id}, epoch ${epoch}`)
}

/** How a try ends. */
export type Ending =
  | { state: 'succeeded'; result?: Record<string, unknown> }
  | { state: 'canceled' }
  | { state: 'failed'; error: string; code: string; cause: string; result?: Record<string, unknown> }
  /** Another try after `delayMs`; `fault` counts it against the kind's limit of unforeseen errors. */
  | { state: 'queued'; delayMs: number; code: string; cause: string; fault?: boolean }

/**
 * Ends a try on `db`, inside the caller's transaction where the outcome has to be written with it.
 * @throws LeaseLost
 */
export async function end(db: Queryable, { id, epoch }: Claim, ending: Ending): Promise<void> {
  const retry = ending.state === 'queued' ? ending : undefined
  const { rowCount } = await db.query({
    name: 'operation-end',
    text: `WITH changed AS (
        UPDATE operation SET
          state = CASE WHEN $3 = 'queued' AND cancel_requested THEN 'canceled' ELSE $3 END,
          finished_at = CASE WHEN $3 = 'queued' AND NOT cancel_requested THEN NULL ELSE now() END,
          next_attempt_at = now() + $4 * interval '1 ms',
          faults = faults + $5, error = $6, error_code = $7, error_cause = $8, result = $9,
          lease_until = NULL, worker = NULL, handed_over_at = NULL, version = version + 1
        WHERE id = $1 AND epoch = $2 AND state = 'running' RETURNING id)
      SELECT pg_notify('berth_operation', id::text) FROM changed`,
    values: [
      id,
      epoch,
      ending.state,
      retry?.delayMs ?? 0,
      retry?.fault ? 1 : 0,
      ending.state === 'failed' ? ending.error : null,
      'code' in ending ? ending.code : null,
      'cause' in ending ? ending.cause : null,
      'result' in ending && ending.result ? JSON.stringify(ending.result) : null,
    ],
  })
  if (!rowCount) throw new LeaseLost(`operation ${id}, epoch ${epoch}`)
}

/** Gives a claim back untouched, for a worker that shuts down: the try does not count. */
export async function giveBack(pool: Pool, { id, epoch }: Claim): Promise<void> {
  await pool.query(
    `UPDATE operation SET state = 'queued', lease_until = NULL, worker = NULL, handed_over_at = NULL,
       attempts = attempts - 1, next_attempt_at = now(), version = version + 1
     WHERE id = $1 AND epoch = $2 AND state = 'running'`,
    [id, epoch],
  )
}

/** Says that the job of an operation is used up and nobody claimed it: it is handed over again at once. */
export async function returnJob(pool: Pool, id: string): Promise<undefined> {
  await pool.query(`UPDATE operation SET handed_over_at = NULL WHERE id = $1 AND state = 'queued'`, [id])
}
