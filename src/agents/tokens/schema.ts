import { z } from 'zod'
import { agentRecord } from '../agent.ts'
import { agentFields } from '../lifecycle/schema.ts'

/** `GET A/gateway-token` and its rotation (compatibility 2.2). */
export const gatewayToken = z.object({
  token: z.string(),
  wsUrl: z.string().describe('The agent’s own host, for WebSockets.'),
  baseUrl: z.string().describe('The same for HTTP.'),
})

export const platformToken = z.object({ token: z.string().describe('A JWT, for one hour.') })

/** `GET A/platform/whoami`: the agent, and by what the caller reached it. */
export const identity = z.object({
  agentId: z.string(),
  name: z.string(),
  status: agentRecord.shape.status,
  userId: z.string(),
  workspaceId: z.string(),
  tokenKind: z.enum(['gateway', 'platform', 'key']).describe('`key`: an API key of the workspace.'),
})

const { name, description, vibe, emoji } = agentFields

/** `PATCH A/platform/metadata`: what is absent stays as it is. */
export const metadataChange = z
  .object({
    name: name.optional(),
    description: description.optional(),
    vibe: vibe.optional(),
    emoji: emoji.optional(),
  })
  .refine(
    (change) => Object.values(change).some((value) => value !== undefined),
    'must have a name, description, vibe or emoji',
  )
export type MetadataChange = z.output<typeof metadataChange>

export const metadataChanged = z.object({ success: z.literal(true), agent: agentRecord })
