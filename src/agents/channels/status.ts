/** The channels of an agent as clients see them: only the end of each token. */
import { z } from 'zod'
import { messages } from '../../errors.ts'
import type { Agent } from '../agent.ts'
import type { AgentdClient } from '../agentd-client.ts'
import { callEngine } from '../engine-call.ts'
import type { Channel, channelList, TokenName } from './channel-schema.ts'
import type { StoredChannel } from './channel-store.ts'

const HINT_LENGTH = 4
/** Shorter tokens get no hint, because it would reveal too much of them. */
const HINTED_LENGTH = 16

/** @param linked true if a phone is linked for WhatsApp. */
export function toList(
  stored: StoredChannel[],
  version: string,
  linked: boolean,
): z.output<typeof channelList> {
  const find = (name: Channel) => stored.find(({ channel }) => channel === name)
  const [telegram, slack, discord, whatsapp] = [
    find('telegram'),
    find('slack'),
    find('discord'),
    find('whatsapp'),
  ]
  return {
    telegram: telegram ? { ...common(telegram), ...bot(telegram) } : null,
    slack: slack ? { ...common(slack), ...bot(slack), ...app(slack) } : null,
    discord: discord ? { ...common(discord), ...bot(discord) } : null,
    whatsapp: whatsapp ? { ...common(whatsapp), linked } : null,
    version,
  }
}

const common = ({ settings }: StoredChannel) => ({ configured: true, ...settings })
const bot = (stored: StoredChannel) => ({
  botTokenSet: has(stored, 'botToken'),
  botTokenHint: hint(stored, 'botToken'),
})
const app = (stored: StoredChannel) => ({
  appTokenSet: has(stored, 'appToken'),
  appTokenHint: hint(stored, 'appToken'),
})

const has = ({ tokens }: StoredChannel, name: TokenName): boolean => tokens?.[name] !== undefined

function hint({ tokens }: StoredChannel, name: TokenName): string | null {
  const token = tokens?.[name]
  if (token === undefined) return null
  return `****${token.length < HINTED_LENGTH ? '' : token.slice(-HINT_LENGTH)}`
}

const engineStatus = z.looseObject({
  channels: z.looseObject({ whatsapp: z.looseObject({ linked: z.boolean().optional() }).optional() }),
})

/** True if the engine has a linked phone for WhatsApp; false while the engine does not run. */
export async function isWhatsAppLinked(agentd: AgentdClient, agent: Agent): Promise<boolean> {
  const failure = messages.cliError
  const call = { method: 'channels.status', shape: engineStatus, failure }
  const status = await callEngine(agentd, agent, call).catch(() => undefined)
  return status?.channels.whatsapp?.linked ?? false
}
