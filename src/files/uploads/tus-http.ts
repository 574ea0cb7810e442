/** The bridge between Express and `@tus/server`, which uses web requests and reports errors as plain text. */
import { finished } from 'node:stream/promises'
import { ReadableStream } from 'node:stream/web'
import type { Request as ExpressRequest, Response as ExpressResponse } from 'express'
import { ApiError, badRequest, unavailable } from '../../errors.ts'
import { refuseEncoded } from '../../http/request-headers.ts'
import { uploadBusy } from './tus-lease.ts'

/** The only version of the protocol. */
const TUS_VERSION = '1.0.0'
/**
 * Headers that the protocol reads. It would also check and reject others, such as X-Forwarded-*, and spaces in
 * Upload-Metadata, which `readDetails` has read.
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
/** Maximum time without any received byte. */
const IDLE_MS = 60_000

/** True if a client declares that it uses the protocol. The npm SDK does not. */
export const speaksTus = (req: ExpressRequest): boolean => req.headers['tus-resumable'] !== undefined

/**
 * Rejects unsupported expectations of a client before anything is written for it.
 * @throws ApiError 415 for compressed bytes, 412 for another version of the protocol, 400 for an unsupported extension:
 *   a client whose checksum was ignored would believe that its bytes were checked.
 */
export function checkOffered(req: ExpressRequest): void {
  if (hasBody(req)) refuseEncoded(req)
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
 * The request in the form that the protocol library expects: with a version, whether the client sent one or not.
 * @param url the upload's URL, of which only the last segment matters.
 * @param gone fires when the client has disconnected.
 * @param admit is awaited before each part of the body is passed on; an error from it ends the body.
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
  const body = hasBody(req) ? ReadableStream.from(admitted(req, admit)) : undefined
  return new Request(url, { method: req.method, headers, body, duplex: 'half', signal: gone } as RequestInit)
}

const hasBody = ({ method }: ExpressRequest): boolean => method === 'POST' || method === 'PATCH'

async function* admitted(req: ExpressRequest, admit: () => Promise<void>): AsyncGenerator<Uint8Array> {
  // A rejected client should read its response, so its connection stays open.
  for await (const chunk of req.iterator({ destroyOnReturn: false })) {
    await admit()
    yield chunk
  }
}

/**
 * Response headers that the protocol must not set: the route's declaration decides which pages may read the response.
 */
const DROPPED = /^(content-length|access-control-.*)$/

/** Copies a response's headers. @throws ApiError if the response is an error. */
export async function takeAnswer(response: Response, res: ExpressResponse): Promise<void> {
  if (!response.ok) {
    const message = (await response.text()).trim()
    if (response.status === 423) throw uploadBusy()
    // The library returns 403 for missing headers, and 501 for headers of unsupported extensions.
    const status = [403, 501].includes(response.status) ? 400 : response.status
    if (status >= 500) throw unavailable('The upload cannot be stored now', new Error(message))
    throw new ApiError(status, response.status === 409 ? 'offset' : 'bad_request', message)
  }
  for (const [name, value] of response.headers) if (!DROPPED.test(name)) res.set(name, value)
}

/** Sets the header of every response, including errors. */
export function setHeaders(res: ExpressResponse): void {
  res.set('Tus-Resumable', TUS_VERSION)
}

/** @throws ApiError 415 if a piece does not have the right Content-Type. */
export function checkPieceType(req: ExpressRequest): void {
  const [type = ''] = (req.headers['content-type'] ?? '').split(';')
  if (type.trim().toLowerCase() === PIECE_TYPE) return
  throw new ApiError(415, 'unsupported_media_type', `Content-Type: must be ${PIECE_TYPE}`)
}

/** Runs `work`, which reads the body, and ends the connection if nothing arrives for a minute. */
export async function boundIdle<T>(req: ExpressRequest, work: () => Promise<T>): Promise<T> {
  req.setTimeout(IDLE_MS, () => req.destroy())
  try {
    return await work()
  } finally {
    req.setTimeout(0)
  }
}

/** Reads the body to its end and discards it: a client that is still sending might not read its response. */
export async function drain(req: ExpressRequest): Promise<void> {
  await boundIdle(req, () => finished(req.resume()))
}

/** The length of a new upload. @throws ApiError 400 if it is missing or not a number of bytes. */
export function readLength(req: ExpressRequest): number {
  if (req.headers['upload-defer-length'] !== undefined) {
    throw badRequest('Upload-Defer-Length: the length must be known at the start')
  }
  return readNumber(req, 'upload-length')
}

/** The announced size of the body; Infinity if it is unknown. */
export function announcedBytes({ headers }: ExpressRequest): number {
  if (headers['content-length'] !== undefined) return Number(headers['content-length'])
  return headers['transfer-encoding'] === undefined ? 0 : Number.POSITIVE_INFINITY
}

/** Parses a header as a number of bytes. @throws ApiError 400 for anything else. */
export function readNumber(req: ExpressRequest, header: 'upload-length' | 'upload-offset'): number {
  const text = String(req.headers[header] ?? '')
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw badRequest(
    `${header === 'upload-length' ? 'Upload-Length' : 'Upload-Offset'}: must be a number of bytes`,
  )
}
