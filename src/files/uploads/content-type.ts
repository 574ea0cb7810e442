import { supportedMimeTypes } from 'file-type'
import { badRequest } from '../../errors.ts'

/** Text types that are not `text/*`. */
const TEXTUAL =
  /^(text\/[\w.+-]+|application\/(json|javascript|ecmascript|xml|yaml|toml|sql|graphql|x-sh|x-ndjson|x-javascript)|[\w.-]+\/[\w.-]+\+(json|xml|yaml))$/
/** Types that clients declare for lack of a better one, including the default for a part without a Content-Type. */
export const SAYS_NOTHING = new Set(['application/octet-stream', 'text/plain'])
const WELL_FORMED = /^[a-z0-9][\w.+-]{0,126}\/[a-z0-9][\w.+-]{0,126}$/

/**
 * The MIME type of a file. The type detected from its bytes takes precedence, so it cannot be spoofed. If the bytes are
 * only recognised as text, XML, or nothing known, the client's type is used, because no bytes distinguish HTML, CSS,
 * JSON or SVG. But the client cannot claim a type that would have been detected.
 * @param sniffed the type that the store detected from the bytes; see `DagStat`.
 * @param declared the client's Content-Type; parameters are dropped.
 */
export function contentType(sniffed: string, declared: string): string {
  const [essence = ''] = declared.toLowerCase().split(';')
  const claim = essence.trim()
  if (!WELL_FORMED.test(claim) || SAYS_NOTHING.has(claim)) return sniffed
  if (sniffed === 'application/xml') return /[/+]xml$/.test(claim) || claim === 'text/html' ? claim : sniffed
  if ((supportedMimeTypes as ReadonlySet<string>).has(claim)) return sniffed
  if (sniffed === 'text/plain') return TEXTUAL.test(claim) ? claim : sniffed
  return sniffed === 'application/octet-stream' ? claim : sniffed
}

/**
 * The MIME type of an upload.
 * @param declared null if the content is not the file that was sent: a folder, the content of a CAR.
 * @param allowed the types that a signed URL allows; none for all.
 * @throws ApiError 400 for other types.
 */
export function admitType(sniffed: string, declared: string | null, allowed?: string[] | null): string {
  const type = declared === null ? sniffed : contentType(sniffed, declared)
  if (!allowed || isAllowedType(type, allowed)) return type
  throw badRequest(`Presigned URL does not grant permissions to upload detected MIME type: ${type}`)
}

/** True if the type of a repeated upload differs from the known type and is specific enough to replace it. */
export const isBetterType = (type: string, known: string): boolean =>
  type !== known && type !== 'application/xml' && !SAYS_NOTHING.has(type)

/** True if a list of types and wildcards includes the type. A folder only matches its name, `directory`. */
export function isAllowedType(type: string, allowed: string[]): boolean {
  const [group, subtype] = type.split('/')
  const names = subtype === undefined ? [type] : [type, `${group}/*`, '*/*']
  return allowed.some((entry) => names.includes(entry.toLowerCase()))
}
