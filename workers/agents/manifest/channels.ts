import { isDeepStrictEqual } from 'node:util'
import type { Manifest, ManifestChannel } from '../../../agentd/manifest-check.ts'
import {
  CHANNELS,
  type Channel,
  type ChannelChange,
  channelChangeOf,
  checkTelegramToken,
  mergeChannel,
  readChannels,
  requireChannels,
  saveChannel,
} from '../../../src/agents/channels/index.ts'
import { isReadable } from '../../../src/agents/secrets/attachments.ts'
import { badRequest } from '../../../src/errors.ts'
import { describeIssue } from '../../../src/http/shapes.ts'
import { type Applying, type PartResult, problemOf } from './part.ts'

const TOKENS = ['botToken', 'appToken'] as const

/**
 * Sets up the channels of a manifest, with tokens from secrets that are attached to the agent. Omitted fields, and
 * channels that the manifest does not name, stay unchanged.
 */
export async function applyChannels(
  applying: Applying,
  wanted: NonNullable<Manifest['channels']>,
): Promise<PartResult> {
  const { services, agent } = applying
  const { prisma, encryption } = services
  const { plan } = await prisma.workspace.findUniqueOrThrow({
    where: { id: agent.workspaceId },
    select: { plan: { select: { channels: true } } },
  })
  requireChannels(plan)
  const stored = await readChannels(prisma, encryption, agent)
  const problems: string[] = []
  for (const channel of CHANNELS) {
    const entry = wanted[channel]
    if (!entry) continue
    try {
      const change = await toChange(applying, channel, entry)
      const known = stored.find((one) => one.channel === channel)
      if (isDeepStrictEqual(mergeChannel(channel, known, change), known)) continue
      if (channel === 'telegram')
        await checkTelegramToken(services.config.BERTH_TELEGRAM_URL, change.botToken)
      // One transaction saves the channel and enqueues the restart that loads it, which follows this operation. Another
      // attempt finds nothing to do.
      await saveChannel(services, agent, channel, { ...change, skipRestart: false }, undefined)
    } catch (error) {
      problems.push(`.${channel}: ${problemOf(error)}`)
    }
  }
  return { problems }
}

/** @throws ApiError 400 for a secret that is not attached or not the agent's to read, and for a value that is not a token. */
async function toChange(
  applying: Applying,
  channel: Channel,
  { enabled, dmPolicy, allowFrom, ...tokens }: ManifestChannel,
): Promise<ChannelChange> {
  const given: Record<string, string> = {}
  for (const name of TOKENS) {
    const source = tokens[name]?.replace(/^env:/, '')
    if (source !== undefined) given[name] = await readSecret(applying, name, source)
  }
  const parsed = channelChangeOf[channel].safeParse({ enabled, dmPolicy, allowFrom, ...given })
  if (parsed.success) return parsed.data
  throw badRequest(describeIssue(parsed.error))
}

async function readSecret({ services, agent }: Applying, field: string, name: string): Promise<string> {
  const attached = { name, agents: { some: { agentId: agent.id } } }
  const secret = await services.prisma.secret.findFirst({ where: attached })
  if (!secret) throw badRequest(`${field}: the secret ${name} is not attached to the agent`)
  // Tokens are in the engine's configuration, which the agent reads; and the agent may push a manifest.
  if (!isReadable(secret)) throw badRequest(`${field}: the value of ${name} stays outside of the agent`)
  try {
    return services.encryption.decrypt(agent.workspaceId, secret.id, secret.ciphertext)
  } catch {
    throw badRequest(`${field}: SECRETS_KEY does not open ${name}`)
  }
}
