/**
 * The worker side of an operation: it claims the operation, runs the kind's handler under a lease, and ends the
 * attempt. Handlers do not know about queues and leases, and only this code turns an error into the end of an attempt.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { isTransient, isUniqueViolation } from '../db/database-errors.ts'
import type { Pool } from '../db/pool.ts'
import type { PrismaClient } from '../db/prisma.ts'
import { crashPoint } from '../lib/crash-point.ts'
import type { Logger } from '../log.ts'
import { catalog, type InputOf, type OperationKind } from './catalog.ts'
import {
  backoffMs,
  type Ended,
  type Handler,
  type Handlers,
  OperationCanceled,
  OperationFailed,
  RetryLater,
  type Run,
} from './handler.ts'
import {
  type Claim,
  claim,
  type Ending,
  end,
  endWith,
  LeaseLost,
  RENEW_MS,
  release,
  renew,
  report,
  requeue,
} from './lease.ts'
import type { OperationMetrics } from './metrics.ts'

/** The wait after an unexpected error. */
const ERROR_BACKOFF = { firstMs: 1000, maxMs: 300_000 }
const DATABASE_DELAY_MS = 1000

class ShuttingDown extends Error {}

export class Runner {
  readonly #pool: Pool
  readonly #prisma: PrismaClient
  readonly #leases: Pool
  readonly #handlers: Handlers
  readonly #workerId: string
  readonly #log: Logger
  readonly #metrics: OperationMetrics | undefined
  readonly #shutdown = new AbortController()
  #running = 0

  /** @param options.leases connections only for leases, which nothing else may keep busy. */
  constructor(options: {
    pool: Pool
    prisma: PrismaClient
    leases: Pool
    handlers: Handlers
    workerId: string
    log: Logger
    metrics?: OperationMetrics
  }) {
    this.#pool = options.pool
    this.#prisma = options.prisma
    this.#leases = options.leases
    this.#handlers = options.handlers
    this.#workerId = options.workerId
    this.#log = options.log
    this.#metrics = options.metrics
  }

  /** The number of running operations. */
  get running(): number {
    return this.#running
  }

  /** Interrupts every run; each operation is queued again at once. */
  shutdown(): void {
    this.#shutdown.abort(new ShuttingDown())
  }

  /** Runs the operation if it can be claimed. Never throws: the row records the outcome. */
  async run(operationId: string): Promise<void> {
    const operation = await this.#claim(operationId)
    if (!operation) return
    crashPoint('after-claim')
    const log = this.#log.child({ operation: operation.id, kind: operation.kind, epoch: operation.epoch })
    // A kind of a newer version: the lease expires, and a worker of that version may get the operation.
    if (!(operation.kind in catalog))
      return log.error('an operation of a kind that this version does not have')
    const lease = new AbortController()
    const time = new AbortController()
    const signal = AbortSignal.any([lease.signal, this.#shutdown.signal, time.signal])
    const renewing = this.#keepRenewing(operation, lease)
    const late = limitTime(operation.kind, time)
    const claimed = performance.now()
    this.#running++
    let ended: Ending['state'] | undefined
    try {
      ended = await this.#attempt(operation, signal, log)
    } finally {
      clearTimeout(late)
      lease.abort(new LeaseLost('the run is over'))
      await renewing
      this.#running--
      const seconds = (operation.ageMs + performance.now() - claimed) / 1000
      if (ended) this.#metrics?.ended(operation.kind, ended, seconds)
    }
  }

  /**
   * @returns the state in which the attempt left the operation; undefined if another worker has it, or its lease will
   *   expire.
   */
  async #attempt(operation: Claim, signal: AbortSignal, log: Logger): Promise<Ending['state'] | undefined> {
    const { kind } = operation
    // The kind determines the input and the handler, which the types cannot express.
    const handler = this.#handlers[kind] as Handler | undefined
    const input = catalog[kind].input.safeParse(operation.input ?? {})
    const run: Run = {
      operation,
      input: (input.data ?? {}) as InputOf<OperationKind>,
      signal,
      log,
      report: (step, progress) => report(this.#pool, operation, step, progress ?? null),
      succeed: async (outcome) => {
        if (typeof outcome !== 'function')
          await end(this.#leases, operation, { state: 'succeeded', result: outcome })
        else
          await endWith(this.#prisma, operation, async (tx) => ({
            state: 'succeeded',
            result: await outcome(tx),
          }))
        return {} as Ended
      },
    }
    try {
      if (!handler) throw new Error(`this worker does not run ${kind}`)
      if (input.error) throw input.error
      await handler.handle(run)
      return 'succeeded'
    } catch (error) {
      return await this.#endAfterError(run, handler, signal.aborted ? signal.reason : error).catch(
        (failed) => {
          if (!(failed instanceof LeaseLost))
            log.warn({ err: failed }, 'could not end the attempt; its lease will expire')
          return undefined
        },
      )
    }
  }

  async #claim(id: string): Promise<Claim | undefined> {
    try {
      if (this.#shutdown.signal.aborted) return await requeue(this.#leases, id)
      return await claim(this.#leases, id, this.#workerId)
    } catch (error) {
      // The partial unique index: another operation with the same concurrency key was claimed first.
      if (!isUniqueViolation(error, 'operation_one_running')) this.#log.warn({ err: error }, 'claim failed')
      return
    }
  }

  /** Renews until the run is over, and ends the run if the lease is lost or the client cancels. */
  async #keepRenewing(operation: Claim, lease: AbortController): Promise<void> {
    while (!lease.signal.aborted) {
      try {
        if (await renew(this.#leases, operation))
          lease.abort(new OperationCanceled('the client cancelled it'))
      } catch (error) {
        // The database is unavailable, for this worker or for all: continue until it reports otherwise. Every write is
        // fenced.
        if (error instanceof LeaseLost) lease.abort(error)
      }
      await delay(RENEW_MS, undefined, { signal: lease.signal }).catch(() => {})
    }
  }

  async #endAfterError(
    run: Run,
    handler: Handler | undefined,
    error: unknown,
  ): Promise<Ending['state'] | undefined> {
    const { operation, log } = run
    if (error instanceof LeaseLost) {
      log.info('lease lost; another worker continues')
      return undefined
    }
    if (error instanceof ShuttingDown) {
      await release(this.#leases, operation)
      return undefined
    }
    const ending = endingOf(run, error)
    try {
      if (ending.state === 'failed' && handler?.failed) {
        const failure =
          error instanceof OperationFailed ? error : new OperationFailed('internal', ending.cause)
        await endWith(this.#prisma, operation, async (tx) => {
          await handler.failed?.(tx, run, failure)
          return ending
        })
      } else await end(this.#leases, operation, ending)
      return ending.state
    } catch (writeError) {
      // The handler could not write the failure, because the subject no longer exists or a component is unavailable. Or
      // the end itself cannot be stored, such as a message with a NUL in it.
      const { aborted, reason } = run.signal
      if (aborted && reason !== error) return this.#endAfterError(run, handler, reason)
      if (writeError instanceof LeaseLost) throw writeError
      const instead = endingOf(run, writeError)
      if (instead.state === 'failed' && handler?.failed) {
        const isUnexpected = error instanceof OperationFailed && !(writeError instanceof OperationFailed)
        if (isUnexpected) return this.#endAfterError(run, handler, writeError)
        throw writeError
      }
      await end(this.#leases, operation, instead)
      return instead.state
    }
  }
}

/** Ends a run that takes longer than its kind allows. */
function limitTime(kind: OperationKind, time: AbortController): NodeJS.Timeout | undefined {
  const { timeoutMs } = catalog[kind]
  if (timeoutMs === null) return undefined
  const message = `it took more than ${timeoutMs / 60_000} minutes`
  const late = new OperationFailed('timeout', message, { result: { detail: message } })
  return setTimeout(() => time.abort(late), timeoutMs)
}

/** How an attempt ends after an error; also logs it. */
function endingOf({ operation, log }: Run, error: unknown): Exclude<Ending, { state: 'succeeded' }> {
  const { retry, failureMessage } = catalog[operation.kind]
  if (error instanceof OperationCanceled) return { state: 'canceled' }
  if (error instanceof OperationFailed) {
    const { code, message, lastLines, result, publicMessage = failureMessage } = error
    const cause = [message, ...lastLines].join('\n')
    const forMs = retry.forMs ?? Number.POSITIVE_INFINITY
    if (error instanceof RetryLater && (error.unbounded || operation.ageMs < forMs)) {
      const delayMs = error.delayMs ?? backoffMs(retry, operation.attempts)
      log.info({ err: error, code, delayMs }, 'retrying later')
      return { state: 'queued', delayMs, code, cause, counted: error.unbounded }
    }
    log.warn({ err: error, code, lastLines }, publicMessage)
    return { state: 'failed', error: publicMessage, code, cause, result }
  }
  const cause = String((error as Error)?.stack ?? error)
  if (isTransient(error)) {
    // Not counted against the operation, however often it happens.
    log.info({ err: error }, 'the database was unavailable or busy')
    return { state: 'queued', delayMs: DATABASE_DELAY_MS, code: 'database_away', cause }
  }
  log.error({ err: error }, 'unexpected error')
  const errorCount = operation.errorCount + 1
  if (errorCount < retry.maxErrors)
    return {
      state: 'queued',
      delayMs: backoffMs(ERROR_BACKOFF, errorCount),
      code: 'internal',
      cause,
      counted: true,
    }
  return { state: 'failed', error: failureMessage, code: 'internal', cause }
}
