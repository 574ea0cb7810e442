import type { OutgoingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { Response } from 'express'
import { Slots } from '../slots.ts'
import { StorageError } from '../storage/port.ts'

export interface Bounds {
  /** How long an answer may stand still, in milliseconds: with a store that sends nothing. */
  store: number
  /** With a client that takes nothing. Node grants it twice to one that took a part of the last piece. */
  client: number
  /**
   * For the answers of this process. Each holds up to 5 MiB for a client that is slow, maybe on purpose: what
   * was read ahead, and what is on its way.
   */
  answers: Slots
}

const BOUNDS: Bounds = {
  store: 30_000,
  client: 30_000,
  answers: new Slots(200, 'Too many downloads at a time'),
}

export interface Streamed {
  status: number
  headers: OutgoingHttpHeaders
  read(signal: AbortSignal): AsyncIterable<Uint8Array>
  /** How many bytes there are to be; undefined where that is not known before. */
  length?: number
}

/**
 * Answers with bytes as they come, no faster than the client takes them. Status and headers leave with the
 * first bytes, so a store that cannot answer at all becomes an error answer. After that there is only one way
 * to say that something is wrong: the connection is cut, so that the client does not take a part for the whole.
 * @param gone fires when the client has gone: then nothing is read on.
 * @throws what `read` throws before the first bytes, StorageError `unavailable` when it is silent, ApiError 503
 *   above the number of answers.
 */
export async function stream(
  res: Response,
  { status, headers, read, length }: Streamed,
  gone: AbortSignal,
  bounds: Partial<Bounds> = {},
): Promise<void> {
  const { store, client, answers } = { ...BOUNDS, ...bounds }
  await answers.run(async () => {
    const heard = withoutSilence(read, gone, store)
    const bytes = length === undefined ? heard : exactly(length, heard)
    const first = await bytes.next()
    res.status(status).set(headers)
    res.setTimeout(client) // after which Node closes the connection
    await send(res, startingWith(first, bytes))
  })
}

/** Sends the bytes, or cuts the connection. */
async function send(res: Response, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    await pipeline(bytes, res)
  } catch (error) {
    const { code } = error as { code?: string }
    const isClients = code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'aborted'
    if (!isClients) res.req.log.warn({ err: error }, 'an answer was cut short')
    res.destroy()
  }
}

/** Aborts the reading, and ends with an error, when the next bytes take longer than `ms`. */
async function* withoutSilence(
  read: Streamed['read'],
  gone: AbortSignal,
  ms: number,
): AsyncGenerator<Uint8Array> {
  const silence = new AbortController()
  const limit = () => setTimeout(() => silence.abort(), ms)
  let timer = limit()
  try {
    for await (const chunk of read(AbortSignal.any([gone, silence.signal]))) {
      // A file of empty leaves that say they have bytes: there may be any number of them.
      if (chunk.length === 0) continue
      clearTimeout(timer) // the client may take its time
      yield chunk
      timer = limit()
    }
  } catch (error) {
    if (!silence.signal.aborted) throw error
    throw new StorageError('unavailable', `The store was silent for ${ms} ms`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}

/** Passes on `length` bytes. What a root node declares may be wrong: then this ends with an error. */
async function* exactly(length: number, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let sent = 0
  for await (const chunk of bytes) {
    sent += chunk.length
    if (sent > length) throw new StorageError('invalid_object', `More than the ${length} bytes declared`)
    yield chunk
  }
  if (sent < length) throw new StorageError('invalid_object', `${sent} of the ${length} bytes declared`)
}

async function* startingWith(
  first: IteratorResult<Uint8Array>,
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  if (first.done) return
  yield first.value
  yield* rest
}
