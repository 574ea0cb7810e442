/** What an agent's gateway is started with for its channels. */
import type { Queryable } from '../../db/pool.ts'
import type { Sealer } from '../../sealer.ts'
import type { Agent } from '../agent.ts'
import { CHANNELS, type Channel } from './schema.ts'
import { readChannels, type StoredChannel } from './store.ts'

/** Telegram comes with the engine; the plugins of the others have its version. */
const BUNDLED: readonly Channel[] = ['telegram']

export interface AgentChannels {
  /** Operator-owned parts of openclaw.json; null takes a key away. */
  config: {
    channels: Record<Channel, Record<string, unknown> | null>
    plugins: { entries: Record<Channel, { enabled: true } | null> }
  }
  /** npm specs to install. */
  plugins: string[]
}

/**
 * The channels of an agent as its engine wants them. One that is not configured, or is switched off, leaves neither
 * a token nor a plugin behind. One whose tokens no longer open is left out as well: the agent is of use without it.
 */
export async function agentChannels(
  db: Queryable,
  sealer: Sealer,
  agent: Pick<Agent, 'id' | 'workspaceId' | 'engineVersion'>,
): Promise<AgentChannels> {
  const stored = await readChannels(db, sealer, agent)
  const active = stored.filter(({ settings, tokens }) => settings.enabled && tokens !== null)
  const names = active.map(({ channel }) => channel)
  const each = <T>(value: (channel: Channel) => T) =>
    Object.fromEntries(CHANNELS.map((channel) => [channel, value(channel)])) as Record<Channel, T>
  return {
    config: {
      channels: each((name) => engineConfig(active.find(({ channel }) => channel === name))),
      plugins: { entries: each((name) => (names.includes(name) ? { enabled: true } : null)) },
    },
    plugins: names
      .filter((name) => !BUNDLED.includes(name))
      .map((name) => `@openclaw/${name}@${agent.engineVersion}`),
  }
}

function engineConfig(stored: StoredChannel | undefined): Record<string, unknown> | null {
  if (!stored) return null
  const { channel, settings, tokens } = stored
  const { botToken, appToken } = tokens ?? {}
  const common = { enabled: true, ...admission(settings) }
  if (channel === 'discord') return { ...common, token: botToken }
  if (channel === 'slack') return { ...common, mode: 'socket', botToken, appToken }
  return { ...common, ...(botToken && { botToken }) }
}

/** The engine does not start with `open` that is not for all, or with an `allowlist` of nobody. */
function admission({ dmPolicy, allowFrom }: StoredChannel['settings']) {
  if (dmPolicy === 'open') return { dmPolicy, allowFrom: [...new Set([...allowFrom, '*'])] }
  const isList = dmPolicy === 'allowlist' || dmPolicy === 'closed'
  if (!isList) return { dmPolicy, allowFrom }
  return allowFrom.length > 0 ? { dmPolicy: 'allowlist', allowFrom } : { dmPolicy: 'disabled', allowFrom }
}
