/**
 * The worker side of an operation: claim, run the kind's handler under a lease, end the try.
 * Handlers know nothing of queues and leases; they observe the world, act, and say how it ended.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { crashPoint } from '../crash-point.ts'
import { isDatabaseDown, isUniqueViolation } from '../db/errors.ts'
import type { Pool, Queryable } from '../db/pool.ts'
import type { Logger } from '../log.ts'
import { catalog, type OperationKind } from './catalog.ts'
import {
  type Claim,
  claim,
  type Ending,
  end,
  giveBack,
  LeaseLost,
  RENEW_MS,
  renew,
  report,
  returnJob,
} from './lease.ts'

/** What a handler is given. */
export interface Run {
  readonly operation: Claim
  /** Fires when the lease is lost, the client cancels, or the worker shuts down: stop, and throw. */
  readonly signal: AbortSignal
  readonly log: Logger
  /** Shows a step and its progress to the client. @throws LeaseLost */
  report(step: string, progress?: Record<string, unknown>): Promise<void>
  /** Ends the operation on `db`: call it in the transaction that writes the outcome. @throws LeaseLost */
  end(db: Queryable, ending: Ending): Promise<void>
}

/** A handler ends its run, or throws: then the try counts as a fault and is repeated later. */
export type Handler = (run: Run) => Promise<void>
export type Handlers = Readonly<Record<OperationKind, Handler>>

/** A worker that cannot reach the database gives up its lease without a word: the row will expire. */
const FAULT_DELAY_MS = 1000
const MAX_FAULT_DELAY_MS = 300_000

class Canceled extends Error {}
class ShuttingDown extends Error {}

export class Runner {
  readonly #pool: Pool
  readonly #handlers: Handlers
  readonly #workerId: string
  readonly #log: Logger
  readonly #shutdown = new AbortController()

  constructor(options: { pool: Pool; handlers: Handlers; workerId: string; log: Logger }) {
    this.#pool = options.pool
    this.#handlers = options.handlers
    this.#workerId = options.workerId
    this.#log = options.log
  }

  /** Interrupts every run; each operation goes back to the line at once. */
  shutdown(): void {
    this.#shutdown.abort(new ShuttingDown())
  }

  /** Runs the operation if it is to be had. Never throws: the row says how it ended. */
  async run(operationId: string): Promise<void> {
    const operation = await this.#claim(operationId)
    if (!operation) return
    crashPoint('after-claim')
    const log = this.#log.child({ operation: operation.id, kind: operation.kind, epoch: operation.epoch })
    const lease = new AbortController()
    const signal = AbortSignal.any([lease.signal, this.#shutdown.signal])
    const renewing = this.#keepRenewing(operation, lease)
    try {
      await this.#handlers[operation.kind]({
        operation,
        signal,
        log,
        report: (step, progress) => report(this.#pool, operation, step, progress ?? null),
        end: (db, ending) => end(db, operation, ending),
      })
    } catch (error) {
      await this.#endBadly(operation, signal.aborted ? signal.reason : error, log)
    } finally {
      lease.abort(new LeaseLost('the run is over'))
      await renewing
    }
  }

  async #claim(id: string): Promise<Claim | undefined> {
    try {
      if (this.#shutdown.signal.aborted) return await returnJob(this.#pool, id)
      return await claim(this.#pool, id, this.#workerId)
    } catch (error) {
      // The partial unique index: another operation with the same exclusive key was claimed first.
      if (!isUniqueViolation(error, 'operation_one_running')) this.#log.warn({ err: error }, 'claim failed')
      return
    }
  }

  /** Renews until the run is over. A lease that cannot be renewed in time is treated as lost. */
  async #keepRenewing(operation: Claim, lease: AbortController): Promise<void> {
    while (!lease.signal.aborted) {
      try {
        if (await renew(this.#pool, operation)) lease.abort(new Canceled())
      } catch (error) {
        // While the database is away nobody else can claim either: go on until it says otherwise.
        if (error instanceof LeaseLost) lease.abort(error)
      }
      await delay(RENEW_MS, undefined, { signal: lease.signal }).catch(() => {})
    }
  }

  async #endBadly(operation: Claim, error: unknown, log: Logger): Promise<void> {
    try {
      if (error instanceof LeaseLost) return log.info('lease lost; another worker goes on')
      if (error instanceof ShuttingDown) return await giveBack(this.#pool, operation)
      if (error instanceof Canceled) return await end(this.#pool, operation, { state: 'canceled' })
      const cause = String((error as Error)?.stack ?? error)
      if (isDatabaseDown(error)) {
        // Not the operation's fault, however often it happens.
        log.info({ err: error }, 'the database was away')
        const ending = { state: 'queued', delayMs: FAULT_DELAY_MS, code: 'database_away', cause } as const
        return await end(this.#pool, operation, ending)
      }
      log.error({ err: error }, 'operation fault')
      const faults = operation.faults + 1
      const delayMs = Math.min(FAULT_DELAY_MS * 2 ** operation.faults, MAX_FAULT_DELAY_MS)
      await end(
        this.#pool,
        operation,
        faults >= catalog[operation.kind].maxFaults
          ? { state: 'failed', error: 'Internal error', code: 'internal', cause }
          : { state: 'queued', delayMs, code: 'internal', cause, fault: true },
      )
    } catch (failed) {
      if (!(failed instanceof LeaseLost))
        log.warn({ err: failed }, 'could not end the try; its lease will run out')
    }
  }
}
