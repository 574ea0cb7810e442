/**
 * A worker's statements on an operation's row. A claim bumps the epoch, and every later write says
 * `epoch = mine AND state = 'running'`: a worker that lost its lease changes nothing any more.
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
  /** Attempts so far, this one included. */
  attempts: number
  errorCount: number
  /** Milliseconds since the first attempt began. */
  ageMs: number
  /** The input of its kind. */
  input: Record<string, unknown> | null
  /** The last progress of the attempt before. */
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
 * Writes the visible step and progress, and tells whoever waits.
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
  /** Tries again after `delayMs`; `counted` counts the attempt among those with an unexpected error. */
  | { state: 'queued'; delayMs: number; code: string; cause: string; counted?: boolean }

/**
 * Ends an attempt together with what `write` writes, in one transaction. Rows of files and agents are locked before that of the
 * operation.
 * @throws LeaseLost, and what `write` throws; nothing is written then.
 */
export function endWith(
  prisma: PrismaClient,
  operation: Claim,
  write: (tx: Transaction) => Promise<Ending>,
): Promise<void> {
  return inTransaction(prisma, async (tx) => end(tx, operation, await write(tx)))
}

/** Ends an attempt with which nothing else is written. @throws LeaseLost */
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

/** Null for a result that says nothing. */
function toJson(result: Record<string, unknown> = {}): string | null {
  const text = JSON.stringify(result)
  return text === '{}' ? null : text
}

/** Gives a claim back untouched, for a worker that shuts down: the attempt does not count. */
export async function release(db: Queryable, { id, epoch }: Claim): Promise<void> {
  await releaseOperation.run(db, id, epoch)
}

/** Says that the job of an operation is used up and nobody claimed it: it is dispatched again at once. */
export async function requeue(db: Queryable, id: string): Promise<undefined> {
  await requeueOperation.run(db, id)
}
