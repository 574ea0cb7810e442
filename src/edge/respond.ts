import type { Request, Response } from 'express'
import { ApiError } from '../errors.ts'
import { parseRange } from './range.ts'
import { stream } from './stream.ts'

/** One of the forms in which content leaves: a file, a block, a CAR, the page of a directory. */
export interface Representation {
  /** A strong or weak entity tag, with its quotes. */
  etag: string
  headers: Record<string, string>
  /** In bytes; undefined where it is not known before. Only what has a size has ranges. */
  size?: number
  /** Bytes `from` to `to`, the latter not included; all of them where there is no size. */
  read(from: number, to: number, signal: AbortSignal): AsyncIterable<Uint8Array>
}

/**
 * Answers a GET or HEAD by RFC 9110: `If-None-Match` first, then, for GET alone, `If-Range` and `Range`.
 * @param headers those that do not depend on the representation.
 * @param gone fires when the client has gone.
 * @throws ApiError 416, and what reading throws before the first bytes.
 */
export async function respond(
  req: Request,
  res: Response,
  headers: Record<string, string>,
  { etag, size, ...content }: Representation,
  gone: AbortSignal,
): Promise<void> {
  res.set('ETag', etag)
  if (req.fresh) return void res.status(304).set(headers).end()
  const all = { ...headers, ...content.headers, 'Accept-Ranges': size === undefined ? 'none' : 'bytes' }
  const isPart = req.method === 'GET' && !isOutdated(req, etag)
  const range = size !== undefined && isPart ? parseRange(req.get('range'), size) : undefined
  if (range === 'unsatisfiable') {
    throw new ApiError(416, 'range_not_satisfiable', `Range: the content has ${size} bytes`, {
      headers: { 'content-range': `bytes */${size}` },
    })
  }
  const { start, end } = range ?? { start: 0, end: (size ?? 0) - 1 }
  const length = size === undefined ? undefined : end - start + 1
  const answer = {
    status: range ? 206 : 200,
    headers: {
      ...all,
      ...(length !== undefined && { 'Content-Length': `${length}` }),
      ...(range && { 'Content-Range': `bytes ${start}-${end}/${size}` }),
    },
  }
  if (req.method === 'HEAD') return void res.status(answer.status).set(answer.headers).end()
  const read = (signal: AbortSignal) => content.read(start, end + 1, signal)
  await stream(res, { ...answer, length, read }, gone)
}

/** Whether the client wants the range of another version than this. Dates do: content has none. */
function isOutdated(req: Request, etag: string): boolean {
  const condition = req.get('if-range')
  return condition !== undefined && condition !== etag
}
