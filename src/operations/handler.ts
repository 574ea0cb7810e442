/**
 * The interface of handlers: a run ends through `succeed`, together with its outcome, or through one of these errors.
 */
import type { Transaction } from '../db/prisma.ts'
import type { Logger } from '../log.ts'
import type { InputOf, OperationKind, ResultOf } from './catalog.ts'
import type { Claim } from './lease.ts'

declare const ended: unique symbol
/** Proof that a run has ended: only `succeed` creates one. */
export type Ended = { readonly [ended]: true }

/** An attempt at an operation, as passed to its handler. */
export interface Run<K extends OperationKind = OperationKind> {
  readonly operation: Claim
  readonly input: InputOf<K>
  /**
   * Fires if the lease is lost, the client cancels, the kind's time limit is reached, or the worker shuts down: the
   * handler must stop and throw.
   */
  readonly signal: AbortSignal
  readonly log: Logger
  /** Shows a step and its progress to the client. @throws LeaseLost */
  report(step: string, progress?: Record<string, unknown>): Promise<void>
  /**
   * Ends the operation with its result. To write something else with it, pass a function instead of a result. It runs
   * in the transaction that ends the operation, and returns the result: either everything is written, or nothing.
   * @throws LeaseLost, and what the function throws.
   */
  succeed(result: ResultOf<K> | ((tx: Transaction) => Promise<ResultOf<K>>)): Promise<Ended>
}

/**
 * The code of one kind. Every step may run twice, and be interrupted anywhere, so it checks before it acts. The runner
 * turns errors from `handle` into the end of the attempt: {@link OperationFailed}, {@link RetryLater},
 * {@link OperationCanceled}. Any other error is unexpected, and is retried as often as the kind allows.
 */
export interface Handler<K extends OperationKind = OperationKind> {
  handle(run: Run<K>): Promise<Ended>
  /**
   * Records the consequences of a failure for the subject, in the transaction that ends the operation, so that nothing
   * waits for a failed operation. The code of the last unexpected error is `internal`. It may throw the same errors as
   * `handle`.
   */
  failed?(tx: Transaction, run: Run<K>, failure: OperationFailed): Promise<void>
}
export type Handlers = { readonly [K in OperationKind]?: Handler<K> }

interface FailureOptions extends ErrorOptions {
  /** The message for the client; default: the kind's `failureMessage`. */
  publicMessage?: string
  /** For the caller who started it; `detail` is a line for the owner of the subject. */
  result?: Record<string, unknown> | undefined
  /** More lines for the operator, below the message. */
  lastLines?: string[]
}

/** The operation has failed, for a reason that a retry cannot fix. */
export class OperationFailed extends Error {
  override name = 'OperationFailed'
  readonly code: string
  readonly publicMessage: string | undefined
  readonly result: Record<string, unknown> | undefined
  readonly lastLines: string[]

  /** @param message the cause, for the operator. */
  constructor(code: string, message: string, options: FailureOptions = {}) {
    super(message, options)
    this.code = code
    this.publicMessage = options.publicMessage
    this.result = options.result
    this.lastLines = options.lastLines ?? []
  }
}

/**
 * A retry may succeed: the operation is queued again, and waits as its kind defines. Once the kind's limit is reached,
 * it fails with this code and message.
 */
export class RetryLater extends OperationFailed {
  override name = 'RetryLater'
  /** Milliseconds, instead of the kind's wait. */
  readonly delayMs: number | undefined
  /**
   * The operation is retried without a time limit: the handler bounds it by `errorCount`, which counts these attempts.
   */
  readonly unbounded: boolean

  constructor(
    code: string,
    message: string,
    options: FailureOptions & { delayMs?: number; unbounded?: boolean } = {},
  ) {
    super(code, message, options)
    this.delayMs = options.delayMs
    this.unbounded = options.unbounded ?? false
  }
}

/** The operation is no longer wanted, or its subject no longer exists. */
export class OperationCanceled extends Error {
  override name = 'OperationCanceled'
}

/**
 * The wait before the next attempt, in milliseconds: `firstMs` after the first attempt, then multiplied by `factor`
 * after each further one, at most `maxMs`. Varied by a tenth, so that operations that failed together do not retry
 * together.
 * @param attempts failed attempts so far, at least 1.
 */
export function backoffMs(
  { firstMs, maxMs, factor = 2 }: { firstMs: number; maxMs: number; factor?: number },
  attempts: number,
): number {
  return Math.min(firstMs * factor ** (attempts - 1), maxMs) * (0.9 + Math.random() * 0.2)
}
