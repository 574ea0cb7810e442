/** Long work: start it, then wait for its end. */
import type { Berth } from './client.ts'
import { RequestError, type Result, unwrap } from './errors.ts'
import type { paths } from './schema.ts'

export type Operation =
  paths['/v0/operations/{id}']['get']['responses'][200]['content']['application/json']['data']

/** Seconds that one request waits. If the operation takes longer, the next request continues. */
const WAIT_S = 30

/**
 * Headers of a request that starts an operation: Berth responds at once, and a repeat finds the same operation.
 * @param key names this piece of work; a new one by default.
 */
export const startNow = (key: string = crypto.randomUUID()) => ({
  Prefer: 'respond-async',
  'Idempotency-Key': key,
})

export interface WaitOptions {
  /** Receives the operation, unfinished, each time that Berth reports it. */
  onProgress?: (operation: Operation) => void
  signal?: AbortSignal
}

/**
 * Waits for the end of an operation.
 * @param started the operation's id, or the response to the request that started it.
 * @returns the operation, which has succeeded.
 * @throws RequestError with the operation's message if it failed or was canceled.
 */
export async function waitForOperation(
  berth: Berth,
  started: string | Result<unknown> | Promise<Result<unknown>>,
  { onProgress, signal }: WaitOptions = {},
): Promise<Operation> {
  const id = typeof started === 'string' ? started : await operationOf(started)
  for (let wait = 1; ; wait = Math.min(2 * wait, WAIT_S)) {
    const { data } = await unwrap(
      berth.GET('/v0/operations/{id}', {
        params: { path: { id }, query: { wait } },
        ...(signal && { signal }),
      }),
    )
    if (data.state === 'succeeded') return data
    if (data.finished_at) throw new OperationError(data)
    onProgress?.(data)
  }
}

/** An operation that failed or was canceled. */
export class OperationError extends RequestError {
  override name = 'OperationError'
  readonly operation: Operation
  constructor(operation: Operation) {
    super(500, operation.error ?? operation.state)
    this.operation = operation
  }
}

/** The id of the operation that a request has started. @throws RequestError if it was refused. */
async function operationOf(started: Result<unknown> | Promise<Result<unknown>>): Promise<string> {
  const result = await started
  await unwrap(result)
  const id = result.response.headers.get('operation-id')
  if (!id) throw new Error('this request starts no operation')
  return id
}
