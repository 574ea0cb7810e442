/**
 * A request's side of an operation: starting it, and waiting for its end. Every wait is one generator, by notification with
 * a poll behind it for those that get lost.
 */

import type { Notifications } from '../db/notifications.ts'
import type { Pool } from '../db/pool.ts'
import { readOperationResult } from '../db/statements/operations.ts'
import type { Prefer } from '../http/request-headers.ts'
import type { Bounds, Holder } from '../lib/bounds.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { catalog, isFinished, type OperationKind, type OperationState, type ResultOf } from './catalog.ts'
import { type EnqueueOptions, enqueue, type Subject, type SubjectKind } from './enqueue.ts'
import { findOperation, type Versioned } from './operation-store.ts'

const POLL_MS = 1000
/** How long a request waits for what it has started where `Prefer` says nothing. */
const WAIT_MS = 25_000

/** The one who waits: the places for waiting are bounded for each key and each workspace. */
type Caller = Holder & { workspaceId: string }

/** The parts of a request's context that decide how long it waits. */
export interface Asked {
  principal: Caller
  prefer: Prefer
  /** Ends the wait. */
  signal: AbortSignal
  /** Milliseconds to wait where `Prefer` says nothing; 25 seconds where this says nothing either. */
  waitMs?: number
}

/** An operation that has ended, with what it left for whoever started it. */
export type Finished<K extends OperationKind> =
  | (Versioned & { state: 'succeeded'; result: ResultOf<K> })
  | (Versioned & { state: 'failed'; error: string; result: { detail?: unknown } })
  | (Versioned & { state: 'canceled' })

export interface Started<K extends OperationKind = OperationKind> {
  operationId: string
  /** The state of the operation when the wait ended. */
  state: OperationState
  /** Undefined when the wait ended first. */
  finished: Finished<K> | undefined
  /** `Operation-Id` and `Location`: where a client follows it. */
  headers: Record<string, string>
}

export class Operations {
  readonly #pool: Pool
  readonly #notifications: Notifications
  readonly #bounds: Bounds
  /** Has what is committed dispatched to a worker at once. */
  readonly wake: () => void
  readonly #closing = new AbortController()

  constructor(options: { pool: Pool; notifications: Notifications; bounds: Bounds; wake: () => void }) {
    this.#pool = options.pool
    this.#notifications = options.notifications
    this.#bounds = options.bounds
    this.wake = options.wake
  }

  /** Ends every wait, as if its time had run out, and lets none begin. */
  close(): void {
    this.#closing.abort()
  }

  /**
   * Starts an operation and waits for its end, as long as `Prefer` says.
   * @throws ApiError 404 when the subject was deleted meanwhile, 422 when `idempotencyKey` named another request.
   */
  async start<K extends SubjectKind>(
    kind: K,
    subject: Subject,
    options: EnqueueOptions<K> & Asked,
  ): Promise<Started<K>> {
    const operationId = await enqueue(this.#pool, kind, subject, options)
    crashPoint('after-commit')
    return this.started(kind, operationId, options)
  }

  /**
   * Has an operation that is committed dispatched, and waits for its end, as long as `Prefer` says. The request must not
   * fail any more: while too many wait, this one does not.
   */
  async started<K extends OperationKind>(
    kind: K,
    operationId: string,
    { principal, prefer, signal, waitMs = WAIT_MS }: Asked,
  ): Promise<Started<K>> {
    this.wake()
    const headers = { 'Operation-Id': operationId, Location: `/v0/operations/${operationId}` }
    const ms = prefer.waitMs ?? waitMs
    const release = ms > 0 ? this.#bounds.tryTake('waits', principal) : undefined
    const latest = release
      ? await this.#latest(principal.workspaceId, operationId, ms, signal).finally(release)
      : undefined
    const state = latest?.state ?? 'queued'
    const finished = latest && isFinished(state) ? await this.#finished(kind, latest) : undefined
    return { operationId, state, finished, headers }
  }

  /**
   * The operation as soon as it has finished, or as it is after `ms`; undefined when it is not there.
   * @throws ApiError 429 while too many wait.
   */
  latest(caller: Caller, id: string, ms: number, signal: AbortSignal): Promise<Versioned | undefined> {
    return this.#bounds.run('waits', caller, () => this.#latest(caller.workspaceId, id, ms, signal))
  }

  /**
   * Yields the operation now and after every change, until it has finished or `until` fires. The
   * generator ends early when the operation is not (or no longer) there.
   */
  async *changes(workspaceId: string, id: string, until: AbortSignal): AsyncGenerator<Versioned> {
    const signal = AbortSignal.any([until, this.#closing.signal])
    let wake = () => {}
    const unsubscribe = this.#notifications.on('berth_operation', (changed) => {
      if (changed === id) wake()
    })
    const onAbort = () => wake()
    signal.addEventListener('abort', onAbort)
    try {
      let seen = -1
      while (!signal.aborted) {
        let timer: NodeJS.Timeout | undefined
        // Armed before the read, so that a change right after the read is not missed.
        const changed = new Promise<void>((resolve) => {
          wake = resolve
          timer = setTimeout(resolve, POLL_MS)
        })
        const operation = await findOperation(this.#pool, workspaceId, id)
        if (!operation) return clearTimeout(timer)
        if (operation.version !== seen) {
          seen = operation.version
          yield operation
        }
        if (isFinished(operation.state)) return clearTimeout(timer)
        if (!signal.aborted) await changed
        clearTimeout(timer)
      }
    } finally {
      unsubscribe()
      signal.removeEventListener('abort', onAbort)
    }
  }

  async #latest(
    workspaceId: string,
    id: string,
    ms: number,
    signal: AbortSignal,
  ): Promise<Versioned | undefined> {
    let latest: Versioned | undefined
    const bound = AbortSignal.any([signal, AbortSignal.timeout(ms)])
    for await (const operation of this.changes(workspaceId, id, bound)) latest = operation
    return latest
  }

  async #finished<K extends OperationKind>(kind: K, operation: Versioned): Promise<Finished<K>> {
    const { rows } = await readOperationResult.run(this.#pool, operation.id)
    const result = rows[0]?.result ?? {}
    const shape = catalog[kind].result
    return {
      ...operation,
      result: operation.state === 'succeeded' ? shape.parse(result) : result,
    } as Finished<K>
  }
}
