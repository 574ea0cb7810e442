/** Reads operations: the client's side of the row. */

import type { Pool, Queryable } from '../db/pool.ts'
import {
  forgetKeys,
  forgetOperations,
  forgetRepairs,
  OPERATION_VIEW,
  viewOperation,
} from '../db/statements/operations.ts'
import { AGENT_ID } from '../lib/agent-id.ts'
import type { OperationKind, OperationState } from './catalog.ts'

/** An operation as clients see it. Times are ISO 8601 with microseconds, UTC. */
export interface OperationView {
  id: string
  kind: OperationKind
  target: string
  target_name: string | null
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

/** A view with the version, through which a reader notices changes. */
export type Versioned = OperationView & { version: number }

/** An operation of a workspace; undefined if it does not exist, or belongs to another workspace. */
export async function findOperation(
  db: Queryable,
  workspaceId: string,
  id: string,
): Promise<Versioned | undefined> {
  const { rows } = await viewOperation.run(db, workspaceId, id)
  return rows[0] as Versioned | undefined
}

export interface OperationFilter {
  state?: OperationState | undefined
  kind?: OperationKind | undefined
  /** Only operations of these kinds. */
  readable: readonly OperationKind[]
  /** The id of a file, or of an agent. */
  target?: string | undefined
  /** Only operations after (`ASC`) or before (`DESC`) this id. */
  after?: string | undefined
  order: 'ASC' | 'DESC'
  limit: number
}

/**
 * A page of a workspace's operations, ordered by id, which is by age. BETWEEN is an equality that the planner does not
 * recognise as one. So ordering by the workspace as well matches only the list's indexes. Ordered by id only, the
 * planner would use the primary key and scan every tenant's newer operations.
 */
export async function listOperations(
  db: Queryable,
  workspaceId: string,
  filter: OperationFilter,
): Promise<OperationView[]> {
  const isAgent = AGENT_ID.test(filter.target ?? '')
  const { rows } = await db.query<Versioned>(
    `SELECT ${OPERATION_VIEW} FROM operation
     WHERE workspace_id BETWEEN $1 AND $1 AND ($2::text IS NULL OR state = $2) AND ($3::text IS NULL OR kind = $3)
       AND ($4::uuid IS NULL OR target_id = $4) AND ($7::text IS NULL OR agent_id = $7)
       AND kind = ANY($8) AND ($5::uuid IS NULL OR id ${filter.order === 'ASC' ? '>' : '<'} $5)
     ORDER BY workspace_id ${filter.order}, id ${filter.order} LIMIT $6`,
    [
      workspaceId,
      filter.state ?? null,
      filter.kind ?? null,
      isAgent ? null : (filter.target ?? null),
      filter.after ?? null,
      filter.limit,
      isAgent ? filter.target : null,
      filter.readable,
    ],
  )
  return rows.map(view)
}

/** The view without the version, which is only for long polls and event ids. */
export function view({ version: _, ...operation }: Versioned): OperationView {
  return operation
}

const BATCH = 10_000

/**
 * Deletes operations that ended `days` ago, repairs of the same age, and idempotency keys after a day; in batches,
 * until none is left.
 */
export async function forgetOldOperations(pool: Pool, days: number, signal: AbortSignal): Promise<void> {
  const forget = [
    () => forgetKeys.run(pool, BATCH),
    () => forgetOperations.run(pool, BATCH, days),
    () => forgetRepairs.run(pool, BATCH, days),
  ]
  for (const batch of forget) {
    let changed: number | null = BATCH
    while (changed === BATCH && !signal.aborted) changed = (await batch()).rowCount
  }
}
