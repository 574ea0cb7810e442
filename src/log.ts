import { type DestinationStream, type Logger, pino } from 'pino'

export type { Logger }

/** Fields that never reach a log, wherever they appear one level deep. */
const REDACTED = ['authorization', 'token', 'cookie', 'JWT', 'value', 'botToken', 'appToken', 'contentBase64']

/**
 * Tokens wherever else they stand in a line: in URLs, in messages of errors, in what a library says. No pattern takes
 * more than linear time, since whoever sends a request chooses its URL.
 */
const TOKENS: readonly (readonly [RegExp, string])[] = [
  // API keys and platform tokens.
  [/(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]+/g, '…'],
  // Invitations.
  [/invite_[\w-]{43}/g, '…'],
  // Gateway tokens are UUIDs of version 4; ids are of version 7, or have no dashes.
  [/[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}/gi, '…'],
  // The token of a resumable upload is a part of its path.
  [/(\/v3\/files\/tus\/[^/\s"\\]+\/)[^/?\s"\\]+/gi, '$1…'],
  // Passwords of addresses, such as DATABASE_URL's.
  [/(\w:\/\/)[^/\s"\\@]+@/g, '$1…@'],
]

/** A parameter of a URL. */
const PARAMETER = /([?&])([^?&=\s"\\]*)=[^&\s"\\]+/g
/** Names of parameters that hold a token; one that is escaped in part may be any of them. */
const SECRET_NAME = /auth|key|pass|secret|sig|token|%/i

/** A text without the tokens in it. */
export function redactTokens(text: string): string {
  return TOKENS.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), text).replace(
    PARAMETER,
    (parameter, mark, name) => (SECRET_NAME.test(name) ? `${mark}${name}=…` : parameter),
  )
}

/** The longest URL in a line. */
const MAX_URL = 2048

/** A URL for a line: a long one is cut between two of its parts, so that no token is cut into what no pattern finds. */
export function shortUrl(url: string): string {
  if (url.length <= MAX_URL) return url
  const cut = url.slice(0, MAX_URL)
  return `${cut.slice(0, Math.max(...['/', '?', '&'].map((mark) => cut.lastIndexOf(mark))) + 1)}…`
}

/**
 * The fields of an error in a line. Clients put on theirs whatever they were doing, commands and their passwords
 * included: only what is named here is logged.
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

/** Standard output may be a pipe whose reader was killed: the process then goes on without a log. */
function standardOutput(): DestinationStream {
  const stdout = pino.destination({ fd: 1, sync: true })
  stdout.on('error', () => {})
  return stdout
}
