/** The channels that an agent may have, and the tokens that each needs. */
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

/** A channel as the API returns it, with only the end of each token. */
export interface Channel {
  enabled: boolean
  dmPolicy: string
  allowFrom: string[]
  botTokenHint?: string | null
  appTokenHint?: string | null
  /** True if a phone is linked. Only WhatsApp has this field. */
  linked?: boolean
}

export const readChannels = async (agentId: string): Promise<Record<ChannelName, Channel | null>> =>
  unwrap(api.GET('/v0/agents/{agentId}/channels', { params: { path: { agentId } } }))
