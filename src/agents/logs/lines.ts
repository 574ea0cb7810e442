/** Lines of an agent's log, as agentd says them: untrusted, so checked. */
import { z } from 'zod'

/** The last lines that clients get (compatibility 2.13). */
export const KEPT_LINES = 100

export const logLine = z.object({
  timestamp: z.string().max(40),
  level: z.enum(['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']),
  source: z.string().max(200),
  message: z.string(),
})
export const logLines = z.object({ lines: z.array(logLine).max(KEPT_LINES) })
export type LogLine = z.output<typeof logLine>

/** A line as people read it. */
export const formatLine = ({ timestamp, level, source, message }: LogLine): string =>
  `${timestamp} ${level} ${source} ${message}`
