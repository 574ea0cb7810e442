/** Responses of a gateway: RFC 9110 conditions and ranges, and streamed bytes. */
import type { OutgoingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { Request, Response } from 'express'
import { ApiError } from '../../errors.ts'
import { StorageError } from '../../storage/port.ts'

/** A representation of content: a file, a block, a CAR, a directory page. */
export interface Representation {
  /** A strong or weak entity tag, with its quotes. */
  etag: string
  headers: Record<string, string>
  /** Instead of 200, for a page that explains a problem: it is sent completely and unconditionally. */
  status?: number
  /** In bytes; undefined if it is not known in advance. Ranges require a size. */
  size?: number
  /** The complete content, if it is in memory. */
  bytes?: Uint8Array | undefined
  /** Bytes `from` (inclusive) to `to` (exclusive); all of them if there is no size. */
  read(from: number, to: number, signal: AbortSignal): AsyncIterable<Uint8Array>
}

/** The content of a representation in memory. */
export function inMemory(bytes: Uint8Array): Pick<Representation, 'size' | 'bytes' | 'read'> {
  return {
    size: bytes.length,
    bytes,
    async *read(from, to) {
      yield bytes.subarray(from, to)
    },
  }
}

/**
 * Responds to a GET or HEAD according to RFC 9110: `If-Match`, then `If-None-Match`, then, only for GET, `If-Range` and
 * `Range`.
 * @param headers those that do not depend on the representation.
 * @param gone fires when the client has disconnected.
 * @throws ApiError 412, 416, and errors of reading before the first bytes.
 */
export async function respond(
  req: Request,
  res: Response,
  headers: Record<string, string>,
  { etag, size, status = 200, ...content }: Representation,
  gone: AbortSignal,
): Promise<void> {
  if (status === 200) checkMatch(req, etag)
  res.set('ETag', etag)
  if (status === 200 && req.fresh) return void res.status(304).set(headers).end()
  const all = { ...headers, ...content.headers, 'Accept-Ranges': size === undefined ? 'none' : 'bytes' }
  const isPart = status === 200 && req.method === 'GET' && !isOutdated(req, etag)
  const range = size !== undefined && isPart ? parseRange(req.get('range'), size) : undefined
  if (range === 'unsatisfiable') {
    throw new ApiError(416, 'range_not_satisfiable', `Range: the content has ${size} bytes`, {
      headers: { 'content-range': `bytes */${size}` },
    })
  }
  const { start, end } = range ?? { start: 0, end: (size ?? 0) - 1 }
  const length = size === undefined ? undefined : end - start + 1
  const answer = {
    status: range ? 206 : status,
    headers: {
      ...all,
      ...(length !== undefined && { 'Content-Length': `${length}` }),
      ...(range && { 'Content-Range': `bytes ${start}-${end}/${size}` }),
    },
  }
  if (req.method === 'HEAD') return void setHead(res, answer).end()
  if (content.bytes) return sendWhole(res, answer, content.bytes.subarray(start, end + 1))
  const read = (signal: AbortSignal) => content.read(start, end + 1, signal)
  await stream(res, { ...answer, length, read }, gone)
}

/**
 * True if a client has the content with this tag. Express compares with the tag that is set; the response may still
 * become an error.
 */
export function hasFresh(req: Request, res: Response, etag: string): boolean {
  res.set('ETag', etag)
  const { fresh } = req
  res.removeHeader('ETag')
  return fresh
}

/** @throws ApiError 412 if the client wants another version. Weak tags never match (RFC 9110, 13.1.1). */
export function checkMatch(req: Request, etag: string): void {
  const condition = req.get('if-match')
  if (condition === undefined || condition.trim() === '*') return
  const tags: readonly string[] = condition.match(/(?:W\/)?"[^"]*"/g) ?? []
  if (etag.startsWith('"') && tags.includes(etag)) return
  throw new ApiError(412, 'precondition_failed', `If-Match: the content has the tag ${etag}`)
}

/** True if a client wants a range of another version. A date never matches: content has none. */
function isOutdated(req: Request, etag: string): boolean {
  const condition = req.get('if-range')
  return condition !== undefined && condition !== etag
}

/** Bytes `start` to `end` of a file, inclusive. */
interface ByteRange {
  start: number
  end: number
}

/**
 * The range in a `Range` header (RFC 9110, 14.2); among several, the first that the file has. Undefined for the whole
 * file: without the header, with another unit, if one of them is malformed, and for an empty file, which has no part.
 * @param size of the file, in bytes.
 */
function parseRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | undefined {
  const [, list] = /^bytes=(.*)$/i.exec(header ?? '') ?? []
  if (list === undefined || size === 0) return undefined
  // Empty elements of a list are ignored (RFC 9110, 5.6.1).
  const elements = list.split(',').map((one) => one.trim())
  const ranges = elements.filter(Boolean).map((one) => readRange(one, size))
  if (ranges.length === 0 || ranges.includes(undefined)) return undefined
  return ranges.find((one) => one !== 'unsatisfiable') ?? 'unsatisfiable'
}

/** One range of the header; undefined if it is malformed. */
function readRange(text: string, size: number): ByteRange | 'unsatisfiable' | undefined {
  const [, first, last] = /^(\d*)\s*-\s*(\d*)$/.exec(text) ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
}

export interface Bounds {
  /** How long a response may stall because the store sends nothing, in milliseconds. */
  store: number
  /**
   * How long it may stall because the client accepts nothing. Node grants twice this time to a client that accepted a
   * part of the last piece.
   */
  client: number
}

const BOUNDS: Bounds = { store: 30_000, client: 30_000 }

export interface Streamed {
  status: number
  headers: OutgoingHttpHeaders
  read(signal: AbortSignal): AsyncIterable<Uint8Array>
  /** The expected number of bytes; undefined if it is not known in advance. */
  length?: number | undefined
}

/**
 * Responds with bytes as they arrive, no faster than the client accepts them. Status and headers are sent with the
 * first bytes, so a store that cannot respond at all results in an error response. After that, the only way to report a
 * problem is to cut the connection, so that the client does not mistake a part for the whole.
 * @param gone fires when the client has disconnected: reading then stops.
 * @throws errors of `read` before the first bytes, StorageError `unavailable` if it is silent.
 */
export async function stream(
  res: Response,
  { status, headers, read, length }: Streamed,
  gone: AbortSignal,
  bounds: Partial<Bounds> = {},
): Promise<void> {
  const { store, client } = { ...BOUNDS, ...bounds }
  const watched = failOnSilence(read, gone, store)
  const bytes = length === undefined ? watched : exactly(length, watched)
  const first = await bytes.next()
  setHead(res, { status, headers })
  res.setTimeout(client) // after which Node closes the connection
  await send(res, startingWith(first, bytes))
}

/** Sets status and headers. Express adds a charset to JSON, which JSON does not have (RFC 8259). */
function setHead(res: Response, { status, headers }: Pick<Streamed, 'status' | 'headers'>): Response {
  res.status(status).set(headers)
  if (/^application\/json\b/.test(res.get('Content-Type') ?? '')) {
    res.setHeader('Content-Type', 'application/json')
  }
  return res
}

/** Sends content from memory, and resolves when it is sent or the client has disconnected. */
async function sendWhole(
  res: Response,
  head: Pick<Streamed, 'status' | 'headers'>,
  bytes: Uint8Array,
): Promise<void> {
  if (res.closed) return
  const closed = new Promise<void>((resolve) => res.once('close', resolve))
  setHead(res, head).end(bytes)
  // Bytes that the system accepted at once need no limit.
  if (res.socket?.writableLength) res.setTimeout(BOUNDS.client)
  await closed
}

/** Sends the bytes, or cuts the connection. */
async function send(res: Response, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    await pipeline(bytes, res)
  } catch (error) {
    const { code } = error as { code?: string }
    const hasClientGone = code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'aborted'
    if (!hasClientGone) res.req.log.warn({ err: error }, 'an answer was cut short')
    res.destroy()
  }
}

/** Aborts the reading, and ends with an error, if the next bytes take longer than `ms`. */
async function* failOnSilence(
  read: Streamed['read'],
  gone: AbortSignal,
  ms: number,
): AsyncGenerator<Uint8Array> {
  const silence = new AbortController()
  const limit = () => setTimeout(() => silence.abort(), ms)
  let timer = limit()
  try {
    for await (const chunk of read(AbortSignal.any([gone, silence.signal]))) {
      // A file of empty leaves that claim to have bytes: there may be any number of them.
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

/** Passes on `length` bytes. The size declared by a root node may be wrong: then this ends with an error. */
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
