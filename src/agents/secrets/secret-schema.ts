import { z } from 'zod'
import { agentId, like, timestamp, userId, uuid, withExample } from '../../http/fields.ts'
import { text } from '../../http/shapes.ts'
import { hosts, via } from './brokered.ts'
import { isReserved } from './reserved.ts'

const MAX_NAME = 128
const NAME = new RegExp(`^[A-Z_][A-Z0-9_]{0,${MAX_NAME - 1}}$`)
/** Together with its name it stays below the 128 KiB that Linux allows for one variable. */
const MAX_VALUE_BYTES = 32_768

const secretType = z
  .enum(['secret', 'variable'], 'must be secret or variable')
  .describe('The value of a variable is shown; the value of a secret is never shown.')

const brokering = {
  hosts: withExample(z.array(z.string()), ['api.example.com'])
    .nullable()
    .describe('The hosts that the egress proxy sends the value to; null if agents get the value itself.'),
  via: via.nullable().describe('How the value travels to these hosts.'),
}

/** A secret of the workspace. */
export const secretRecord = z.object({
  id: uuid,
  userId,
  name: like('OPENAI_API_KEY'),
  type: secretType,
  value: z
    .string()
    .nullable()
    .optional()
    .describe('Only for variables; null if it was encrypted with another SECRETS_KEY.'),
  ...brokering,
  readable: like(false).describe(
    'Whether programs in agents can read the value. False with hosts, and for keys that the model gateway inserts. ' +
      'Agents as processes read it also with hosts: see the secrets of the agent.',
  ),
  createdAt: timestamp,
  updatedAt: timestamp,
})
export type SecretRecord = z.output<typeof secretRecord>

const listedSecret = secretRecord.extend({
  agents: z
    .array(z.object({ agentId, name: like('OPENAI_API_KEY') }))
    .describe('The agents that it is attached to.'),
})
export type ListedSecret = z.output<typeof listedSecret>

export const secretList = z.object({
  secrets: z.array(listedSecret),
  secretLimit: like(500).nullable().describe('Secrets that the plan allows; null for no limit.'),
})

/** A secret of an agent. */
export const agentSecret = z.object({
  id: uuid,
  name: like('OPENAI_API_KEY'),
  createdAt: timestamp,
  updatedAt: timestamp,
  ...brokering,
  readable: like(false).describe(
    'Whether programs in this agent can read the value. True with hosts while the agent shares the machine as a process, ' +
      'or runs since before they were set.',
  ),
  synced: like(true).describe('Whether the agent needs no restart to use the current value.'),
})
export type AgentSecret = z.output<typeof agentSecret>

const value = like('sk-proj-…')
  .min(1, 'must not be empty')
  .refine((text) => !text.includes('\0') && text.isWellFormed(), 'must not contain NUL or broken Unicode')
  .refine((text) => Buffer.byteLength(text) <= MAX_VALUE_BYTES, `must have at most ${MAX_VALUE_BYTES} bytes`)

export const newSecret = z.object({
  name: like('OPENAI_API_KEY')
    .min(1, 'must not be empty')
    .meta({ pattern: NAME.source, description: 'The name of the environment variable in agents.' }),
  value,
  type: secretType.default('secret'),
  hosts,
  via: via.optional(),
})
export type NewSecret = z.output<typeof newSecret>

/** Why a secret cannot have this name, worded as in the public service. */
export function nameFault(name: string): string | undefined {
  if (!NAME.test(name))
    return `name must be a valid environment variable name: capital letters, digits and _, no digit first, at most ${MAX_NAME}`
  if (isReserved(name)) return `name: ${name} is reserved, the agent's own programs need it`
  return undefined
}

/** Changes of `hosts` and `via` need the value, so that nobody sends a secret elsewhere whose value they do not know. */
export const secretChange = z.object({
  value,
  hosts: hosts.describe(
    'Replaces the hosts; null or an empty list removes them. Without this field they stay.',
  ),
  via: via.optional(),
})
export type SecretChange = z.output<typeof secretChange>

export const attachment = z.object({
  secretIds: z
    .array(withExample(text(64), '0193a1c8-22d4-7b60-8c1e-5a9f40c7e2d3'))
    .min(1, 'must not be empty')
    .max(100, 'must have at most 100 items')
    .describe('Ids of secrets of the workspace.'),
})
