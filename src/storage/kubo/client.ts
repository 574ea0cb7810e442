import { create, type KuboRPCClient } from 'kubo-rpc-client'
import { StorageError } from '../port.ts'
import { KuboError } from './kubo-errors.ts'
import { apiAddress, type KuboStream } from './stream.ts'

/** The two ways in which Berth speaks to one node. */
export interface Kubo {
  client: KuboClient
  stream: KuboStream
}

export interface CallLimits {
  signal: AbortSignal
  /** Most time until the whole answer is there. */
  deadlineMs: number
}

/** Has Kubo use only its own blocks. The types of kubo-rpc-client lack it; it passes it on. */
export const OFFLINE = { offline: true }

/**
 * Kubo's RPC API by kubo-rpc-client, for every command that answers at once and whole. `KuboStream` has the others,
 * and says of each why. kubo-rpc-client only passes its `timeout` on to Kubo, so deadlines are kept here.
 */
export class KuboClient {
  readonly #rpc: KuboRPCClient

  /** @param apiUrl For example `http://127.0.0.1:5001`; a user and password in it become basic auth. */
  constructor(apiUrl: string) {
    const { base, authorization } = apiAddress(apiUrl)
    this.#rpc = create({ url: base, ...(authorization && { headers: { authorization } }) })
  }

  /**
   * Runs a call, which has to pass the given signal on.
   * @param command Names the call in errors, for example `pin/ls`.
   * @throws KuboError for what Kubo reports, else StorageError `unavailable` or `aborted`.
   */
  async call<T>(
    command: string,
    { signal, deadlineMs }: CallLimits,
    run: (rpc: KuboRPCClient, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const late = new AbortController()
    const message = `Kubo did not answer ${command} within ${deadlineMs} ms`
    const deadline = setTimeout(() => late.abort(new StorageError('unavailable', message)), deadlineMs)
    try {
      signal.throwIfAborted()
      return await run(this.#rpc, AbortSignal.any([signal, late.signal]))
    } catch (error) {
      if (signal.aborted) throw new StorageError('aborted', 'The call was aborted', { cause: error })
      if (late.signal.aborted) throw late.signal.reason
      throw failure(command, error as Failure)
    } finally {
      clearTimeout(deadline)
    }
  }
}

/** An error of kubo-rpc-client: for an answer other than 200 it has the response, for a broken connection the cause. */
interface Failure extends Error {
  response?: Response
}

function failure(command: string, error: Failure): Error {
  // Kubo's own errors are JSON, those of its HTTP server or of a proxy are not. kubo-rpc-client makes a
  // TimeoutError, which has no response, of an error of Kubo's that says so.
  const isKubos = error.response?.headers.get('content-type')?.startsWith('application/json')
  if (isKubos || error.name === 'TimeoutError') return new KuboError(error.message)
  const words = error.message.slice(0, 200)
  if (error.response) {
    return new StorageError('unavailable', `Kubo answered ${command} with ${error.response.status}: ${words}`)
  }
  // `fetch failed` and `terminated` say nothing; their cause does.
  const message =
    error.cause instanceof Error
      ? `Kubo is not there: ${error.cause.message}`
      : `Kubo's answer to ${command} cannot be read: ${words}`
  return new StorageError('unavailable', message, { cause: error })
}
