import { ApiError, messages } from '../../errors.ts'
import type { Route } from '../../http/route.ts'
import { parseInput } from '../../http/shapes.ts'
import { type AgentServices, agentOperationRoutes, agentRoutesOf } from '../agent-route.ts'
import {
  type Channel,
  type ChannelChange,
  changed,
  channelBody,
  channelChangeOf,
  channelList,
  channelPath,
  isChannel,
  REQUIRED_TOKENS,
} from './channel-schema.ts'
import { missingToken, removeChannel, requireChannels, saveChannel } from './channel-service.ts'
import { readChannels } from './channel-store.ts'
import { isWhatsAppLinked, toList } from './status.ts'
import { checkTelegramToken } from './telegram.ts'

const TAG = 'Channels'
const agentRoute = agentRoutesOf(TAG)
const CHANNELS = '/v0/agents/:agentId/channels'
const CHANNEL = `${CHANNELS}/:channel`

/** Messaging channels of an agent (contract 4.3). */
export function channelRoutes({ prisma, encryption, config, agentd, operations }: AgentServices): Route[] {
  const services = { prisma, encryption }
  const operationRoute = agentOperationRoutes(operations, TAG)

  /** The restart that brings a change into the gateway. */
  const restart = (operationId: string, done: string) => ({
    operationId,
    pending: { message: `${done}; the gateway is being restarted` },
    done: () => ({ message: done }),
  })

  return [
    agentRoute({
      method: 'get',
      path: CHANNELS,
      id: 'listChannels',
      summary: 'List channels',
      description:
        'Unconfigured channels are null. Tokens are never shown, except for their last characters.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      success: { description: 'The channels.', body: channelList },
      async handle({ agent }) {
        const stored = await readChannels(prisma, encryption, agent)
        const mayBeLinked = stored.some(({ channel }) => channel === 'whatsapp')
        const linked = mayBeLinked && (await isWhatsAppLinked(agentd, agent))
        return { body: toList(stored, agent.engineVersion, linked) }
      },
    }),
    operationRoute('agent.restart', {
      method: 'post',
      path: CHANNEL,
      id: 'configureChannel',
      summary: 'Configure a channel',
      description:
        '`telegram`, `slack`, `discord` or `whatsapp`. Omitted fields stay unchanged, tokens included. The ' +
        'gateway restarts with the channel, which stays configured if that fails. A Telegram token is ' +
        'refused only if Telegram itself rejects it. 409 for a token that another agent uses.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params: channelPath,
      body: channelBody,
      success: { description: 'The channel is configured.', body: changed },
      pending: { description: 'The gateway is being restarted.' },
      failure: { message: messages.configurationFailed },
      errors: [409],
      async begin({ principal, agent, params, body, idempotencyKey }) {
        requireChannels(principal.plan)
        const channel = requireChannel(params.channel)
        const change = parseChange(channel, body)
        if (channel === 'telegram') await checkTelegramToken(config.BERTH_TELEGRAM_URL, change.botToken)
        const operationId = await saveChannel(services, agent, channel, change, idempotencyKey)
        const done = `Channel ${channel} configured`
        if (operationId === undefined) return { body: { message: done } }
        return restart(operationId, done)
      },
    }),
    operationRoute('agent.restart', {
      method: 'delete',
      path: CHANNEL,
      id: 'removeChannel',
      summary: 'Remove a channel',
      description: 'Also removes its tokens. The gateway restarts; the channel is gone even if that fails.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params: channelPath,
      success: { description: 'The channel is removed.', body: changed },
      pending: { description: 'The gateway is being restarted.' },
      failure: { message: messages.removalFailed },
      async begin({ agent, params }) {
        const channel = requireChannel(params.channel)
        return restart(await removeChannel(services, agent, channel), `Channel ${channel} removed`)
      },
    }),
  ]
}

function requireChannel(name: string): Channel {
  if (isChannel(name)) return name
  throw new ApiError(400, 'unsupported_channel', messages.unsupportedChannel)
}

/** @throws ApiError 400 that names the field. */
function parseChange(channel: Channel, body: Record<string, unknown>): ChannelChange {
  for (const name of REQUIRED_TOKENS[channel]) {
    const value = body[name]
    if (value !== undefined && (typeof value !== 'string' || value.trim() === '')) throw missingToken(name)
  }
  return parseInput(channelChangeOf[channel], body)
}
