/**
 * Sets up and removes channels: one transaction changes the row and enqueues the operation that restarts the gateway.
 */

import { inTransaction, type PrismaClient, type Transaction } from '../../db/prisma.ts'
import type { Plan } from '../../db/statements/plan.ts'
import { badRequest, forbidden, messages, notFound } from '../../errors.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { enqueue, isRepeat } from '../../operations/enqueue.ts'
import { type Agent, lockAgent } from '../agent.ts'
import type { AgentServices } from '../agent-route.ts'
import {
  type Channel,
  type ChannelChange,
  DEFAULTS,
  REQUIRED_TOKENS,
  type TokenName,
} from './channel-schema.ts'
import {
  readChannels,
  requireFreeTokens,
  type StoredChannel,
  type Tokens,
  writeChannel,
} from './channel-store.ts'

/**
 * The plan's limit on channels, for everything that sets one up: requests for a channel or a new agent, and manifests.
 * @throws ApiError 403 if the plan includes no channels.
 */
export function requireChannels({ channels }: Pick<Plan, 'channels'>): void {
  if (!channels) throw forbidden(messages.channelsPlan, 'plan')
}

type Services = Pick<AgentServices, 'prisma' | 'encryption'>

/**
 * Saves a channel; fields that the change omits, including tokens, stay unchanged. A repeat under the same idempotency
 * key changes nothing.
 * @returns the id of the restart; undefined if the change skips it.
 * @throws ApiError 400 for a first setup without a token, 409 for another agent's token, 503 without a key to encrypt
 *   it with, 422 if the idempotency key was used for another request.
 */
export function saveChannel(
  { prisma, encryption }: Services,
  agent: Agent,
  channel: Channel,
  change: ChannelChange,
  idempotencyKey: string | undefined,
): Promise<string | undefined> {
  return changeAgent(prisma, agent, async (tx) => {
    const request = `channel ${agent.agentId} ${channel} ${JSON.stringify(change)}`
    const restart = () => enqueue(tx, 'agent.restart', agent, { idempotencyKey, request })
    if (await isRepeat(tx, agent, idempotencyKey)) return restart()
    const known = (await readChannels(tx, encryption, agent)).find((stored) => stored.channel === channel)
    const merged = mergeChannel(channel, known, change)
    await requireFreeTokens(tx, encryption, agent, channel, newTokens(change, known))
    await writeChannel(tx, encryption, agent, merged)
    return change.skipRestart ? undefined : restart()
  })
}

/**
 * Removes a channel with its tokens.
 * @returns the id of the restart.
 * @throws ApiError 404 if it is not configured.
 */
export function removeChannel({ prisma }: Services, agent: Agent, channel: Channel): Promise<string> {
  return changeAgent(prisma, agent, async (tx) => {
    const { count } = await tx.agentChannel.deleteMany({ where: { agentId: agent.id, channel } })
    if (count === 0) throw notFound('The channel is not configured')
    return enqueue(tx, 'agent.restart', agent)
  })
}

/** Runs `change` while nobody else changes the agent's channels. @throws ApiError 404 if the agent was deleted. */
async function changeAgent<T>(
  prisma: PrismaClient,
  agent: Agent,
  change: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const result = await inTransaction(prisma, async (tx) => {
    await lockAgent(tx, agent)
    return change(tx)
  })
  crashPoint('after-commit')
  return result
}

/**
 * The tokens in a change that are new to the channel. A channel that already shares a token with another agent can
 * still be changed.
 */
function newTokens(change: ChannelChange, known: StoredChannel | undefined): Tokens {
  const isNew = (name: TokenName) => change[name] !== known?.tokens?.[name]
  return {
    ...(isNew('botToken') && { botToken: change.botToken }),
    ...(isNew('appToken') && { appToken: change.appToken }),
  }
}

/** The refusal of a first setup without a required token, worded as in the public service. */
export const missingToken = (name: TokenName) => badRequest(`${name} is required (string)`)

/**
 * The channel after a change; `known` is undefined if it does not exist yet. Tokens that no longer decrypt have to be
 * given again.
 * @throws ApiError 400 if a token is missing, or if nobody could write to the agent.
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
