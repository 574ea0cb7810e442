import { supportedMimeTypes } from 'file-type'
import { badRequest } from '../../errors.ts'

/** Types of text that are not `text/*`. */
const TEXTUAL =
  /^(text\/[\w.+-]+|application\/(json|javascript|ecmascript|xml|yaml|toml|sql|graphql|x-sh|x-ndjson|x-javascript)|[\w.-]+\/[\w.-]+\+(json|xml|yaml))$/
/** Types that clients declare for want of a better one, and that of a part without a Content-Type. */
export const SAYS_NOTHING = new Set(['application/octet-stream', 'text/plain'])
const WELL_FORMED = /^[a-z0-9][\w.+-]{0,126}\/[a-z0-9][\w.+-]{0,126}$/

/**
 * The MIME type of a file. What its bytes show wins: it cannot be claimed. Where they show only that it is
 * text, XML, or nothing known, the client may say which, as no bytes tell HTML, CSS, JSON or SVG; but not
 * that it is one of the types that would have shown.
 * @param sniffed what the store tells from the bytes, see `DagStat`.
 * @param declared the Content-Type that the client gave; parameters are dropped.
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
 * The MIME type of what was uploaded.
 * @param declared null for what is not the file that was sent: a folder, the content of a CAR.
 * @param allowed the types that a signed URL is for; none for all.
 * @throws ApiError 400 for another type than those.
 */
export function admitType(sniffed: string, declared: string | null, allowed?: string[] | null): string {
  const type = declared === null ? sniffed : contentType(sniffed, declared)
  if (!allowed || isAllowedType(type, allowed)) return type
  throw badRequest(`Presigned URL does not grant permissions to upload detected MIME type: ${type}`)
}

/** True for the type of a repeated upload that says more of the content than the type that is known, or something else. */
export const isBetterType = (type: string, known: string): boolean =>
  type !== known && type !== 'application/xml' && !SAYS_NOTHING.has(type)

/** True for a type on a list of types and wildcards. A folder is on it only by its name, `directory`. */
export function isAllowedType(type: string, allowed: string[]): boolean {
  const [group, subtype] = type.split('/')
  const names = subtype === undefined ? [type] : [type, `${group}/*`, '*/*']
  return allowed.some((entry) => names.includes(entry.toLowerCase()))
}
