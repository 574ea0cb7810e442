/**
 * Berth's part of openclaw.json. Every start of the gateway overwrites owned keys, and adds default keys only if they
 * are missing, so that the agent's owner can change them. Everything else belongs to the owner. agentd merges both into
 * the file; a list counts as one value. Paths are container paths: for agents that are processes, agentd rewrites paths
 * below /home/node to the real ones.
 */
import { isObject, type Json } from '../../agentd/json.ts'
import { AGENT_ROOT, GATEWAY_PORT } from '../../agentd/protocol.ts'
import type { LocalModel } from '../lib/net/local-models.ts'
import {
  defaultModels,
  type ModelAccess,
  type ModelSettings,
  ownedDefaults,
  ownedProviders,
} from './models.ts'

const LOG_BYTES = 10_485_760

/** The options of both parts of the configuration. */
interface ModelOptions {
  config: ModelSettings
  /** The agent's secrets, by name. */
  secrets: Record<string, string>
  /** The model that the owner chose for this agent. */
  localModel: LocalModel | null
}

/**
 * Keys that agentd and the agents' isolation rely on, and the providers that lead to the model gateway.
 * @param channels `channels` and `plugins` of the agent's channels, as `agentChannels` returns them.
 */
export function ownedConfig({
  agent,
  channels,
  ...options
}: ModelOptions & { agent: { gatewayToken: string }; access: ModelAccess; channels: Json }): Json {
  const base: Json = {
    gateway: {
      mode: 'local',
      // On loopback, behind agentd. For process agents, agentd passes another port on the command line.
      port: GATEWAY_PORT,
      bind: 'loopback',
      auth: { mode: 'token', token: agent.gatewayToken, allowTailscale: false },
      // With trusted proxies, a header would decide which clients count as loopback.
      trustedProxies: [],
      tailscale: { mode: 'off' },
      tls: { enabled: false },
      // agentd makes every client look local to the engine. Automatic approval would then let devices in without their
      // owner.
      nodes: { pairing: { autoApproveLocal: false } },
      controlUi: { enabled: false },
      terminal: { enabled: false },
      http: { endpoints: { chatCompletions: { enabled: true }, responses: { enabled: true } } },
    },
    // To change the version, an agent restarts with another image.
    update: { checkOnStart: false, auto: { enabled: false } },
    telemetry: { enabled: false },
    discovery: { mdns: { mode: 'off' } },
    // agentd reads the console line by line; the file serves the engine's own `logs` commands.
    logging: {
      consoleStyle: 'json',
      file: '/home/node/.openclaw/logs/gateway.log',
      maxFileBytes: LOG_BYTES,
    },
    // The image contains no browser.
    browser: { enabled: false },
    models: { catalogRefresh: { enabled: false }, providers: ownedProviders(options) },
    agents: {
      defaults: {
        workspace: `${AGENT_ROOT}/workspace`,
        skipBootstrap: true,
        ...ownedDefaults(options.config),
      },
    },
    skills: { load: { extraDirs: [`${AGENT_ROOT}/skills`] } },
    // Offers the gateway's methods over HTTP to programs inside the agent; the agent's own host does not expose them.
    // An allow or deny list could disable this plugin or a channel.
    plugins: { enabled: true, allow: null, deny: null, entries: { 'admin-http-rpc': { enabled: true } } },
  }
  return merge(base, channels)
}

/** Defaults for a new agent's config. If the owner removes such a key, the next start adds it again. */
export function defaultConfig(options: ModelOptions): Json {
  const { models, defaults } = defaultModels(options)
  return {
    models,
    agents: {
      defaults: {
        ...defaults,
        // A turn every half hour would cost the owner money before they asked for anything.
        heartbeat: { every: '0m' },
      },
    },
    // Nightly passes over memories would, too.
    plugins: { entries: { 'memory-core': { config: { dreaming: { enabled: false } } } } },
  }
}

function merge(base: Json, more: Json): Json {
  const merged = { ...base }
  for (const [key, value] of Object.entries(more)) {
    const there = merged[key]
    merged[key] = isObject(there) && isObject(value) ? merge(there, value) : value
  }
  return merged
}
