import { z } from 'zod'
import { like, timestamp, withExample } from '../../http/fields.ts'
import { storable } from '../agentd-status.ts'

/** A longer command belongs in a file. */
const MAX_COMMAND_BYTES = 65_536
const MAX_CWD_BYTES = 4096

const shellText = (maxBytes: number, example: string) =>
  withExample(z.string('must be text'), example)
    .refine((text) => text.trim() !== '', 'must not be empty')
    .refine((text) => !text.includes('\0'), 'must not contain NUL')
    .refine((text) => Buffer.byteLength(text) <= maxBytes, `must have at most ${maxBytes} bytes`)
    .meta({ minLength: 1, maxLength: maxBytes })

/** `POST A/console/exec` (contract 4.3). */
export const command = z.object({
  command: shellText(MAX_COMMAND_BYTES, 'git log --oneline -1').describe('The shell command.'),
  cwd: shellText(MAX_CWD_BYTES, '/home/node/clawd')
    .optional()
    .describe('Working directory, absolute or below `/home/node/clawd`, which is the default.'),
})

/** agentd's response. */
export const execResult = z.object({
  stdout: like('4f1c2ab feat: begin workspace\n'),
  stderr: like(''),
  exitCode: withExample(z.number().int(), 0).describe('128 + the signal’s number if a signal ended it.'),
  truncated: z.boolean().describe('True if there was more output than is kept.'),
  timedOut: z.boolean().describe('True if it ran too long and was killed.'),
  reason: storable(1000)
    .optional()
    .describe('Why it failed, if the kernel killed a process for memory; also the last line of `stderr`.'),
})

export const execAnswer = execResult.extend({ command: command.shape.command, timestamp })

/** A line of agentd's stream. */
export const execEvent = z.union([
  z.object({ stream: z.enum(['stdout', 'stderr']), text: like('Three letters') }),
  z.object({ exit: execResult.omit({ stdout: true, stderr: true }) }),
])
