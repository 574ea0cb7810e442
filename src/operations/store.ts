/** Reading operations, and cancelling them: the client's side of the row. */
import { AGENT_ID } from '../agents/agent.ts'
import type { Pool, Queryable } from '../db/pool.ts'
import type { OperationKind, OperationState } from './catalog.ts'

/** An operation as clients see it. Times are ISO 8601 with microseconds, UTC. */
export interface OperationView {
  id: string
  kind: OperationKind
  target: string
  state: OperationState
  step: string | null
  progress: Record<string, unknown> | null
  attempts: number
  error: string | null
  error_code: string | null
  created_at: string
  started_at: string | null
  next_attempt_at: string | null
  finished_at: string | null
}

/** A view, and the version by which a reader knows that it changed. */
export type Versioned = OperationView & { version: number }

/** A timestamp column as ISO 8601 text with microseconds, which a JavaScript Date would cut. */
export const isoTime = (column: string): string =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

const COLUMNS = `id, kind, coalesce(agent_id, target_id::text) AS target, state, step, progress, attempts, error, error_code, version,
  ${isoTime('created_at')} AS created_at, ${isoTime('started_at')} AS started_at,
  CASE WHEN state = 'queued' THEN ${isoTime('next_attempt_at')} END AS next_attempt_at,
  ${isoTime('finished_at')} AS finished_at`

/** One operation of a workspace; undefined when there is none, or it is another workspace's. */
export async function findOperation(
  db: Queryable,
  workspaceId: string,
  id: string,
): Promise<Versioned | undefined> {
  const { rows } = await db.query({
    name: 'operation-find',
    text: `SELECT ${COLUMNS} FROM operation WHERE workspace_id = $1 AND id = $2`,
    values: [workspaceId, id],
  })
  return rows[0]
}

export interface OperationFilter {
  state?: OperationState
  kind?: OperationKind
  /** The id of a file, or of an agent. */
  target?: string
  /** Only operations after (`ASC`) or before (`DESC`) this id. */
  after?: string
  order: 'ASC' | 'DESC'
  limit: number
}

/** A page of a workspace's operations, ordered by id, which is by age. */
export async function listOperations(
  db: Queryable,
  workspaceId: string,
  filter: OperationFilter,
): Promise<OperationView[]> {
  const isAgent = AGENT_ID.test(filter.target ?? '')
  const { rows } = await db.query(
    `SELECT ${COLUMNS} FROM operation
     WHERE workspace_id = $1 AND ($2::text IS NULL OR state = $2) AND ($3::text IS NULL OR kind = $3)
       AND ($4::uuid IS NULL OR target_id = $4) AND ($7::text IS NULL OR agent_id = $7)
       AND ($5::uuid IS NULL OR id ${filter.order === 'ASC' ? '>' : '<'} $5)
     ORDER BY id ${filter.order} LIMIT $6`,
    [
      workspaceId,
      filter.state ?? null,
      filter.kind ?? null,
      isAgent ? null : (filter.target ?? null),
      filter.after ?? null,
      filter.limit,
      isAgent ? filter.target : null,
    ],
  )
  return rows.map(view)
}

/** The view without the version, which is for long polls and event ids. */
export function view({ version: _, ...operation }: Versioned): OperationView {
  return operation
}

/**
 * Cancels an operation: at once when it waits, within about a second when it runs (its worker sees
 * the request at the next renewal). Ended ones stay as they are.
 */
export async function requestCancel(db: Queryable, workspaceId: string, id: string): Promise<void> {
  await db.query(
    `WITH changed AS (
       UPDATE operation SET cancel_requested = true, version = version + 1,
         state = CASE state WHEN 'queued' THEN 'canceled' ELSE state END,
         finished_at = CASE state WHEN 'queued' THEN now() END
       WHERE workspace_id = $1 AND id = $2 AND state IN ('queued', 'running') RETURNING id)
     SELECT pg_notify('berth_operation', id::text) FROM changed`,
    [workspaceId, id],
  )
}

const BATCH = 10_000

/**
 * Forgets operations that ended `days` ago, corrections as old, and idempotency keys after a day; in
 * batches, until none is left.
 */
export async function forgetOldOperations(pool: Pool, days: number, signal: AbortSignal): Promise<void> {
  const statements: [text: string, values: unknown[]][] = [
    [
      `UPDATE operation SET idempotency_key = NULL, fingerprint = NULL WHERE id IN (
         SELECT id FROM operation WHERE idempotency_key IS NOT NULL AND created_at < now() - interval '1 day' LIMIT $1)`,
      [BATCH],
    ],
    [
      `DELETE FROM operation WHERE id IN (
         SELECT id FROM operation WHERE finished_at < now() - $2 * interval '1 day' LIMIT $1)`,
      [BATCH, days],
    ],
    [
      `DELETE FROM correction WHERE id IN (
         SELECT id FROM correction WHERE created_at < now() - $2 * interval '1 day' LIMIT $1)`,
      [BATCH, days],
    ],
  ]
  for (const [text, values] of statements) {
    let changed: number | null = BATCH
    while (changed === BATCH && !signal.aborted) changed = (await pool.query(text, values)).rowCount
  }
}
