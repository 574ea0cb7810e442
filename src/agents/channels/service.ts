/** Setting up and removing channels: the row changes together with the operation that restarts the gateway. */
import { crashPoint } from '../../crash-point.ts'
import { type Pool, type Queryable, transaction } from '../../db/pool.ts'
import { badRequest, messages, notFound } from '../../errors.ts'
import type { Sealer } from '../../sealer.ts'
import type { Agent } from '../agent.ts'
import { insertOperation, isRepeat } from '../operate.ts'
import { type Channel, type ChannelChange, DEFAULTS, REQUIRED_TOKENS, type TokenName } from './schema.ts'
import { deleteChannel, readChannels, type StoredChannel, type Tokens, writeChannel } from './store.ts'

export interface ChannelServices {
  pool: Pool
  sealer: Sealer
}

/**
 * Saves a channel; what the change leaves out stays, tokens included. A repeat under the same idempotency key
 * changes nothing.
 * @returns the id of the restart, undefined when the change wants none.
 * @throws ApiError 400 for a first setup without a token, 503 without a key to seal it with, 422 when the idempotency
 *   key named another request.
 */
export function saveChannel(
  { pool, sealer }: ChannelServices,
  agent: Agent,
  channel: Channel,
  change: ChannelChange,
  idempotencyKey: string | undefined,
): Promise<string | undefined> {
  return changeAgent(pool, agent, async (db) => {
    const request = `channel ${agent.agentId} ${channel} ${JSON.stringify(change)}`
    const restart = () => insertOperation(db, agent, 'agent.restart', { idempotencyKey, request })
    if (await isRepeat(db, agent, idempotencyKey)) return restart()
    const known = (await readChannels(db, sealer, agent)).find((stored) => stored.channel === channel)
    await writeChannel(db, sealer, agent, mergeChannel(channel, known, change))
    return change.skipRestart ? undefined : restart()
  })
}

/**
 * Removes a channel with its tokens.
 * @returns the id of the restart.
 * @throws ApiError 404 when it is not configured.
 */
export function removeChannel({ pool }: ChannelServices, agent: Agent, channel: Channel): Promise<string> {
  return changeAgent(pool, agent, async (db) => {
    if (!(await deleteChannel(db, agent, channel))) throw notFound('The channel is not configured')
    return insertOperation(db, agent, 'agent.restart')
  })
}

/** Runs `change` while nobody else changes the agent's channels. @throws ApiError 404 when it was deleted. */
async function changeAgent<T>(pool: Pool, agent: Agent, change: (db: Queryable) => Promise<T>): Promise<T> {
  const result = await transaction(pool, async (db) => {
    const { rowCount } = await db.query(
      'SELECT FROM agent WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE',
      [agent.id],
    )
    if (rowCount === 0) throw notFound(messages.noAgent)
    return change(db)
  })
  crashPoint('after-commit')
  return result
}

/** As the public service says it (compatibility 2.9). */
export const missingToken = (name: TokenName) => badRequest(`${name} is required (string)`)

/**
 * What the change makes of the channel, which is not there yet where `known` is undefined. Tokens that no longer open
 * are to be given again.
 * @throws ApiError 400 where a token is missing, or nobody could write to the agent.
 */
export function mergeChannel(
  channel: Channel,
  known: StoredChannel | undefined,
  { botToken, appToken, enabled, dmPolicy, allowFrom }: ChannelChange,
): StoredChannel {
  const before = known?.settings ?? DEFAULTS
  const settings = {
    enabled: enabled ?? before.enabled,
    dmPolicy: dmPolicy ?? before.dmPolicy,
    allowFrom: allowFrom ?? before.allowFrom,
  }
  if (settings.dmPolicy === 'allowlist' && settings.allowFrom.length === 0) {
    throw badRequest('allowFrom: must not be empty with dmPolicy allowlist')
  }
  const tokens: Tokens = {
    ...known?.tokens,
    ...(botToken !== undefined && { botToken }),
    ...(appToken !== undefined && { appToken }),
  }
  for (const name of REQUIRED_TOKENS[channel]) {
    if (tokens[name] === undefined) throw missingToken(name)
  }
  return { channel, settings, tokens }
}
