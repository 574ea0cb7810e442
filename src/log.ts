import { type DestinationStream, type Logger, pino } from 'pino'

export type { Logger }

/** Fields that are never logged, at any place up to one level deep. */
const REDACTED = ['authorization', 'token', 'cookie', 'JWT', 'value', 'botToken', 'appToken', 'contentBase64']

/**
 * Tokens in other places of a line: in URLs, error messages, or text from libraries. Every pattern takes linear time,
 * because clients choose their URLs.
 */
const TOKENS: readonly (readonly [RegExp, string])[] = [
  // API keys and platform tokens.
  [/(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]+/g, '…'],
  // Invitations.
  [/invite_[\w-]{43}/g, '…'],
  // Gateway tokens are version 4 UUIDs; ids are version 7, or have no dashes.
  [/[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}/gi, '…'],
  // The token of a resumable upload is a part of its path.
  [/(\/v3\/files\/tus\/[^/\s"\\]+\/)[^/?\s"\\]+/gi, '$1…'],
  // Passwords in URLs, such as DATABASE_URL's.
  [/(\w:\/\/)[^/\s"\\@]+@/g, '$1…@'],
]

/** A URL parameter. */
const PARAMETER = /([?&])([^?&=\s"\\]*)=[^&\s"\\]+/g
/** Names of parameters that hold a token; a partly escaped name may be any of them. */
const SECRET_NAME = /auth|key|pass|secret|sig|token|%/i

/** Removes tokens from a text. */
export function redactTokens(text: string): string {
  return TOKENS.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), text).replace(
    PARAMETER,
    (parameter, mark, name) => (SECRET_NAME.test(name) ? `${mark}${name}=…` : parameter),
  )
}

/** The maximum length of a URL in a line. */
const MAX_URL = 2048

/**
 * Shortens a URL for a log line, cutting between two of its parts, so that no token is cut into a form that no pattern
 * finds.
 */
export function shortUrl(url: string): string {
  if (url.length <= MAX_URL) return url
  const cut = url.slice(0, MAX_URL)
  return `${cut.slice(0, Math.max(...['/', '?', '&'].map((mark) => cut.lastIndexOf(mark))) + 1)}…`
}

/**
 * The logged fields of an error. Clients attach whatever they were doing, including commands and their passwords, so
 * only the fields named here are logged.
 */
export function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { name, message, stack, code, cause } = error as NodeJS.ErrnoException
  return { type: name, message, stack, code, cause: cause instanceof Error ? cause.message : undefined }
}

/** The log of one process: JSON lines on standard output, each with the role. */
export function createLogger(role: string, level: string, destination?: DestinationStream): Logger {
  return pino(
    {
      base: { role },
      level,
      serializers: { err: describeError },
      timestamp: pino.stdTimeFunctions.isoTime,
      hooks: { streamWrite: redactTokens },
      redact: { paths: REDACTED.flatMap((name) => [name, `*.${name}`, `req.headers.${name}`]), censor: '…' },
    },
    destination ?? standardOutput(),
  )
}

/** Standard output may be a pipe whose reader was killed: the process then continues without a log. */
function standardOutput(): DestinationStream {
  const stdout = pino.destination({ fd: 1, sync: true })
  stdout.on('error', () => {})
  return stdout
}
