/**
 * The engine's model providers. Berth's own providers lead to the model gateway with the agent's virtual key: the operator's
 * model, providers whose keys are attached to the agent as secrets, and the local model that its owner chose.
 */
import type { Json } from '../../agentd/json.ts'
import { GATEWAY_MARK } from '../../agentd/protocol.ts'
import type { Config } from '../config.ts'
import type { LocalModel } from '../lib/net/local-models.ts'
import { isLocalUrl } from '../lib/net/local-url.ts'
import { gatewayPath, LOCAL_PROVIDER, MODEL_PROVIDERS, OPERATOR_PROVIDER } from '../model-providers.ts'

export type ModelSettings = Pick<Config, 'BERTH_MODEL_URL' | 'BERTH_MODEL_CONTEXT'> &
  Partial<Pick<Config, 'BERTH_MODEL_FALLBACK_URL'>>

/** How an agent's next run reaches models. */
export interface ModelAccess {
  /** The gateway's URL in the sandbox, without a trailing slash. */
  url: string
  /** The agent's virtual key. */
  key: string
}

/**
 * The agents' name for the operator's model. It never changes, so a change of the setting reaches agents that chose it.
 */
export const DEFAULT_MODEL = `${OPERATOR_PROVIDER}/default`
/** The virtual key in the gateway's environment, so that the key is not written to the volume. */
const KEY_VARIABLE = 'BERTH_MODEL_KEY'
/** Where the agent's programs reach the operator's model with that key. */
const URL_VARIABLE = 'BERTH_MODEL_URL'
/** The longest reply. The engine sends it with each request, and a budget reserves its price until the reply ends. */
const MAX_REPLY_TOKENS = 16_384
/** Most local servers cut off longer replies. */
const MAX_LOCAL_REPLY_TOKENS = 8192
/** By default the engine gives up after two minutes without an event. A model may think longer than that. */
const SILENCE_SECONDS = 600

const OPERATOR = { id: OPERATOR_PROVIDER, dialect: 'openai' } as const

/** Providers whose keys are among the agent's secrets. */
const providersOf = (secrets: Record<string, string>) =>
  MODEL_PROVIDERS.filter((provider) => provider.secrets.some((name) => name in secrets))

/**
 * The variables of the agent's environment for models. A provider's key becomes the virtual key, which its libraries
 * send to the gateway. A secret named like a URL variable takes precedence over Berth's.
 * @param secrets the agent's secrets, by name.
 */
export function modelEnvironment(options: {
  config: ModelSettings
  access: ModelAccess
  secrets: Record<string, string>
}): Record<string, string> {
  const { config, secrets } = options
  const { url, key } = options.access
  const env: Record<string, string> = { [KEY_VARIABLE]: key }
  if (config.BERTH_MODEL_URL) env[URL_VARIABLE] = `${url}${gatewayPath(OPERATOR)}`
  for (const provider of providersOf(secrets)) {
    for (const name of provider.secrets) if (name in secrets) env[name] = key
    for (const name of provider.urlVariables)
      if (!(name in secrets)) env[name] = `${url}${gatewayPath(provider)}`
  }
  return env
}

/**
 * `models.providers` of the owned configuration. Null removes the operator's provider if there is none; other providers
 * that lead to the gateway are removed by agentd.
 */
export function ownedProviders(options: {
  config: ModelSettings
  access: ModelAccess
  secrets: Record<string, string>
  localModel: LocalModel | null
}): Json {
  const { config, access, secrets, localModel } = options
  const known = providersOf(secrets).map((provider) => {
    const isGoogle = provider.dialect === 'google'
    const path = gatewayPath(provider) + (isGoogle ? '/v1beta' : '')
    return [
      provider.id,
      { ...throughGateway(access, path), ...(isGoogle && { api: 'google-generative-ai' }) },
    ]
  })
  return {
    ...Object.fromEntries(known),
    ...(localModel && { [LOCAL_PROVIDER]: ownGateway(access, LOCAL_PROVIDER) }),
    [OPERATOR_PROVIDER]: config.BERTH_MODEL_URL
      ? {
          ...ownGateway(access, OPERATOR_PROVIDER),
          models: [modelOf(config, 'default', isOfLocalServer(config))],
        }
      : null,
  }
}

/** `agents.defaults` of the owned configuration. */
export function ownedDefaults(config: ModelSettings): Json {
  if (!config.BERTH_MODEL_URL) return {}
  // Until 0.3.0, `extra_body` named the model at the operator's server. Now the gateway does.
  const params = { maxTokens: maxReplyOf(config), extra_body: null }
  return { models: { [DEFAULT_MODEL]: { params } } }
}

/** Default models by the secret that enables them, as in the engine's own setup. */
const MODELS: [secret: string, model: string | undefined][] = [
  // The engine's own default is OpenAI's.
  ['OPENAI_API_KEY', undefined],
  ['ANTHROPIC_API_KEY', 'anthropic/claude-opus-5'],
  ['GEMINI_API_KEY', 'google/gemini-3.1-pro-preview'],
  ['OPENROUTER_API_KEY', 'openrouter/auto'],
]

/**
 * `models` and `agents.defaults` of the default configuration.
 * @param localModel takes precedence over the secrets, and these over the operator's model: `npm start` may just have
 *   found that on its machine.
 */
export function defaultModels(options: {
  config: ModelSettings
  secrets: Record<string, string>
  localModel: LocalModel | null
}): { models: Json; defaults: Json } {
  const { config, secrets, localModel } = options
  const own = MODELS.find(([secret]) => secret in secrets)
  const ofInstance = config.BERTH_MODEL_URL ? DEFAULT_MODEL : undefined
  const primary = localModel ? `${LOCAL_PROVIDER}/${localModel.model}` : own ? own[1] : ofInstance
  // The engine takes a provider's list of models from its own catalogue, but requires the key.
  const known = providersOf(secrets).map(({ id }) => [id, { models: [] }])
  const local = localModel && { [LOCAL_PROVIDER]: { models: [modelOf(config, localModel.model, true)] } }
  return {
    models: { providers: { ...Object.fromEntries(known), ...local } },
    defaults: {
      ...(primary && { model: { primary } }),
      params: { maxTokens: MAX_REPLY_TOKENS },
    },
  }
}

const throughGateway = ({ url }: ModelAccess, path: string): Json => ({
  baseUrl: `${url}${path}`,
  headers: { [GATEWAY_MARK]: '1' },
  timeoutSeconds: SILENCE_SECONDS,
})

/** A provider that the engine does not know. */
const ownGateway = (access: ModelAccess, id: string): Json => ({
  ...throughGateway(access, gatewayPath({ id, dialect: 'openai' })),
  apiKey: `\${${KEY_VARIABLE}}`,
  // After a refusal the engine would disable an `api-key` for a while and hide the reason. Both kinds are sent as bearer
  // tokens.
  auth: 'token',
  api: 'openai-completions',
})

/** True if the operator's model is on a local server. A fallback elsewhere gets the same requests. */
const isOfLocalServer = ({ BERTH_MODEL_URL: url, BERTH_MODEL_FALLBACK_URL: fallback }: ModelSettings) =>
  url !== undefined && isLocalUrl(url) && !fallback

const modelOf = (config: ModelSettings, id: string, isLocal: boolean): Json => ({
  id,
  name: id,
  reasoning: false,
  input: ['text'],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: config.BERTH_MODEL_CONTEXT,
  maxTokens: maxReplyOf(config),
  compat: {
    // Names the conversation or task, so that Berth can show its spending.
    sendSessionAffinityHeaders: true,
    // Ollama ignores `max_completion_tokens`, and would write without end; OpenAI's models take nothing else.
    ...(isLocal && { maxTokensField: 'max_tokens' }),
  },
})

const maxReplyOf = ({ BERTH_MODEL_CONTEXT }: ModelSettings) =>
  Math.min(MAX_LOCAL_REPLY_TOKENS, BERTH_MODEL_CONTEXT)
