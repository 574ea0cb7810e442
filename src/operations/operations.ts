/**
 * A request's side of an operation: starting it, and waiting for its end. Every wait is one generator, which is
 * notified and also polls, in case notifications are lost.
 */

import type { Notifications } from '../db/notifications.ts'
import type { Pool } from '../db/pool.ts'
import { readOperationResult } from '../db/statements/operations.ts'
import type { Prefer } from '../http/request-headers.ts'
import type { Bounds, Holder } from '../lib/bounds.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { within } from '../lib/signals.ts'
import { catalog, isFinished, type OperationKind, type OperationState, type ResultOf } from './catalog.ts'
import { type EnqueueOptions, enqueue, type Subject, type SubjectKind } from './enqueue.ts'
import { findOperation, type Versioned } from './operation-store.ts'

const POLL_MS = 1000
/** How long a request waits for the operation that it started, unless `Prefer` specifies it. */
const WAIT_MS = 25_000

/** The waiting caller: the number of waits is bounded per key and per workspace. */
type Caller = Holder & { workspaceId: string }

/** The parts of a request's context that determine how long it waits. */
export interface Asked {
  principal: Caller
  prefer: Prefer
  /** Ends the wait. */
  signal: AbortSignal
  /** Milliseconds to wait unless `Prefer` specifies it; default: 25 seconds. */
  waitMs?: number
}

/** An ended operation, with its result for the caller who started it. */
export type Finished<K extends OperationKind> =
  | (Versioned & { state: 'succeeded'; result: ResultOf<K> })
  | (Versioned & { state: 'failed'; error: string; result: { detail?: unknown } })
  | (Versioned & { state: 'canceled' })

export interface Started<K extends OperationKind = OperationKind> {
  /** The operation when the wait ended. */
  operation: { id: string; state: OperationState }
  /** Undefined if the wait ended first. */
  finished: Finished<K> | undefined
  /** `Operation-Id` and `Location`: where the client can follow it. */
  headers: Record<string, string>
}

export class Operations {
  readonly #pool: Pool
  readonly #notifications: Notifications
  readonly #bounds: Bounds
  /** Has committed operations dispatched to a worker at once. */
  readonly wake: () => void
  readonly #closing = new AbortController()

  constructor(options: { pool: Pool; notifications: Notifications; bounds: Bounds; wake: () => void }) {
    this.#pool = options.pool
    this.#notifications = options.notifications
    this.#bounds = options.bounds
    this.wake = options.wake
  }

  /** Ends every wait as if its time had run out, and prevents new ones. */
  close(): void {
    this.#closing.abort()
  }

  /**
   * Starts an operation and waits for its end, as long as `Prefer` specifies.
   * @throws ApiError 404 if the subject was deleted in the meantime, 422 if `idempotencyKey` belongs to another
   *   request.
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
   * Dispatches a committed operation, and waits for its end, as long as `Prefer` specifies. The request must not fail
   * any longer: if too many callers wait, it returns without waiting.
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
    return { operation: { id: operationId, state }, finished, headers }
  }

  /**
   * The operation as soon as it has finished, or its state after `ms`; undefined if it does not exist.
   * @throws ApiError 429 while too many callers wait.
   */
  latest(caller: Caller, id: string, ms: number, signal: AbortSignal): Promise<Versioned | undefined> {
    return this.#bounds.run('waits', caller, () => this.#latest(caller.workspaceId, id, ms, signal))
  }

  /**
   * Yields the operation now and after every change, until it has finished or `until` fires. The generator ends early
   * if the operation does not exist (any longer).
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
        // Armed before the read, so that a change right after it is not missed.
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
    const bound = within(ms, signal)
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
