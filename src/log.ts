import { type DestinationStream, type Logger, pino } from 'pino'

export type { Logger }

/** Fields that never reach a log, wherever they appear one level deep. */
const REDACTED = ['authorization', 'token', 'cookie', 'JWT', 'value', 'botToken', 'appToken', 'contentBase64']

/**
 * What a line says of an error. Clients put on theirs whatever they were doing, commands and their passwords
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
