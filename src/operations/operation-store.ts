/** Reads operations: the client's side of the row. */

import type { Pool, Queryable } from '../db/pool.ts'
import { forgetKeys, forgetOperations, forgetRepairs, viewOperation } from '../db/statements/operations.ts'
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
