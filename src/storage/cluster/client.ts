import { Agent, type Dispatcher, request } from 'undici'
import { withDeadline } from '../../lib/signals.ts'
import { StorageError } from '../port.ts'

const CALL_MS = 20_000
const ROWS_IDLE_MS = 60_000
/** Bytes of a whole response, or of one row of a list. */
const ANSWER_BYTES = 4 * 1024 * 1024

/** The user or password of the URL is wrong. */
export class ClusterAuthError extends Error {}

export interface ClusterCall {
  signal: AbortSignal
  params?: Record<string, string>
  deadlineMs?: number
}

/** The REST API of one peer of IPFS Cluster. Every failure is a StorageError, except for a {@link ClusterAuthError}. */
export class ClusterClient {
  readonly #base: string
  readonly #authorization: string | null
  /** Each call has its own limits instead of undici's. */
  readonly #agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 5_000 } })

  /** @param apiUrl For example `http://127.0.0.1:9094`; a user and password in it become basic auth. */
  constructor(apiUrl: string) {
    const { origin, pathname, username, password } = new URL(apiUrl)
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    this.#base = `${origin}${pathname.replace(/\/$/, '')}`
    this.#authorization = username ? `Basic ${Buffer.from(credentials).toString('base64')}` : null
  }

  /** Calls a path that returns one JSON object. @returns null for 404. */
  async call<T>(method: 'GET' | 'POST' | 'DELETE', path: string, options: ClusterCall): Promise<T | null> {
    const { deadlineMs: ms = CALL_MS, signal, params = {} } = options
    const name = `${method} ${path}`
    try {
      return await withDeadline({ ms, signal, late: () => lateError(name, ms) }, async (either) => {
        either.throwIfAborted()
        const response = await this.#request(method, path, params, either)
        const text = await boundedText(response.body)
        if (response.statusCode === 404) return null
        if (response.statusCode >= 300) throw failure(name, response.statusCode, text)
        return JSON.parse(text) as T
      })
    } catch (error) {
      throw asFailure(name, error, signal)
    }
  }

  /** Reads a list with one JSON object per line. Ends without an error only if the list is complete. */
  async *rows<T>(path: string, { signal, params = {} }: ClusterCall): AsyncGenerator<T> {
    const late = new AbortController()
    const name = `GET ${path}`
    const idle = setTimeout(() => late.abort(lateError(name, ROWS_IDLE_MS)), ROWS_IDLE_MS)
    try {
      const either = AbortSignal.any([signal, late.signal])
      either.throwIfAborted()
      const response = await this.#request('GET', path, params, either)
      if (response.statusCode >= 300)
        throw failure(name, response.statusCode, await boundedText(response.body))
      const decoder = new TextDecoder()
      let text = ''
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
        const lines = (text + decoder.decode(chunk, { stream: true })).split('\n')
        text = lines.pop() ?? ''
        if (text.length > ANSWER_BYTES) throw new Error('a row is too long')
        for (const line of lines) if (line.trim()) yield JSON.parse(line) as T
        idle.refresh()
      }
      if (text.trim()) yield JSON.parse(text) as T
      const streamError = response.trailers['x-stream-error']
      if (streamError) throw new StorageError('unavailable', `IPFS Cluster: ${name}: ${streamError}`)
    } catch (error) {
      throw late.signal.aborted ? late.signal.reason : asFailure(name, error, signal)
    } finally {
      clearTimeout(idle)
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  #request(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    params: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    return request(`${this.#base}${path}?${new URLSearchParams(params)}`, {
      method,
      signal,
      dispatcher: this.#agent,
      headers: this.#authorization ? { authorization: this.#authorization } : {},
    })
  }
}

const lateError = (name: string, ms: number) =>
  new StorageError('unavailable', `IPFS Cluster did not answer ${name} within ${ms} ms`)

function asFailure(name: string, error: unknown, signal: AbortSignal): unknown {
  if (error instanceof StorageError || error instanceof ClusterAuthError) return error
  if (signal.aborted) return new StorageError('aborted', 'The call was aborted', { cause: error })
  const message =
    error instanceof SyntaxError
      ? `IPFS Cluster answered ${name} with no JSON`
      : `IPFS Cluster is not there: ${(error as Error).message}`
  return new StorageError('unavailable', message, { cause: error })
}

/** The error for a status of 300 or more: IPFS Cluster's own errors are JSON with a `message`. */
function failure(name: string, status: number, text: string): Error {
  let said = text
  try {
    const { message } = JSON.parse(text) as { message?: unknown }
    if (typeof message === 'string') said = message
  } catch {
    // Not from IPFS Cluster: a proxy.
  }
  const message = `IPFS Cluster answered ${name} with ${status}: ${said.slice(0, 200)}`
  return status === 401 ? new ClusterAuthError(message) : new StorageError('unavailable', message)
}

async function boundedText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of body) {
    size += part.length
    if (size > ANSWER_BYTES) throw new Error('the response is too long')
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}
