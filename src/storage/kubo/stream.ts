import { Readable } from 'node:stream'
import { Agent, type Dispatcher, request } from 'undici'
import { StorageError } from '../port.ts'
import { KuboError } from './kubo-errors.ts'

/**
 * The commands that kubo-rpc-client does not handle well; all others go through `KuboClient`.
 *
 * If an error occurs after Kubo began its response, Kubo reports it in the `X-Stream-Error` trailer. `fetch` has no
 * trailers, so kubo-rpc-client treats a truncated response as complete: `add`, `cat`, `dag/export`, `dag/import`,
 * `pin/add`, `pin/ls` of all pins, `refs`, `refs/local` and `repo/gc`. Further problems by command
 * (`kubo-client.test.ts` shows them):
 * - `pin/add`: it throws at the first row of progress, which the limit on silence needs.
 * - `dag/export` and `dag/import`: it leaves out `offline`, so that Kubo searches for a missing block forever, and
 *   `stats`, without which it is unknown whether all blocks were stored.
 * - `repo/gc`: `fetch` ends a call that is silent for five minutes.
 * - `block/get`: it reads any amount into memory, and takes one and a half times as long per block; some calls read
 *   thousands of blocks.
 * - `routing/findprovs`: it throws on an address with an unknown protocol, so any peer that announces one can end the
 *   search.
 * - `dag/stat`: it lacks this command.
 */
export type StreamedCommand =
  | 'add'
  | 'block/get'
  | 'cat'
  | 'dag/export'
  | 'dag/import'
  | 'dag/stat'
  | 'pin/add'
  | 'pin/ls'
  | 'refs'
  | 'refs/local'
  | 'repo/gc'
  | 'routing/findprovs'

/** A list is a parameter that occurs several times. */
export type Params = Record<string, string | number | boolean | string[] | undefined>

export interface CallOptions {
  signal: AbortSignal
  /** Time limit for the complete response. */
  deadlineMs?: number
  /**
   * Maximum silence of Kubo, for long responses. With a body, it applies once the body is sent; until then, to each
   * part that Kubo has to accept.
   */
  idleMs?: number
  body?: { type: string; content: AsyncIterable<Uint8Array> }
}

/** Kubo's RPC API (`/api/v0`) through undici's `request`, which provides a response's trailers. */
export class KuboStream {
  readonly #base: string
  readonly #authorization: string | null
  // The number of connections is not limited, so a call never waits behind hanging pins. Its own timeouts are off: they
  // end every call that is silent for 5 minutes, and each call has its own limit.
  readonly #agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 5_000 } })

  /** @param apiUrl For example `http://127.0.0.1:5001`; a user and password in it become basic auth. */
  constructor(apiUrl: string) {
    const { base, authorization } = apiAddress(apiUrl)
    this.#base = base
    this.#authorization = authorization
  }

  /** Calls a command that returns a single JSON object. */
  async call<T>(command: StreamedCommand, params: Params, options: CallOptions): Promise<T> {
    let answer: unknown
    for await (const row of this.rows(command, params, options)) answer ??= row
    if (answer === undefined) throw new StorageError('unavailable', `Kubo answered ${command} with nothing`)
    return answer as T
  }

  /** Calls a command that returns a stream of JSON objects, one per line. */
  async *rows<T>(command: StreamedCommand, params: Params, options: CallOptions): AsyncGenerator<T> {
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of this.bytes(command, params, options)) {
      const lines = (text + decoder.decode(chunk, { stream: true })).split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) if (line.trim()) yield parse<T>(command, line)
    }
    if (text.trim()) yield parse<T>(command, text)
  }

  /**
   * Calls a command and passes its response on as it arrives. Ends without an error only if the response is complete.
   * @throws KuboError, or StorageError `unavailable` and `aborted`; errors of the body pass unchanged.
   */
  async *bytes(command: StreamedCommand, params: Params, options: CallOptions): AsyncGenerator<Uint8Array> {
    const { body, deadlineMs, idleMs } = options
    const late = new AbortController()
    const signal = AbortSignal.any([options.signal, late.signal])
    let ended = false
    const limit = (ms: number | undefined): NodeJS.Timeout | undefined => {
      // A body may still produce its next part after the call is over.
      if (ms === undefined || ended) return undefined
      const message = `Kubo did not answer ${command} within ${ms} ms`
      return setTimeout(() => late.abort(new StorageError('unavailable', message)), ms)
    }
    const deadline = limit(deadlineMs)
    let idle: NodeJS.Timeout | undefined
    let taking: NodeJS.Timeout | undefined
    let bodyFailure: { error: unknown } | null = null
    /**
     * The body as it is sent. Kubo has to accept each part within the idle time; the source's own time does not count.
     */
    async function* sent(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      try {
        for await (const chunk of content) {
          taking = limit(idleMs)
          yield chunk
          clearTimeout(taking)
        }
      } catch (error) {
        bodyFailure = { error }
        throw error
      }
      idle = limit(idleMs)
    }
    try {
      signal.throwIfAborted()
      if (!body) idle = limit(idleMs)
      const response = await request(`${this.#base}/${command}?${query(params)}`, {
        method: 'POST',
        dispatcher: this.#agent,
        signal,
        headers: {
          ...(this.#authorization && { authorization: this.#authorization }),
          ...(body && { 'content-type': body.type }),
        },
        body: body ? Readable.from(sent(body.content), { objectMode: false }) : null,
      })
      if (response.statusCode !== 200) throw await errorAnswer(command, response)
      const expected = Number(response.headers['x-content-length'] ?? Number.NaN)
      let received = 0
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
        received += chunk.length
        clearTimeout(idle) // the consumer may take its time
        yield chunk
        if (idle) idle = limit(idleMs)
      }
      const streamError = response.trailers['x-stream-error']
      if (streamError) throw new KuboError(String(streamError))
      if (received < expected) {
        throw new StorageError('unavailable', `Kubo ended ${command} after ${received} of ${expected} bytes`)
      }
    } catch (error) {
      if (bodyFailure) throw (bodyFailure as { error: unknown }).error
      if (error instanceof KuboError || error instanceof StorageError) throw error
      if (options.signal.aborted) throw new StorageError('aborted', 'The call was aborted', { cause: error })
      if (late.signal.aborted) throw late.signal.reason
      const message = `Kubo is not there: ${(error as Error).message}`
      throw new StorageError('unavailable', message, { cause: error })
    } finally {
      ended = true
      for (const timer of [deadline, idle, taking]) clearTimeout(timer)
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }
}

/** The URL of the RPC API, and the header that Kubo or a proxy in front of it requires. */
export function apiAddress(apiUrl: string): { base: string; authorization: string | null } {
  const { origin, pathname, username, password } = new URL(apiUrl)
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return {
    base: `${origin}${pathname.replace(/\/(api\/v0\/?)?$/, '')}/api/v0`,
    authorization: username ? `Basic ${Buffer.from(credentials).toString('base64')}` : null,
  }
}

function query(params: Params): URLSearchParams {
  const all = Object.entries(params).flatMap(([name, value]) =>
    [value].flat().map((one) => [name, one] as const),
  )
  const defined = all.filter(([, value]) => value !== undefined)
  return new URLSearchParams(defined.map(([name, value]): [string, string] => [name, String(value)]))
}

function parse<T>(command: string, line: string): T {
  try {
    return JSON.parse(line) as T
  } catch (error) {
    throw new StorageError('unavailable', `Kubo answered ${command} with no JSON`, { cause: error })
  }
}

/** The error for a status other than 200: Kubo's own errors are JSON with a `Message`. */
async function errorAnswer(command: string, response: Dispatcher.ResponseData): Promise<Error> {
  const text = await response.body.text()
  try {
    const { Message } = JSON.parse(text) as { Message: unknown }
    if (typeof Message === 'string') return new KuboError(Message)
  } catch {
    // Not from Kubo, or from its HTTP server: unknown command, no permission, or a proxy.
  }
  return new StorageError(
    'unavailable',
    `Kubo answered ${command} with ${response.statusCode}: ${text.slice(0, 200)}`,
  )
}
