/**
 * Berth's part of openclaw.json. Every start of the gateway overwrites owned keys, and adds default keys only if they
 * are missing, so that the agent's owner can change them. Everything else belongs to the owner. agentd merges both into
 * the file; a list counts as one value. Paths are container paths: for agents that are processes, agentd rewrites paths
 * below /home/node to the real ones.
 */
import { isObject, type Json } from '../../agentd/json.ts'
import { AGENT_ROOT, GATEWAY_PORT } from '../../agentd/protocol.ts'
import type { Config } from '../config.ts'
import { modelFromContainer } from '../lib/net/host-machine.ts'
import { LOCAL_SERVERS, type LocalModel } from '../lib/net/local-models.ts'

/** Where the agent runs, which decides how it reaches this machine. */
type Runtime = 'docker' | 'kubernetes' | 'process'

type ModelSettings = Pick<
  Config,
  'BERTH_MODEL_URL' | 'BERTH_MODEL' | 'BERTH_MODEL_KEY' | 'BERTH_MODEL_CONTEXT'
>

/**
 * The agents' name for the operator's model. It never changes, so a change of the setting reaches agents that chose it.
 */
export const DEFAULT_MODEL = 'berth/default'
/** The provider name of an agent's own {@link LocalModel}. */
const LOCAL_PROVIDER = 'local'
/** Set in the gateway's environment, see {@link modelEnvironment}. */
const KEY_VARIABLE = 'BERTH_MODEL_KEY'
/** Providers cut off longer replies; the engine sends the limit with each request. */
const MAX_REPLY_TOKENS = 8192
const LOG_BYTES = 10_485_760

/**
 * Keys that agentd and the agents' isolation rely on, and the operator's model.
 * @param channels `channels` and `plugins` of the agent's channels, as `agentChannels` returns them.
 */
export function ownedConfig({
  config,
  runtime,
  agent,
  channels,
}: {
  config: ModelSettings
  runtime: Runtime
  agent: { gatewayToken: string }
  channels: Json
}): Json {
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
    models: { catalogRefresh: { enabled: false }, providers: { berth: operatorProvider(config, runtime) } },
    agents: {
      defaults: { workspace: `${AGENT_ROOT}/workspace`, skipBootstrap: true, ...operatorModel(config) },
    },
    skills: { load: { extraDirs: [`${AGENT_ROOT}/skills`] } },
    // Offers the gateway's methods over HTTP to programs inside the agent; the agent's own host does not expose them.
    // An allow or deny list could disable this plugin or a channel.
    plugins: { enabled: true, allow: null, deny: null, entries: { 'admin-http-rpc': { enabled: true } } },
  }
  return merge(base, channels)
}

/**
 * Default models by the secret that enables them, as in the engine's own setup. OpenAI's model is the engine's default
 * anyway.
 */
const MODELS: [secret: string, model: string][] = [
  ['ANTHROPIC_API_KEY', 'anthropic/claude-opus-5'],
  ['GEMINI_API_KEY', 'google/gemini-3.1-pro-preview'],
  ['OPENROUTER_API_KEY', 'openrouter/auto'],
]

/**
 * Defaults for a new agent's config. If the owner removes such a key, the next start adds it again.
 * @param env the agent's environment, with its secrets.
 * @param localModel the model that the owner chose for this agent; it takes precedence over the operator's.
 */
export function defaultConfig({
  config,
  env = {},
  localModel,
}: {
  config: ModelSettings
  env?: Record<string, string>
  localModel?: LocalModel | null
}): Json {
  const own = 'OPENAI_API_KEY' in env ? undefined : MODELS.find(([secret]) => secret in env)
  const ofInstance = config.BERTH_MODEL_URL ? DEFAULT_MODEL : own?.[1]
  const primary = localModel ? `${LOCAL_PROVIDER}/${localModel.model}` : ofInstance
  return {
    ...(localModel && { models: { providers: { [LOCAL_PROVIDER]: localProvider(config, localModel) } } }),
    agents: {
      defaults: {
        ...(primary && { model: { primary } }),
        // A turn every half hour would cost the owner money before they asked for anything.
        heartbeat: { every: '0m' },
      },
    },
    // Nightly passes over memories would, too.
    plugins: { entries: { 'memory-core': { config: { dreaming: { enabled: false } } } } },
  }
}

/**
 * Variables of the gateway's environment that {@link ownedConfig} refers to, so that the operator's key is not written
 * to the volume.
 */
export function modelEnvironment({
  BERTH_MODEL_URL,
  BERTH_MODEL_KEY,
}: ModelSettings): Record<string, string> {
  // The engine does not call a provider without a key; servers that need no key accept any.
  return BERTH_MODEL_URL ? { [KEY_VARIABLE]: BERTH_MODEL_KEY ?? 'none' } : {}
}

/**
 * Null removes the provider. In containers, a model on this machine or at a private address gets a name of the egress
 * proxy, because the engine calls such addresses directly.
 */
function operatorProvider(config: ModelSettings, runtime: Runtime): Json | null {
  const { BERTH_MODEL_URL: url, BERTH_MODEL: name } = config
  if (!url) return null
  const baseUrl = runtime === 'process' ? url : modelFromContainer(url)
  return openAiProvider(config, { baseUrl, apiKey: `\${${KEY_VARIABLE}}`, id: 'default', name })
}

/** Only processes can reach it, over the shared loopback. It needs no key, but the engine requires one. */
const localProvider = (config: ModelSettings, { server, model }: LocalModel): Json =>
  openAiProvider(config, { ...LOCAL_SERVERS[server], apiKey: 'none', id: model, name: model })

function openAiProvider(
  { BERTH_MODEL_CONTEXT: contextWindow }: ModelSettings,
  { baseUrl, apiKey, id, name }: { baseUrl: string; apiKey: string; id: string; name: string },
): Json {
  const model = {
    id,
    name,
    reasoning: false,
    input: ['text'],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow,
    maxTokens: Math.min(MAX_REPLY_TOKENS, contextWindow),
  }
  return {
    baseUrl,
    apiKey,
    // After a refusal the engine would disable an `api-key` for a while and hide the reason. Both kinds are sent as
    // bearer tokens.
    auth: 'token',
    api: 'openai-completions',
    models: [model],
  }
}

/** Maps the default model to the operator's server's name for it. */
function operatorModel({ BERTH_MODEL_URL, BERTH_MODEL }: ModelSettings): Json {
  if (!BERTH_MODEL_URL) return {}
  return { models: { [DEFAULT_MODEL]: { params: { extra_body: { model: BERTH_MODEL } } } } }
}

function merge(base: Json, more: Json): Json {
  const merged = { ...base }
  for (const [key, value] of Object.entries(more)) {
    const there = merged[key]
    merged[key] = isObject(there) && isObject(value) ? merge(there, value) : value
  }
  return merged
}
