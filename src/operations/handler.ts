/** The interface of handlers: a run ends by `succeed`, together with its outcome, or by one of these errors. */
import type { Transaction } from '../db/prisma.ts'
import type { Logger } from '../log.ts'
import type { InputOf, OperationKind, ResultOf } from './catalog.ts'
import type { Claim } from './lease.ts'

declare const ended: unique symbol
/** Proof that a run has ended: only `succeed` makes one. */
export type Ended = { readonly [ended]: true }

/** An attempt at an operation, as its handler gets it. */
export interface Run<K extends OperationKind = OperationKind> {
  readonly operation: Claim
  readonly input: InputOf<K>
  /**
   * Fires when the lease is lost, the client cancels, the kind's time is over, or the worker shuts down: stop, and
   * throw.
   */
  readonly signal: AbortSignal
  readonly log: Logger
  /** Shows a step and its progress to the client. @throws LeaseLost */
  report(step: string, progress?: Record<string, unknown>): Promise<void>
  /**
   * Ends the operation, with its result. What has to be written with it is written by a function in the result's place, in
   * the transaction that ends the operation, which gives the result: either all of it is there, or nothing.
   * @throws LeaseLost, and what the function throws.
   */
  succeed(result: ResultOf<K> | ((tx: Transaction) => Promise<ResultOf<K>>)): Promise<Ended>
}

/**
 * The code of one kind. Every step may run twice, and be interrupted anywhere: it looks before it acts. The runner turns
 * what `handle` throws into the end of the attempt: {@link OperationFailed}, {@link RetryLater}, {@link OperationCanceled}. Any other
 * error is unexpected, and is tried again as often as the kind says.
 */
export interface Handler<K extends OperationKind = OperationKind> {
  handle(run: Run<K>): Promise<Ended>
  /**
   * Writes what it means for the subject that the operation fails, in the transaction that ends it, so that nothing waits
   * for an operation that has failed. The code of the last unexpected error is `internal`. It may throw as `handle` does.
   */
  failed?(tx: Transaction, run: Run<K>, failure: OperationFailed): Promise<void>
}
export type Handlers = { readonly [K in OperationKind]?: Handler<K> }

interface FailureOptions extends ErrorOptions {
  /** The message for the client; the kind's `failureMessage` where it is not given. */
  publicMessage?: string
  /** For whoever started it; `detail` is a line for the owner of the subject. */
  result?: Record<string, unknown> | undefined
  /** More for the operator, below the message. */
  lastLines?: string[]
}

/** The operation has failed, for a reason that another attempt does not remove. */
export class OperationFailed extends Error {
  override name = 'OperationFailed'
  readonly code: string
  readonly publicMessage: string | undefined
  readonly result: Record<string, unknown> | undefined
  readonly lastLines: string[]

  /** @param message for the operator: what the cause was. */
  constructor(code: string, message: string, options: FailureOptions = {}) {
    super(message, options)
    this.code = code
    this.publicMessage = options.publicMessage
    this.result = options.result
    this.lastLines = options.lastLines ?? []
  }
}

/**
 * Another attempt may do better: the operation goes back to the line, and waits as its kind says. Where the kind says that it
 * has been tried for long enough, it fails with what is here.
 */
export class RetryLater extends OperationFailed {
  override name = 'RetryLater'
  /** Milliseconds, instead of the kind's wait. */
  readonly delayMs: number | undefined
  /** The operation is tried again, however long that has gone on: the handler bounds it by `errorCount`, which counts these. */
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

/** The operation is no longer wanted, or its subject is gone. */
export class OperationCanceled extends Error {
  override name = 'OperationCanceled'
}

/**
 * The wait before the next attempt, in milliseconds: `firstMs` after the first one, `factor` times as long after each further
 * one, at most `maxMs`. Spread by a tenth, so that operations which failed together do not come back together.
 * @param attempts that have failed so far, at least 1.
 */
export function backoffMs(
  { firstMs, maxMs, factor = 2 }: { firstMs: number; maxMs: number; factor?: number },
  attempts: number,
): number {
  return Math.min(firstMs * factor ** (attempts - 1), maxMs) * (0.9 + Math.random() * 0.2)
}
