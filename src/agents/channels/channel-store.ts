/** The rows of channels. Tokens are sealed together, and open for the agent and the channel that they are of only. */
import { z } from 'zod'
import type { Prisma } from '../../db/prisma.ts'
import { messages, unavailable } from '../../errors.ts'
import type { Sealer } from '../../lib/sealer.ts'
import type { Agent } from '../agent.ts'
import type { Channel, Settings, TokenName } from './channel-schema.ts'

export type Tokens = Partial<Record<TokenName, string | undefined>>

export interface StoredChannel {
  channel: Channel
  settings: Settings
  /** Null where they no longer open: they were sealed with another SECRETS_KEY. */
  tokens: Tokens | null
}

type Owner = Pick<Agent, 'id' | 'workspaceId'>

const sealedTokens = z.object({ botToken: z.string().optional(), appToken: z.string().optional() })
const context = ({ id }: Owner, channel: Channel) => `channel:${id}:${channel}`

/** The channels of an agent, with their tokens. */
export async function readChannels(
  prisma: Prisma.TransactionClient,
  sealer: Sealer,
  agent: Owner,
): Promise<StoredChannel[]> {
  const rows = await prisma.agentChannel.findMany({
    where: { agentId: agent.id },
    orderBy: { channel: 'asc' },
  })
  return rows.map(({ channel: name, settings, sealed }) => {
    const channel = name as Channel
    const tokens = sealed ? open(sealer, agent, channel, sealed) : {}
    return { channel, settings: settings as unknown as Settings, tokens }
  })
}

/** @throws ApiError 503 `Secrets not configured` for tokens without a key to seal them with. */
export async function writeChannel(
  prisma: Prisma.TransactionClient,
  sealer: Sealer,
  agent: Owner,
  { channel, settings, tokens }: StoredChannel,
): Promise<void> {
  const text = tokens && Object.keys(tokens).length > 0 ? JSON.stringify(tokens) : undefined
  if (text !== undefined && !sealer.configured) throw unavailable(messages.secretsNotConfigured)
  const sealed = text === undefined ? null : sealer.seal(agent.workspaceId, context(agent, channel), text)
  const row = { settings: { ...settings }, sealed: sealed && Uint8Array.from(sealed) }
  await prisma.agentChannel.upsert({
    where: { agentId_channel: { agentId: agent.id, channel } },
    create: { agentId: agent.id, channel, ...row },
    update: { ...row, updatedAt: new Date() },
  })
}

function open(sealer: Sealer, agent: Owner, channel: Channel, sealed: Uint8Array): Tokens | null {
  try {
    return sealedTokens.parse(JSON.parse(sealer.open(agent.workspaceId, context(agent, channel), sealed)))
  } catch {
    return null
  }
}
