import { z } from 'zod'
import { engineVersion, like, withExample } from '../../http/fields.ts'

export const CHANNELS = ['telegram', 'slack', 'discord', 'whatsapp'] as const
export type Channel = (typeof CHANNELS)[number]

export const isChannel = (name: string): name is Channel => (CHANNELS as readonly string[]).includes(name)

const TOKEN = /^[\x21-\x7e]{1,512}$/
const token = (message: string, shape: RegExp) =>
  z.string('must be a string').regex(TOKEN, 'must be 1 to 512 visible ASCII characters').regex(shape, message)

const tokens = {
  telegram: { botToken: token('must look like 123456789:AA…, as BotFather issues it', /^\d+:[\w-]+$/) },
  slack: {
    botToken: token('must start with xoxb-', /^xoxb-./),
    appToken: token('must start with xapp-', /^xapp-./),
  },
  discord: { botToken: token('must be a token', TOKEN) },
  whatsapp: {},
}
/** The tokens that a channel requires. */
export type TokenName = 'botToken' | 'appToken'
export const REQUIRED_TOKENS: Record<Channel, readonly TokenName[]> = {
  telegram: ['botToken'],
  slack: ['botToken', 'appToken'],
  discord: ['botToken'],
  whatsapp: [],
}

const common = {
  enabled: z.boolean().optional(),
  dmPolicy: z
    .enum(['open', 'pairing', 'allowlist', 'disabled', 'closed'])
    .optional()
    .describe('Who may write to the agent; `closed` is an older name for `allowlist`.'),
  allowFrom: z
    .array(
      z
        .union([z.string().meta({ format: 'sender' }), z.number().int()])
        .transform(String)
        .pipe(
          z
            .string()
            .trim()
            .min(1)
            .max(100)
            .regex(/^[^\p{Cc}]*$/u),
        ),
    )
    .max(1000)
    .optional()
    .describe('Allowed senders, in the channel’s own format: numeric ids for Telegram.'),
  skipRestart: z.boolean().optional().describe('Saves the change without restarting the gateway.'),
}

const shape = (channel: Channel) => z.object({ ...tokens[channel], ...common }).partial()
/** The body of each channel's `POST`. */
export const channelChangeOf: Record<Channel, z.ZodType<ChannelChange>> = {
  telegram: shape('telegram'),
  slack: shape('slack'),
  discord: shape('discord'),
  whatsapp: shape('whatsapp'),
}
export type ChannelChange = z.output<z.ZodObject<typeof common>> &
  Partial<Record<TokenName, string | undefined>>

/** The settings of a channel, without its tokens. */
export interface Settings {
  enabled: boolean
  dmPolicy: 'open' | 'pairing' | 'allowlist' | 'disabled' | 'closed'
  allowFrom: string[]
}
export const DEFAULTS: Settings = { enabled: true, dmPolicy: 'pairing', allowFrom: [] }

/** For the OpenAPI document: which fields apply depends on the channel, see {@link channelChangeOf}. */
export const channelBody = z
  .looseObject({
    botToken: z.unknown().optional().describe('Telegram, Slack (`xoxb-`), Discord. Unchanged if omitted.'),
    appToken: z.unknown().optional().describe('Slack (`xapp-`). Unchanged if omitted.'),
    ...common,
  })
  .meta({ examples: [{ botToken: '123456789:AAHf…', dmPolicy: 'pairing', allowFrom: ['603767951'] }] })
  .optional()
  .transform((body) => body ?? {})

export const channelPath = z.object({ agentId: z.string(), channel: z.string() })

const status = z.object({
  configured: like(true),
  enabled: like(true),
  dmPolicy: like('pairing'),
  allowFrom: withExample(z.array(z.string()), ['603767951']),
})
const bot = status.extend({ botTokenSet: z.boolean(), botTokenHint: z.string().nullable() })

export const channelList = z.object({
  telegram: bot.nullable(),
  slack: bot.extend({ appTokenSet: z.boolean(), appTokenHint: z.string().nullable() }).nullable(),
  discord: bot.nullable(),
  whatsapp: status.extend({ linked: z.boolean().describe('Whether a phone is linked.') }).nullable(),
  version: engineVersion.describe('Version of the engine.'),
})

export const changed = z.object({ message: like('Channel telegram changed') })
