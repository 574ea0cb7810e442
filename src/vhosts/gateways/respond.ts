/** Answers of a gateway: conditions and ranges of RFC 9110, and bytes as they come. */
import type { OutgoingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { Request, Response } from 'express'
import { ApiError } from '../../errors.ts'
import { StorageError } from '../../storage/port.ts'

/** A form in which content leaves: a file, a block, a CAR, the page of a directory. */
export interface Representation {
  /** A strong or weak entity tag, with its quotes. */
  etag: string
  headers: Record<string, string>
  /** In place of 200, for a page that tells what is wrong: it is sent whole, and unconditionally. */
  status?: number
  /** In bytes; undefined where it is not known before. Only what has a size has ranges. */
  size?: number
  /** All of it, where it is in memory. */
  bytes?: Uint8Array | undefined
  /** Bytes `from` to `to`, the latter not included; all of them where there is no size. */
  read(from: number, to: number, signal: AbortSignal): AsyncIterable<Uint8Array>
}

/** The content of a representation that is in memory. */
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
 * Answers a GET or HEAD by RFC 9110: `If-Match`, then `If-None-Match`, then, only for GET, `If-Range` and `Range`.
 * @param headers those that do not depend on the representation.
 * @param gone fires when the client has gone.
 * @throws ApiError 412, 416, and what reading throws before the first bytes.
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
 * True for a client that has the content of this tag. Express compares with the tag that is set; an error may yet be the
 * answer.
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

/** True for a client that wants the range of another version than this. A date never matches: content has none. */
function isOutdated(req: Request, etag: string): boolean {
  const condition = req.get('if-range')
  return condition !== undefined && condition !== etag
}

/** Bytes `start` to `end` of a file, both included. */
interface ByteRange {
  start: number
  end: number
}

/**
 * The range of a `Range` header (RFC 9110, 14.2): of several, the first that the file has. Undefined for the whole file:
 * without the header, in another unit, where one of them is malformed, and for an empty file, which has no part.
 * @param size of the file, in bytes.
 */
function parseRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | undefined {
  const [, list] = /^bytes=(.*)$/i.exec(header ?? '') ?? []
  if (list === undefined || size === 0) return undefined
  // Empty elements of a list say nothing (RFC 9110, 5.6.1).
  const elements = list.split(',').map((one) => one.trim())
  const ranges = elements.filter(Boolean).map((one) => readRange(one, size))
  if (ranges.length === 0 || ranges.includes(undefined)) return undefined
  return ranges.find((one) => one !== 'unsatisfiable') ?? 'unsatisfiable'
}

/** One range of the header; undefined for one that is malformed. */
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
  /** How long an answer may stand still, in milliseconds: with a store that sends nothing. */
  store: number
  /** With a client that takes nothing. Node grants it twice to one that took a part of the last piece. */
  client: number
}

const BOUNDS: Bounds = { store: 30_000, client: 30_000 }

export interface Streamed {
  status: number
  headers: OutgoingHttpHeaders
  read(signal: AbortSignal): AsyncIterable<Uint8Array>
  /** How many bytes there are to be; undefined where that is not known before. */
  length?: number | undefined
}

/**
 * Answers with bytes as they come, no faster than the client takes them. Status and headers leave with the
 * first bytes, so a store that cannot answer at all becomes an error answer. After that there is only one way
 * to say that something is wrong: the connection is cut, so that the client does not take a part for the whole.
 * @param gone fires when the client has gone: then nothing is read on.
 * @throws what `read` throws before the first bytes, StorageError `unavailable` when it is silent.
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

/** Sets status and headers. Express gives JSON a charset, which it does not have (RFC 8259). */
function setHead(res: Response, { status, headers }: Pick<Streamed, 'status' | 'headers'>): Response {
  res.status(status).set(headers)
  if (/^application\/json\b/.test(res.get('Content-Type') ?? '')) {
    res.setHeader('Content-Type', 'application/json')
  }
  return res
}

/** Sends what is in memory, and resolves when it has left or the client has gone. */
async function sendWhole(
  res: Response,
  head: Pick<Streamed, 'status' | 'headers'>,
  bytes: Uint8Array,
): Promise<void> {
  if (res.closed) return
  const closed = new Promise<void>((resolve) => res.once('close', resolve))
  setHead(res, head).end(bytes)
  // Bytes that the system took at once need no limit.
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

/** Aborts the reading, and ends with an error, when the next bytes take longer than `ms`. */
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
