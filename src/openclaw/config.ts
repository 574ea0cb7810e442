/**
 * Berth's part of openclaw.json. Owned keys are written at every start of the gateway, whatever is there;
 * default ones only where the key is missing, so that the agent's owner can change them. Everything else is the
 * owner's. agentd merges both into the file; a list counts as one value. Paths are those of the container: agentd
 * turns what begins with /home/node into the real ones where agents are processes.
 */
import { AGENT_ROOT, GATEWAY_PORT } from '../../agentd/protocol.ts'
import type { Config } from '../config.ts'
import { modelFromContainer } from '../lib/net/host-machine.ts'

/** The place of the agent, which decides how it reaches this machine. */
type Runtime = 'docker' | 'kubernetes' | 'process'

type Json = Record<string, unknown>
type ModelSettings = Pick<
  Config,
  'BERTH_MODEL_URL' | 'BERTH_MODEL' | 'BERTH_MODEL_KEY' | 'BERTH_MODEL_CONTEXT'
>

/** The operator's model as agents name it, whichever it is: a change of the setting reaches agents that chose it. */
export const DEFAULT_MODEL = 'berth/default'
/** In the gateway's environment, see {@link modelEnvironment}. */
const KEY_VARIABLE = 'BERTH_MODEL_KEY'
/** Providers cut off what is longer; the engine sends it with each request. */
const MAX_REPLY_TOKENS = 8192
const LOG_BYTES = 10_485_760

/**
 * Keys that agentd and the isolation of agents rely on, and the operator's model.
 * @param channels `channels` and `plugins` of the agent's channels, as `agentChannels` gives them.
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
      // On loopback, behind agentd. As a process, agentd passes another port on the command line.
      port: GATEWAY_PORT,
      bind: 'loopback',
      auth: { mode: 'token', token: agent.gatewayToken, allowTailscale: false },
      // With trusted proxies, a header would decide who counts as loopback.
      trustedProxies: [],
      tailscale: { mode: 'off' },
      tls: { enabled: false },
      // To the engine everybody is local, since agentd is: else no device would ever wait for its owner.
      nodes: { pairing: { autoApproveLocal: false } },
      controlUi: { enabled: false },
      terminal: { enabled: false },
      http: { endpoints: { chatCompletions: { enabled: true }, responses: { enabled: true } } },
    },
    // The version is chosen by a restart with another image.
    update: { checkOnStart: false, auto: { enabled: false } },
    telemetry: { enabled: false },
    discovery: { mdns: { mode: 'off' } },
    // agentd reads the console, line by line; the file is for the engine's own `logs` commands.
    logging: {
      consoleStyle: 'json',
      file: '/home/node/.openclaw/logs/gateway.log',
      maxFileBytes: LOG_BYTES,
    },
    // The image has none.
    browser: { enabled: false },
    models: { catalogRefresh: { enabled: false }, providers: { berth: operatorProvider(config, runtime) } },
    agents: {
      defaults: { workspace: `${AGENT_ROOT}/workspace`, skipBootstrap: true, ...operatorModel(config) },
    },
    skills: { load: { extraDirs: [`${AGENT_ROOT}/skills`] } },
    // The gateway's methods over HTTP, for programs inside of the agent: its own host does not lead there. A list of
    // what is allowed or not could take it, or a channel, away.
    plugins: { enabled: true, allow: null, deny: null, entries: { 'admin-http-rpc': { enabled: true } } },
  }
  return merge(base, channels)
}

/**
 * Default models by the secret that opens them, as in the engine's own setup. OpenAI's is the engine's default anyway.
 */
const MODELS: [secret: string, model: string][] = [
  ['ANTHROPIC_API_KEY', 'anthropic/claude-opus-5'],
  ['GEMINI_API_KEY', 'google/gemini-3.1-pro-preview'],
  ['OPENROUTER_API_KEY', 'openrouter/auto'],
]

/**
 * Defaults of a new agent's config; an agent whose owner removed such a key gets it back.
 * @param env the agent's, with its secrets.
 */
export function defaultConfig({
  config,
  env = {},
}: {
  config: ModelSettings
  env?: Record<string, string>
}): Json {
  const own = 'OPENAI_API_KEY' in env ? undefined : MODELS.find(([secret]) => secret in env)
  const primary = config.BERTH_MODEL_URL ? DEFAULT_MODEL : own?.[1]
  return {
    agents: {
      defaults: {
        ...(primary && { model: { primary } }),
        // A turn every half hour would cost its owner money before they asked for anything.
        heartbeat: { every: '0m' },
      },
    },
    // Nor should memories be gone through every night.
    plugins: { entries: { 'memory-core': { config: { dreaming: { enabled: false } } } } },
  }
}

/**
 * Variables of the gateway's environment that {@link ownedConfig} names: the operator's key is not written to the
 * volume.
 */
export function modelEnvironment({
  BERTH_MODEL_URL,
  BERTH_MODEL_KEY,
}: ModelSettings): Record<string, string> {
  // The engine does not call a provider without a key, and servers that need none take any.
  return BERTH_MODEL_URL ? { [KEY_VARIABLE]: BERTH_MODEL_KEY ?? 'none' } : {}
}

/**
 * Null takes it away again. In containers a model on this machine or at a private address has a name of the egress proxy:
 * the engine calls such addresses directly.
 */
function operatorProvider(config: ModelSettings, runtime: Runtime): Json | null {
  const { BERTH_MODEL_URL: url, BERTH_MODEL: name, BERTH_MODEL_CONTEXT: contextWindow } = config
  if (!url) return null
  const model = {
    id: 'default',
    name,
    reasoning: false,
    input: ['text'],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow,
    maxTokens: Math.min(MAX_REPLY_TOKENS, contextWindow),
  }
  return {
    baseUrl: runtime === 'process' ? url : modelFromContainer(url),
    apiKey: `\${${KEY_VARIABLE}}`,
    // After a refusal the engine would not use an `api-key` for a while, and hide why. Both are sent as bearer tokens.
    auth: 'token',
    api: 'openai-completions',
    models: [model],
  }
}

/** The name under which the operator's server knows the model. */
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

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
