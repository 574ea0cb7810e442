/** The rows of channels. A channel's tokens are encrypted together, and decrypt only for their agent and channel. */
import { z } from 'zod'
import { lock } from '../../db/advisory-locks.ts'
import type { Prisma, Transaction } from '../../db/prisma.ts'
import { ApiError, messages, unavailable } from '../../errors.ts'
import type { Encryption } from '../../lib/encryption.ts'
import type { Agent } from '../agent.ts'
import { type Channel, REQUIRED_TOKENS, type Settings, type TokenName } from './channel-schema.ts'

export type Tokens = Partial<Record<TokenName, string | undefined>>

export interface StoredChannel {
  channel: Channel
  settings: Settings
  /** Null if they do not decrypt, because they were encrypted with another SECRETS_KEY. */
  tokens: Tokens | null
}

type Owner = Pick<Agent, 'id' | 'workspaceId'>

const tokensSchema = z.object({ botToken: z.string().optional(), appToken: z.string().optional() })
/** The encryption context of a channel's tokens. */
export const channelContext = ({ id }: Pick<Owner, 'id'>, channel: Channel) => `channel:${id}:${channel}`

/** The channels of an agent, with their tokens. */
export async function readChannels(
  prisma: Prisma.TransactionClient,
  encryption: Encryption,
  agent: Owner,
): Promise<StoredChannel[]> {
  const rows = await prisma.agentChannel.findMany({
    where: { agentId: agent.id },
    orderBy: { channel: 'asc' },
  })
  return rows.map(({ channel: name, settings, ciphertext }) => {
    const channel = name as Channel
    const tokens = ciphertext ? decrypt(encryption, agent, channel, ciphertext) : {}
    return { channel, settings: settings as unknown as Settings, tokens }
  })
}

/**
 * Makes sure that no other agent in any workspace has one of these tokens: gateways that share a bot take each other's
 * messages. Locks the tokens of this kind of channel until the transaction ends.
 * @throws ApiError 409, which names no agent.
 */
export async function requireFreeTokens(
  tx: Transaction,
  encryption: Encryption,
  agent: Pick<Owner, 'id'>,
  channel: Channel,
  given: Tokens,
): Promise<void> {
  const names = REQUIRED_TOKENS[channel].filter((name) => given[name] !== undefined)
  if (names.length === 0) return
  await lock(tx, 'botTokens', channel)
  const others = await tx.agentChannel.findMany({
    where: { channel, ciphertext: { not: null }, agentId: { not: agent.id }, agent: { deletedAt: null } },
    select: { ciphertext: true, agent: { select: { id: true, workspaceId: true } } },
  })
  for (const { ciphertext, agent } of others) {
    const tokens = ciphertext && decrypt(encryption, agent, channel, ciphertext)
    const taken = names.find((name) => tokens?.[name] === given[name])
    if (taken)
      throw new ApiError(
        409,
        'duplicate_token',
        `${taken}: another agent has this token; each agent needs a bot of its own`,
      )
  }
}

/** @throws ApiError 503 `Secrets not configured` for tokens if there is no key to encrypt them with. */
export async function writeChannel(
  prisma: Prisma.TransactionClient,
  encryption: Encryption,
  agent: Owner,
  { channel, settings, tokens }: StoredChannel,
): Promise<void> {
  const text = tokens && Object.keys(tokens).length > 0 ? JSON.stringify(tokens) : undefined
  if (text !== undefined && !encryption.configured) throw unavailable(messages.secretsNotConfigured)
  const ciphertext =
    text === undefined ? null : encryption.encrypt(agent.workspaceId, channelContext(agent, channel), text)
  const row = { settings: { ...settings }, ciphertext: ciphertext && Uint8Array.from(ciphertext) }
  await prisma.agentChannel.upsert({
    where: { agentId_channel: { agentId: agent.id, channel } },
    create: { agentId: agent.id, channel, ...row },
    update: { ...row, updatedAt: new Date() },
  })
}

function decrypt(
  encryption: Encryption,
  agent: Owner,
  channel: Channel,
  ciphertext: Uint8Array,
): Tokens | null {
  try {
    return tokensSchema.parse(
      JSON.parse(encryption.decrypt(agent.workspaceId, channelContext(agent, channel), ciphertext)),
    )
  } catch {
    return null
  }
}
