import { extname } from 'node:path'
import { create as contentDisposition } from 'content-disposition'
import type { Response } from 'express'
import type { CID } from 'multiformats/cid'
import { SAYS_NOTHING } from '../../files/uploads/content-type.ts'
import { MIME_SAMPLE, mimeTypeOf } from '../../storage/dag/measure.ts'
import { type Storage, StorageError } from '../../storage/port.ts'
import { inMemory, type Representation } from './respond.ts'

/**
 * All content of a gateway has one origin, so no page may act for it: a sandboxed page has its own origin. Browsers do
 * not display PDFs in a sandbox, and run nothing in them that could reach the origin.
 */
const SANDBOX = 'sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads'
const PDF = 'application/pdf'
const UNKNOWN = 'application/octet-stream'

export interface FileContent {
  cid: CID
  /** Size declared by the file's root node. */
  size: number
  /** Its names, the most important one first. */
  names: (string | null)[]
  /** MIME type, if it is already known: declared by the client, or detected from the bytes. */
  mimeType: string | null
  /** The content, if it is already in memory. */
  bytes?: Uint8Array | undefined
}

/**
 * A UnixFS file as bytes. Its type follows from its name, otherwise from `mimeType`, otherwise from its first bytes.
 */
export async function fileRepresentation(
  res: Response,
  storage: Storage,
  { cid, size, names, mimeType, bytes }: FileContent,
  gone: AbortSignal,
): Promise<Representation> {
  const sample = bytes?.subarray(0, MIME_SAMPLE)
  // The content may show more than that it is text, and reading it from memory costs nothing.
  const isKnown = mimeType !== null && !(sample && SAYS_NOTHING.has(mimeType))
  const type =
    names.map((name) => name && typeOfName(res, name)).find(Boolean) ||
    (isKnown ? mimeType : await typeOf(sample ?? (await readSample(storage, cid, gone))))
  const content = bytes
    ? inMemory(bytes)
    : {
        size,
        read: (from: number, to: number, signal: AbortSignal) =>
          storage.cat(cid, { offset: from, length: to - from, signal }),
      }
  return { etag: `"${cid}"`, headers: contentHeaders(type), ...content }
}

/** The headers for content of a media type. */
export const contentHeaders = (type: string): Record<string, string> => ({
  'Content-Type': type,
  ...(type !== PDF && { 'Content-Security-Policy': SANDBOX }),
})

/**
 * `Content-Disposition` (RFC 6266) if the client requests one: `?filename=` names the file, `?download=true` makes the
 * browser save it.
 * @param fallback its name if the client gives none.
 */
export function disposition(url: URL, fallback: string): Record<string, string> {
  const { searchParams } = url
  if (searchParams.get('download') !== 'true' && !searchParams.get('filename')) return {}
  return namedDisposition(url, fallback, 'inline')
}

/** `Content-Disposition` that always has a name: the one in `?filename=`, otherwise the fallback. */
export function namedDisposition(
  { searchParams }: URL,
  fallback: string,
  usual: 'inline' | 'attachment',
): Record<string, string> {
  const type = searchParams.get('download') === 'true' ? 'attachment' : usual
  const name = (searchParams.get('filename') || fallback).replace(/[\p{Cc}/\\]/gu, '_')
  const header = contentDisposition(name, { type, fallback: name.replace(/[^\x20-\x7e]/g, '_') })
  // Always quotes the name, because not every client can read an unquoted name. A quoted name may itself contain
  // `filename=`.
  return { 'Content-Disposition': header.replace(/^(\w+; filename=)([^";]+)/, '$1"$2"') }
}

/** The media type of a file extension, from Express; undefined if unknown. */
function typeOfName(res: Response, name: string): string | undefined {
  const type = res.type(extname(name)).get('Content-Type')
  res.removeHeader('Content-Type') // the response may still become an error
  return type === UNKNOWN ? undefined : type
}

async function readSample(storage: Storage, cid: CID, signal: AbortSignal): Promise<Uint8Array> {
  const sample: Uint8Array[] = []
  try {
    for await (const chunk of storage.cat(cid, { length: MIME_SAMPLE, signal })) sample.push(chunk)
  } catch (error) {
    // A block in the middle may be missing: other parts of the file can still be read.
    if (!(error instanceof StorageError) || error.code !== 'not_found' || sample.length === 0) throw error
  }
  return Buffer.concat(sample)
}

async function typeOf(sample: Uint8Array): Promise<string> {
  const type = await mimeTypeOf(sample)
  return type === 'text/plain' && sample.length < MIME_SAMPLE && isJson(sample) ? 'application/json' : type
}

/** True for the complete text of a JSON object or list. */
function isJson(bytes: Uint8Array): boolean {
  try {
    return typeof JSON.parse(Buffer.from(bytes).toString()) === 'object'
  } catch {
    return false
  }
}
