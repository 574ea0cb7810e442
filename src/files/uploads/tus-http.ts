/** The bridge between Express and `@tus/server`, which speaks in web requests and answers errors as plain text. */
import { finished } from 'node:stream/promises'
import { ReadableStream } from 'node:stream/web'
import type { Request as ExpressRequest, Response as ExpressResponse } from 'express'
import { ApiError, badRequest, unavailable } from '../../errors.ts'
import { refuseEncoded } from '../../http/request-headers.ts'
import { uploadBusy } from './tus-lease.ts'

/** The one version of the protocol there is. */
const TUS_VERSION = '1.0.0'
/**
 * Headers that the protocol reads. It would check and refuse others, such as X-Forwarded-*, and blanks in Upload-Metadata,
 * which `readDetails` has read.
 */
const FORWARDED = [
  'content-length',
  'content-type',
  'tus-resumable',
  'upload-defer-length',
  'upload-length',
  'upload-offset',
]
const PIECE_TYPE = 'application/offset+octet-stream'
/** Longest time in which not a byte arrives. */
const IDLE_MS = 60_000

/** True for a client that says that it speaks the protocol. The npm SDK does not. */
export const speaksTus = (req: ExpressRequest): boolean => req.headers['tus-resumable'] !== undefined

/**
 * Refuses what a client may not expect here, before anything is written for it.
 * @throws ApiError 415 for compressed bytes, 412 for another version of the protocol, 400 for an extension that is
 *   not offered. A client
 *   whose checksum was passed over would take its bytes for checked.
 */
export function checkOffered(req: ExpressRequest): void {
  refuseEncoded(req)
  const { headers } = req
  const version = headers['tus-resumable'] ?? TUS_VERSION
  if (version !== TUS_VERSION) {
    throw new ApiError(412, 'tus_version', `Tus-Resumable: must be ${TUS_VERSION}`, {
      headers: { 'tus-version': TUS_VERSION },
    })
  }
  if (headers['upload-concat'] !== undefined) {
    throw badRequest('Upload-Concat: not offered; send the upload in one piece after the other')
  }
  if (headers['upload-checksum'] !== undefined) throw badRequest('Upload-Checksum: not offered')
}

/**
 * The request as the protocol is to see it: in its version, whether the client says so or not.
 * @param url the upload's address, of which only the last segment counts.
 * @param gone fires when the client has gone.
 * @param admit is asked before each part of the body is passed on; what it throws ends the body.
 */
export function toWebRequest(
  req: ExpressRequest,
  url: string,
  { gone, admit = async () => {} }: { gone?: AbortSignal; admit?: () => Promise<void> } = {},
): Request {
  const headers = new Headers({ 'tus-resumable': TUS_VERSION })
  for (const name of FORWARDED) {
    const value = req.headers[name]
    if (typeof value === 'string') headers.set(name, value)
  }
  if (req.method === 'PATCH') headers.set('content-type', PIECE_TYPE)
  const hasBody = req.method === 'POST' || req.method === 'PATCH'
  const body = hasBody ? ReadableStream.from(admitted(req, admit)) : undefined
  return new Request(url, { method: req.method, headers, body, duplex: 'half', signal: gone } as RequestInit)
}

async function* admitted(req: ExpressRequest, admit: () => Promise<void>): AsyncGenerator<Uint8Array> {
  // A client that is refused is to read its answer: its connection stays.
  for await (const chunk of req.iterator({ destroyOnReturn: false })) {
    await admit()
    yield chunk
  }
}

/** Headers of an answer that are not the protocol's to say: the route's declaration says which pages may read it. */
const DROPPED = /^(content-length|access-control-.*)$/

/** Copies an answer's headers. @throws ApiError for an answer of failure. */
export async function takeAnswer(response: Response, res: ExpressResponse): Promise<void> {
  if (!response.ok) {
    const message = (await response.text()).trim()
    if (response.status === 423) throw uploadBusy()
    // Headers that are missing are answered as 403 there, and those of extensions that are not offered as 501.
    const status = [403, 501].includes(response.status) ? 400 : response.status
    if (status >= 500) throw unavailable('The upload cannot be stored now', new Error(message))
    throw new ApiError(status, response.status === 409 ? 'offset' : 'bad_request', message)
  }
  for (const [name, value] of response.headers) if (!DROPPED.test(name)) res.set(name, value)
}

/** Sets what every answer has, also one of failure. */
export function setHeaders(res: ExpressResponse): void {
  res.set('Tus-Resumable', TUS_VERSION)
}

/** @throws ApiError 415 for a piece that does not say that it is one. */
export function checkPieceType(req: ExpressRequest): void {
  const [type = ''] = (req.headers['content-type'] ?? '').split(';')
  if (type.trim().toLowerCase() === PIECE_TYPE) return
  throw new ApiError(415, 'unsupported_media_type', `Content-Type: must be ${PIECE_TYPE}`)
}

/** Runs `work`, which reads the body, and ends the connection when nothing arrives for a minute. */
export async function boundIdle<T>(req: ExpressRequest, work: () => Promise<T>): Promise<T> {
  req.setTimeout(IDLE_MS, () => req.destroy())
  try {
    return await work()
  } finally {
    req.setTimeout(0)
  }
}

/** Reads the body to its end and drops it: a client that is still sending might not read its answer. */
export async function drain(req: ExpressRequest): Promise<void> {
  await boundIdle(req, () => finished(req.resume()))
}

/** The length of an upload that begins. @throws ApiError 400 where it is not said, or is no number of bytes. */
export function readLength(req: ExpressRequest): number {
  if (req.headers['upload-defer-length'] !== undefined) {
    throw badRequest('Upload-Defer-Length: the length must be known at the start')
  }
  return readNumber(req, 'upload-length')
}

/** Bytes that the body may have; Infinity where it does not say. */
export function announcedBytes({ headers }: ExpressRequest): number {
  if (headers['content-length'] !== undefined) return Number(headers['content-length'])
  return headers['transfer-encoding'] === undefined ? 0 : Number.POSITIVE_INFINITY
}

/** A header that is a number of bytes. @throws ApiError 400 for anything else. */
export function readNumber(req: ExpressRequest, header: 'upload-length' | 'upload-offset'): number {
  const text = String(req.headers[header] ?? '')
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw badRequest(
    `${header === 'upload-length' ? 'Upload-Length' : 'Upload-Offset'}: must be a number of bytes`,
  )
}
