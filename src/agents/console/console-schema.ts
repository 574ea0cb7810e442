import { z } from 'zod'
import { storable } from '../agentd-status.ts'

/** A longer command belongs in a file. */
const MAX_COMMAND_BYTES = 65_536
const MAX_CWD_BYTES = 4096

const shellText = (maxBytes: number) =>
  z
    .string('must be text')
    .refine((text) => text.trim() !== '', 'must not be empty')
    .refine((text) => !text.includes('\0'), 'must not contain NUL')
    .refine((text) => Buffer.byteLength(text) <= maxBytes, `must have at most ${maxBytes} bytes`)
    .meta({ minLength: 1, maxLength: maxBytes })

/** `POST A/console/exec` (contract 4.3). */
export const command = z.object({
  command: shellText(MAX_COMMAND_BYTES).describe('The shell command.'),
  cwd: shellText(MAX_CWD_BYTES)
    .optional()
    .describe('Working directory, absolute or below `/home/node/clawd`, which is the default.'),
})

/** agentd's response. */
export const execResult = z.object({
  stdout: z.string(),
  stderr: z.string(),
  exitCode: z.number().int().describe('128 + the signal’s number if a signal ended it.'),
  truncated: z.boolean().describe('True if there was more output than is kept.'),
  timedOut: z.boolean().describe('True if it ran too long and was killed.'),
  reason: storable(1000)
    .optional()
    .describe('Why it failed, if the kernel killed a process for memory; also the last line of `stderr`.'),
})

export const execAnswer = execResult.extend({ command: z.string(), timestamp: z.string() })

/** A line of agentd's stream. */
export const execEvent = z.union([
  z.object({ stream: z.enum(['stdout', 'stderr']), text: z.string() }),
  z.object({ exit: execResult.omit({ stdout: true, stderr: true }) }),
])
