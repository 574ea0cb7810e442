import { z } from 'zod'
import { text } from '../../http/shapes.ts'
import { isReserved } from './reserved.ts'

const MAX_NAME = 128
const NAME = new RegExp(`^[A-Z_][A-Z0-9_]{0,${MAX_NAME - 1}}$`)
/** Together with its name it stays below the 128 KiB that Linux allows for one variable. */
const MAX_VALUE_BYTES = 32_768

const secretType = z
  .enum(['secret', 'variable'], 'must be secret or variable')
  .describe('The value of a variable is shown; the value of a secret is never shown.')

/** A secret of the workspace. */
export const secretRecord = z.object({
  id: z.string(),
  userId: z.string(),
  name: z.string(),
  type: secretType,
  value: z
    .string()
    .nullable()
    .optional()
    .describe('Only for variables; null if it was encrypted with another SECRETS_KEY.'),
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type SecretRecord = z.output<typeof secretRecord>

const listedSecret = secretRecord.extend({
  agents: z
    .array(z.object({ agentId: z.string(), name: z.string() }))
    .describe('The agents that it is attached to.'),
})
export type ListedSecret = z.output<typeof listedSecret>

export const secretList = z.object({
  secrets: z.array(listedSecret),
  secretLimit: z.number().nullable().describe('Secrets that the plan allows; null for no limit.'),
})

/** A secret of an agent. */
export const agentSecret = z.object({
  id: z.string(),
  name: z.string(),
  createdAt: z.string(),
  updatedAt: z.string(),
  synced: z.boolean().describe('Whether the running gateway has the current value.'),
})
export type AgentSecret = z.output<typeof agentSecret>

const value = z
  .string()
  .min(1, 'must not be empty')
  .refine((text) => !text.includes('\0') && text.isWellFormed(), 'must not contain NUL or broken Unicode')
  .refine((text) => Buffer.byteLength(text) <= MAX_VALUE_BYTES, `must have at most ${MAX_VALUE_BYTES} bytes`)

export const newSecret = z.object({
  name: z
    .string()
    .min(1, 'must not be empty')
    .meta({ pattern: NAME.source, description: 'The name of the environment variable in agents.' }),
  value,
  type: secretType.default('secret'),
})
export type NewSecret = z.output<typeof newSecret>

/** Why a secret cannot have this name, worded as in the public service. */
export function nameFault(name: string): string | undefined {
  if (!NAME.test(name))
    return `name must be a valid environment variable name: capital letters, digits and _, no digit first, at most ${MAX_NAME}`
  if (isReserved(name)) return `name: ${name} is reserved, the agent's own programs need it`
  return undefined
}

export const secretChange = z.object({ value })

export const attachment = z.object({
  secretIds: z
    .array(text(64))
    .min(1, 'must not be empty')
    .max(100, 'must have at most 100 items')
    .describe('Ids of secrets of the workspace.'),
})
