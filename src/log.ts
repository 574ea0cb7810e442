import { type DestinationStream, type Logger, pino } from 'pino'

export type { Logger }

/** Fields that never reach a log, wherever they appear one level deep. */
const REDACTED = ['authorization', 'token', 'cookie', 'JWT', 'value', 'botToken', 'appToken', 'contentBase64']

/** The log of one process: JSON lines on standard output, each with the role. */
export function createLogger(role: string, level: string, destination?: DestinationStream): Logger {
  return pino(
    {
      base: { role },
      level,
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
