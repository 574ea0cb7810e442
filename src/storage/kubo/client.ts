import { create, type KuboRPCClient } from 'kubo-rpc-client'
import { withDeadline } from '../../lib/signals.ts'
import { StorageError } from '../port.ts'
import { KuboError } from './kubo-errors.ts'
import { apiAddress, type KuboStream } from './stream.ts'

/** The two clients with which Berth talks to one node. */
export interface Kubo {
  client: KuboClient
  stream: KuboStream
}

export interface CallLimits {
  signal: AbortSignal
  /** Time limit for the complete response. */
  deadlineMs: number
}

/** Makes Kubo use only its own blocks. The types of kubo-rpc-client lack it, but it passes it on. */
export const OFFLINE = { offline: true }

/**
 * Kubo's RPC API through kubo-rpc-client, for every command that returns at once and completely. `KuboStream` has the
 * others, with the reason for each. kubo-rpc-client only passes its `timeout` on to Kubo, so deadlines are enforced
 * here.
 */
export class KuboClient {
  readonly #rpc: KuboRPCClient

  /** @param apiUrl For example `http://127.0.0.1:5001`; a user and password in it become basic auth. */
  constructor(apiUrl: string) {
    const { base, authorization } = apiAddress(apiUrl)
    this.#rpc = create({ url: base, ...(authorization && { headers: { authorization } }) })
  }

  /**
   * Runs a call, which must pass on the given signal.
   * @param command Names the call in errors, for example `pin/ls`.
   * @throws KuboError for errors that Kubo reports, otherwise StorageError `unavailable` or `aborted`.
   */
  async call<T>(
    command: string,
    { signal, deadlineMs }: CallLimits,
    run: (rpc: KuboRPCClient, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const late = () =>
      new StorageError('unavailable', `Kubo did not answer ${command} within ${deadlineMs} ms`)
    try {
      return await withDeadline({ ms: deadlineMs, signal, late }, async (either) => {
        either.throwIfAborted()
        return await run(this.#rpc, either)
      })
    } catch (error) {
      if (signal.aborted) throw new StorageError('aborted', 'The call was aborted', { cause: error })
      throw error instanceof StorageError ? error : failure(command, error as Failure)
    }
  }
}

/** An error of kubo-rpc-client: it has the response if the status is not 200, and the cause if the connection broke. */
interface Failure extends Error {
  response?: Response
}

function failure(command: string, error: Failure): Error {
  // Kubo's own errors are JSON; those of its HTTP server or of a proxy are not. kubo-rpc-client turns a timeout error
  // from Kubo into a TimeoutError without a response.
  const isKubos = error.response?.headers.get('content-type')?.startsWith('application/json')
  if (isKubos || error.name === 'TimeoutError') return new KuboError(error.message)
  const words = error.message.slice(0, 200)
  if (error.response) {
    return new StorageError('unavailable', `Kubo answered ${command} with ${error.response.status}: ${words}`)
  }
  // `fetch failed` and `terminated` are uninformative; their cause is not.
  const message =
    error.cause instanceof Error
      ? `Kubo is not there: ${error.cause.message}`
      : `Kubo's answer to ${command} cannot be read: ${words}`
  return new StorageError('unavailable', message, { cause: error })
}
