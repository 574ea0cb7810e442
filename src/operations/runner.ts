/**
 * The worker side of an operation: claim, run the kind's handler under a lease, end the try.
 * Handlers know nothing of queues and leases; they observe the world, act, and say how it ended.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { crashPoint } from '../crash-point.ts'
import { isTransient, isUniqueViolation } from '../db/errors.ts'
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

export interface Handler {
  /** Ends the run, or throws: then the try counts as a fault and is repeated later. */
  handle(run: Run): Promise<void>
  /**
   * Ends the run with `ending` after the last fault, together with what the operation was about: nothing
   * may be left waiting for an operation that has failed. Without it the operation alone ends.
   */
  giveUp?(run: Run, ending: Ending): Promise<void>
}
export type Handlers = Readonly<Record<OperationKind, Handler>>

/** Wait after the first fault; it doubles with each further one. */
const FAULT_DELAY_MS = 1000
const MAX_FAULT_DELAY_MS = 300_000

class Canceled extends Error {}
class ShuttingDown extends Error {}

export class Runner {
  readonly #pool: Pool
  readonly #leases: Pool
  readonly #handlers: Handlers
  readonly #workerId: string
  readonly #log: Logger
  readonly #shutdown = new AbortController()

  /** @param options.leases connections for leases alone, which nothing else may keep busy. */
  constructor(options: { pool: Pool; leases: Pool; handlers: Handlers; workerId: string; log: Logger }) {
    this.#pool = options.pool
    this.#leases = options.leases
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
    const run: Run = {
      operation,
      signal,
      log,
      report: (step, progress) => report(this.#pool, operation, step, progress ?? null),
      end: (db, ending) => end(db, operation, ending),
    }
    try {
      await this.#handlers[operation.kind].handle(run)
    } catch (error) {
      await this.#endBadly(run, signal.aborted ? signal.reason : error)
    } finally {
      lease.abort(new LeaseLost('the run is over'))
      await renewing
    }
  }

  async #claim(id: string): Promise<Claim | undefined> {
    try {
      if (this.#shutdown.signal.aborted) return await returnJob(this.#leases, id)
      return await claim(this.#leases, id, this.#workerId)
    } catch (error) {
      // The partial unique index: another operation with the same exclusive key was claimed first.
      if (!isUniqueViolation(error, 'operation_one_running')) this.#log.warn({ err: error }, 'claim failed')
      return
    }
  }

  /** Renews until the run is over, and ends the run when the lease is lost or the client cancels. */
  async #keepRenewing(operation: Claim, lease: AbortController): Promise<void> {
    while (!lease.signal.aborted) {
      try {
        if (await renew(this.#leases, operation)) lease.abort(new Canceled())
      } catch (error) {
        // The database is away, for us or for all: go on until it says otherwise. Every write is fenced.
        if (error instanceof LeaseLost) lease.abort(error)
      }
      await delay(RENEW_MS, undefined, { signal: lease.signal }).catch(() => {})
    }
  }

  async #endBadly(run: Run, error: unknown): Promise<void> {
    const { operation, log } = run
    try {
      if (error instanceof LeaseLost) return log.info('lease lost; another worker goes on')
      if (error instanceof ShuttingDown) return await giveBack(this.#leases, operation)
      if (error instanceof Canceled) return await end(this.#leases, operation, { state: 'canceled' })
      const cause = String((error as Error)?.stack ?? error)
      if (isTransient(error)) {
        // Not the operation's fault, however often it happens.
        log.info({ err: error }, 'the database was away, or busy')
        const ending = { state: 'queued', delayMs: FAULT_DELAY_MS, code: 'database_away', cause } as const
        return await end(this.#leases, operation, ending)
      }
      log.error({ err: error }, 'operation fault')
      if (operation.faults + 1 < catalog[operation.kind].maxFaults) {
        const delayMs = Math.min(FAULT_DELAY_MS * 2 ** operation.faults, MAX_FAULT_DELAY_MS)
        const ending = { state: 'queued', delayMs, code: 'internal', cause, fault: true } as const
        return await end(this.#leases, operation, ending)
      }
      const ending = { state: 'failed', error: 'Internal error', code: 'internal', cause } as const
      const { giveUp } = this.#handlers[operation.kind]
      await (giveUp ? giveUp(run, ending) : end(this.#leases, operation, ending))
    } catch (failed) {
      if (!(failed instanceof LeaseLost))
        log.warn({ err: failed }, 'could not end the try; its lease will run out')
    }
  }
}
