import { ApiError, badRequest, messages } from '../../errors.ts'
import type { Route } from '../../http/route.ts'
import { describeIssue } from '../../http/shapes.ts'
import type { Asked } from '../../operations/operations.ts'
import { type AgentServices, agentRoute, pending, requireSuccess } from '../agent-route.ts'
import {
  type Channel,
  type ChannelChange,
  changed,
  changing,
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
const CHANNELS = '/v0/agents/:agentId/channels'
const CHANNEL = `${CHANNELS}/:channel`

/** Messaging channels of an agent (contract 4.3). */
export function channelRoutes({ prisma, encryption, config, agentd, operations }: AgentServices): Route[] {
  const services = { prisma, encryption }

  /** Waits for the restart; `failure` is the contract's message if it fails, `done` describes the change. */
  async function restarted(operationId: string, failure: string, done: string, asked: Asked) {
    const started = await operations.started('agent.restart', operationId, asked)
    const { headers } = started
    if (requireSuccess(started, { message: failure }))
      return { headers, body: { success: true, message: done } }
    const message = `${done}; the gateway is being restarted`
    return { status: 202, headers, body: { success: true, message, ...pending(started) } }
  }

  return [
    agentRoute({
      method: 'get',
      path: CHANNELS,
      id: 'listChannels',
      tag: TAG,
      summary: 'List channels',
      description:
        'Unconfigured channels are null. Tokens are never shown, except for their last characters.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      success: { status: 200, description: 'The channels.', body: channelList },
      async handle({ agent }) {
        const stored = await readChannels(prisma, encryption, agent)
        const mayBeLinked = stored.some(({ channel }) => channel === 'whatsapp')
        const linked = mayBeLinked && (await isWhatsAppLinked(agentd, agent))
        return { body: toList(stored, agent.engineVersion, linked) }
      },
    }),
    agentRoute({
      method: 'post',
      path: CHANNEL,
      id: 'configureChannel',
      tag: TAG,
      summary: 'Configure a channel',
      description:
        '`telegram`, `slack`, `discord` or `whatsapp`. Omitted fields stay unchanged, tokens included. The ' +
        'gateway restarts with the channel, which stays configured if that fails. A Telegram token is ' +
        'refused only if Telegram itself rejects it. 409 for a token that another agent uses.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params: channelPath,
      body: channelBody,
      success: { status: 200, description: 'The channel is configured.', body: changed },
      otherSuccess: { status: 202, description: 'The gateway is being restarted.', body: changing },
      errors: [409],
      operation: true,
      async handle({ agent, params, body, idempotencyKey, ...asked }) {
        requireChannels(asked.principal.plan)
        const channel = requireChannel(params.channel)
        const change = parseChange(channel, body)
        if (channel === 'telegram') await checkTelegramToken(config.BERTH_TELEGRAM_URL, change.botToken)
        const operationId = await saveChannel(services, agent, channel, change, idempotencyKey)
        const done = `Channel ${channel} configured`
        if (operationId === undefined) return { body: { success: true, message: done } }
        return restarted(operationId, messages.configurationFailed, done, asked)
      },
    }),
    agentRoute({
      method: 'delete',
      path: CHANNEL,
      id: 'removeChannel',
      tag: TAG,
      summary: 'Remove a channel',
      description: 'Also removes its tokens. The gateway restarts; the channel is gone even if that fails.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params: channelPath,
      success: { status: 200, description: 'The channel is removed.', body: changed },
      otherSuccess: { status: 202, description: 'The gateway is being restarted.', body: changing },
      operation: true,
      async handle({ agent, params, ...asked }) {
        const channel = requireChannel(params.channel)
        const operationId = await removeChannel(services, agent, channel)
        return restarted(operationId, messages.removalFailed, `Channel ${channel} removed`, asked)
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
  const parsed = channelChangeOf[channel].safeParse(body)
  if (parsed.success) return parsed.data
  throw badRequest(describeIssue(parsed.error))
}
