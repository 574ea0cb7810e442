/** The headers of the tus protocol (https://tus.io/protocols/resumable-upload), and bodies of its requests. */
import { finished } from 'node:stream/promises'
import type { Request as ExpressRequest, Response as ExpressResponse } from 'express'
import { ApiError, badRequest } from '../../errors.ts'
import { refuseEncoded } from '../../http/request-headers.ts'

/** The only version of the protocol. */
const TUS_VERSION = '1.0.0'
const EXTENSIONS = 'creation,creation-with-upload,termination,expiration'
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

const hasBody = ({ method }: ExpressRequest): boolean => method === 'POST' || method === 'PATCH'

/** Sets the header of every response, including errors. */
export function setHeaders(res: ExpressResponse): void {
  res.set('Tus-Resumable', TUS_VERSION)
}

/** Sets the headers that list the supported parts of the protocol. */
export function setFeatures(res: ExpressResponse): void {
  setHeaders(res)
  res.set({ 'Tus-Version': TUS_VERSION, 'Tus-Extension': EXTENSIONS })
}

/** True if the body has bytes of the upload. */
export function hasPiece(req: ExpressRequest): boolean {
  const [type = ''] = (req.headers['content-type'] ?? '').split(';')
  return type.trim().toLowerCase() === PIECE_TYPE
}

/** @throws ApiError 415 if a piece does not have the right Content-Type. */
export function checkPieceType(req: ExpressRequest): void {
  if (hasPiece(req)) return
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
