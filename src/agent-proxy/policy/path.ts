/** Paths of requests, read once in a way that no server reads differently. */

/** Characters that some servers take for a slash or for the end of a path, or that have to be encoded (RFC 3986). */
const FORBIDDEN = /[^!-~]|[\\#]/
/** A backslash and control characters. */
const FORBIDDEN_ESCAPES = /%(5c|7f|[01].)/i
/** Encodings of a slash, a backslash or a dot that a second decoding would reveal. */
const TWICE = /%(2f|5c|2e)/i

/**
 * The path of a target without its query, decoded; undefined if servers may disagree about it: a segment `.` or `..`,
 * an encoded or doubled slash, or bytes that are not UTF-8.
 * @param decidesNothing admits encoded and doubled slashes, as in names of packages.
 */
export function plainPath(target: string, decidesNothing = false): string | undefined {
  const [path = ''] = target.split('?', 1)
  if (FORBIDDEN.test(path) || FORBIDDEN_ESCAPES.test(path)) return undefined
  if (!decidesNothing && /%2f|\/\//i.test(path)) return undefined
  let decoded: string
  try {
    decoded = decodeURIComponent(path)
  } catch {
    return undefined
  }
  // Some servers end a segment at a semicolon.
  const hasDots = decoded.split('/').some((segment) => /^\.\.?(;|$)/.test(segment))
  return hasDots || TWICE.test(decoded) ? undefined : decoded
}
