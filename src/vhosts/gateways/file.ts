import { extname } from 'node:path'
import { create as contentDisposition } from 'content-disposition'
import type { Response } from 'express'
import type { CID } from 'multiformats/cid'
import { MIME_SAMPLE, mimeTypeOf } from '../../storage/measure.ts'
import type { Storage } from '../../storage/port.ts'
import type { Representation } from './respond.ts'

/**
 * All content of a gateway has one origin, so no page may act for it: a sandboxed page has an origin of its
 * own. Browsers show no PDF in a sandbox, and run nothing of it that could reach the origin.
 */
const SANDBOX = 'sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads'
const PDF = 'application/pdf'
const UNKNOWN = 'application/octet-stream'

export interface FileContent {
  cid: CID
  /** Size that the file's root node declares. */
  size: number
  /** The last name of its path; null for a file that is asked for by its own CID. */
  name: string | null
  /** MIME type, where it is known already. */
  mimeType: string | null
  /** The content, where it has been read already. */
  bytes?: Uint8Array | undefined
}

/** A UnixFS file as its bytes. Its type is the one that is known, else that of its name, else that of its first bytes. */
export async function fileRepresentation(
  res: Response,
  storage: Storage,
  { cid, size, name, mimeType, bytes }: FileContent,
  gone: AbortSignal,
): Promise<Representation> {
  const type = mimeType ?? (name && typeOfName(res, name)) ?? (await typeOfContent(storage, cid, gone))
  return {
    etag: `"${cid}"`,
    size,
    headers: {
      'Content-Type': type,
      ...(type !== PDF && { 'Content-Security-Policy': SANDBOX }),
    },
    read: (from, to, signal) =>
      bytes ? once(bytes.subarray(from, to)) : storage.cat(cid, { offset: from, length: to - from, signal }),
  }
}

/**
 * `Content-Disposition` (RFC 6266) where the client asks for one: `?filename=` names the file, `?download=true`
 * has it stored.
 * @param fallback its name where the client gives none.
 */
export function disposition({ searchParams }: URL, fallback: string): Record<string, string> {
  const type = searchParams.get('download') === 'true' ? 'attachment' : 'inline'
  const filename = searchParams.get('filename') || null
  if (type === 'inline' && filename === null) return {}
  const safe = (filename ?? fallback).replace(/[\p{Cc}/\\]/gu, '_')
  return { 'Content-Disposition': contentDisposition(safe, { type }) }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** The media type of a file's extension, by Express; undefined where it does not know it. */
function typeOfName(res: Response, name: string): string | undefined {
  const type = res.type(extname(name)).get('Content-Type')
  res.removeHeader('Content-Type') // an error may yet be the answer
  return type === UNKNOWN ? undefined : type
}

async function typeOfContent(storage: Storage, cid: CID, signal: AbortSignal): Promise<string> {
  const sample: Uint8Array[] = []
  for await (const chunk of storage.cat(cid, { length: MIME_SAMPLE, signal })) sample.push(chunk)
  return mimeTypeOf(Buffer.concat(sample))
}
