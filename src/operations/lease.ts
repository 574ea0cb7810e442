/**
 * A worker's statements on an operation's row. A claim increments the epoch, and every later write requires
 * `epoch = mine AND state = 'running'`, so a worker that lost its lease can no longer change anything.
 */
import type { Queryable } from '../db/pool.ts'
import { inTransaction, type PrismaClient, type Transaction } from '../db/prisma.ts'
import {
  claimOperation,
  endOperation,
  releaseOperation,
  renewOperation,
  reportOperation,
  requeueOperation,
} from '../db/statements/operations.ts'
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
  /** Attempts so far, including this one. */
  attempts: number
  errorCount: number
  /** Milliseconds since the first attempt began. */
  ageMs: number
  /** The input of its kind. */
  input: Record<string, unknown> | null
  /** The last progress of the previous attempt. */
  progress: Record<string, unknown> | null
}

/** The write was rejected: the lease expired and another worker has the operation, or it was ended. */
export class LeaseLost extends Error {
  override name = 'LeaseLost'
}

/**
 * Claims an operation that is due, or whose worker let the lease expire. Undefined if it cannot be claimed: finished,
 * claimed by another worker, cancelled, or waiting behind an older one.
 */
export async function claim(db: Queryable, id: string, worker: string): Promise<Claim | undefined> {
  const { rows } = await claimOperation.run(db, id, worker, LEASE_MS)
  return rows[0] as Claim | undefined
}

/**
 * Renews the lease.
 * @returns whether the client asked to cancel.
 * @throws LeaseLost
 */
export async function renew(db: Queryable, { id, epoch }: Claim): Promise<boolean> {
  const { rows } = await renewOperation.run(db, id, epoch, LEASE_MS)
  if (!rows[0]) throw new LeaseLost(`operation ${id}, epoch ${epoch}`)
  return rows[0].cancelRequested
}

/**
 * Writes the visible step and progress, and notifies waiting callers.
 * @throws LeaseLost
 */
export async function report(
  db: Queryable,
  { id, epoch }: Claim,
  step: string,
  progress: Record<string, unknown> | null,
): Promise<void> {
  const { rowCount } = await reportOperation.run(db, id, epoch, step, progress && JSON.stringify(progress))
  if (!rowCount) throw new LeaseLost(`operation ${id}, epoch ${epoch}`)
}

/** How an attempt ends. */
export type Ending =
  | { state: 'succeeded'; result?: Record<string, unknown> }
  | { state: 'canceled' }
  | {
      state: 'failed'
      error: string
      code: string
      cause: string
      result?: Record<string, unknown> | undefined
    }
  /** Retries after `delayMs`; `counted` counts the attempt as one with an unexpected error. */
  | { state: 'queued'; delayMs: number; code: string; cause: string; counted?: boolean }

/**
 * Ends an attempt together with the writes of `write`, in one transaction. Rows of files and agents are locked before
 * the operation's row.
 * @throws LeaseLost, and what `write` throws; nothing is written then.
 */
export function endWith(
  prisma: PrismaClient,
  operation: Claim,
  write: (tx: Transaction) => Promise<Ending>,
): Promise<void> {
  return inTransaction(prisma, async (tx) => end(tx, operation, await write(tx)))
}

/** Ends an attempt without other writes. @throws LeaseLost */
export async function end(db: Queryable, { id, epoch }: Claim, ending: Ending): Promise<void> {
  const retry = ending.state === 'queued' ? ending : undefined
  const { rowCount } = await endOperation.run(
    db,
    id,
    epoch,
    ending.state,
    retry?.delayMs ?? 0,
    retry?.counted ? 1 : 0,
    ending.state === 'failed' ? ending.error : null,
    'code' in ending ? ending.code : null,
    'cause' in ending ? ending.cause : null,
    'result' in ending ? toJson(ending.result) : null,
  )
  if (!rowCount) throw new LeaseLost(`operation ${id}, epoch ${epoch}`)
}

/** Null for an empty result. */
function toJson(result: Record<string, unknown> = {}): string | null {
  const text = JSON.stringify(result)
  return text === '{}' ? null : text
}

/** Releases a claim untouched, for a worker that shuts down: the attempt does not count. */
export async function release(db: Queryable, { id, epoch }: Claim): Promise<void> {
  await releaseOperation.run(db, id, epoch)
}

/** Records that the job of an operation is used up without a claim: it is dispatched again at once. */
export async function requeue(db: Queryable, id: string): Promise<undefined> {
  await requeueOperation.run(db, id)
}
