/** `GET A/console/terminal`: its query, and its messages. */
import { z } from 'zod'
import { storable } from '../agentd-status.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
/** The width or height of a terminal. */
const cells = <N extends z.ZodNumber | z.ZodCoercedNumber>(number: N) => number.int().min(1).max(1000)

export const terminalQuery = z.object({
  columns: cells(z.coerce.number()).default(80).describe('The width of the terminal.'),
  rows: cells(z.coerce.number()).default(24).describe('The height of the terminal.'),
  terminal: z
    .string()
    .regex(UUID, 'must be the id of a terminal')
    .optional()
    .describe('A running terminal to connect to again; without it, a new one opens.'),
  after: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe(
      'The position in its output after which it continues; by default, all kept output is sent again.',
    ),
})
export type TerminalQuery = z.output<typeof terminalQuery>

/** A client's text message. */
export const terminalResize = z.object({
  type: z.literal('resize'),
  columns: cells(z.number()),
  rows: cells(z.number()),
})

/** The text messages of agentd, which Berth passes on to the client. */
export const terminalEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready'), terminal: z.string().regex(UUID), from: z.number().int().min(0) }),
  z.object({ type: z.literal('exit'), code: z.number().int(), reason: storable(200).optional() }),
  z.object({ type: z.literal('taken') }),
])
