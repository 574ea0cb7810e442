/** The rows of channels. Tokens are sealed together, and open for the agent and the channel that they are of only. */
import { z } from 'zod'
import type { Queryable } from '../../db/pool.ts'
import { messages, unavailable } from '../../errors.ts'
import type { Sealer } from '../../sealer.ts'
import type { Agent } from '../agent.ts'
import type { Channel, Settings, TokenName } from './schema.ts'

export type Tokens = Partial<Record<TokenName, string>>

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
export async function readChannels(db: Queryable, sealer: Sealer, agent: Owner): Promise<StoredChannel[]> {
  const { rows } = await db.query<{ channel: Channel; settings: Settings; sealed: Buffer | null }>(
    'SELECT channel, settings, sealed FROM agent_channel WHERE agent_id = $1 ORDER BY channel',
    [agent.id],
  )
  return rows.map(({ channel, settings, sealed }) => ({
    channel,
    settings,
    tokens: sealed ? open(sealer, agent, channel, sealed) : {},
  }))
}

/** @throws ApiError 503 `Secrets not configured` for tokens without a key to seal them with. */
export async function writeChannel(
  db: Queryable,
  sealer: Sealer,
  agent: Owner,
  { channel, settings, tokens }: StoredChannel,
): Promise<void> {
  const text = tokens && Object.keys(tokens).length > 0 ? JSON.stringify(tokens) : undefined
  if (text !== undefined && !sealer.configured) throw unavailable(messages.secretsNotConfigured)
  const sealed = text === undefined ? null : sealer.seal(agent.workspaceId, context(agent, channel), text)
  await db.query(
    `INSERT INTO agent_channel (agent_id, channel, settings, sealed) VALUES ($1, $2, $3, $4)
     ON CONFLICT (agent_id, channel) DO UPDATE SET settings = $3, sealed = $4, updated_at = clock_timestamp()`,
    [agent.id, channel, JSON.stringify(settings), sealed],
  )
}

/** Whether it was there. */
export async function deleteChannel(db: Queryable, agent: Owner, channel: Channel): Promise<boolean> {
  const { rowCount } = await db.query('DELETE FROM agent_channel WHERE agent_id = $1 AND channel = $2', [
    agent.id,
    channel,
  ])
  return rowCount === 1
}

function open(sealer: Sealer, agent: Owner, channel: Channel, sealed: Buffer): Tokens | null {
  try {
    return sealedTokens.parse(JSON.parse(sealer.open(agent.workspaceId, context(agent, channel), sealed)))
  } catch {
    return null
  }
}
