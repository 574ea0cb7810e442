/** The channels that an agent may have, and what each needs. */
import { api, unwrap } from '../../../api/client.ts'

export const CHANNELS = ['telegram', 'slack', 'discord', 'whatsapp'] as const
export type ChannelName = (typeof CHANNELS)[number]
export const TOKENS: Record<ChannelName, ('botToken' | 'appToken')[]> = {
  telegram: ['botToken'],
  slack: ['botToken', 'appToken'],
  discord: ['botToken'],
  whatsapp: [],
}
export const POLICIES = ['pairing', 'allowlist', 'open', 'disabled'] as const
export type Policy = (typeof POLICIES)[number]

/** What is known of a channel; its tokens are never shown, but for the end of each. */
export interface Channel {
  enabled: boolean
  dmPolicy: string
  allowFrom: string[]
  botTokenHint?: string | null
  appTokenHint?: string | null
  /** Of WhatsApp alone: whether a phone is linked. */
  linked?: boolean
}

export const readChannels = async (agentId: string): Promise<Record<ChannelName, Channel | null>> =>
  unwrap(api.GET('/v0/agents/{agentId}/channels', { params: { path: { agentId } } }))
