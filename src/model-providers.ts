/**
 * Model providers whose keys never enter a sandbox. If an agent has a secret with one of these names, it gets a virtual
 * key under that name, and the model gateway inserts the real one.
 */

/** The wire formats that the model gateway passes on, unchanged. */
export type Dialect = 'openai' | 'anthropic' | 'google'

export interface ModelProvider {
  /** The engine's name for it, and the first segment of its paths on the gateway. */
  id: string
  dialect: Dialect
  /** Names of secrets with its key; the first that is attached counts. */
  secrets: readonly string[]
  /** The URL in front of the dialect's paths. */
  baseUrl: string
  /** Variables with which the provider's own libraries find it. */
  urlVariables: readonly string[]
}

export const MODEL_PROVIDERS: readonly ModelProvider[] = [
  {
    id: 'openai',
    dialect: 'openai',
    secrets: ['OPENAI_API_KEY'],
    baseUrl: 'https://api.openai.com/v1',
    urlVariables: ['OPENAI_BASE_URL'],
  },
  {
    id: 'anthropic',
    dialect: 'anthropic',
    secrets: ['ANTHROPIC_API_KEY'],
    baseUrl: 'https://api.anthropic.com',
    urlVariables: ['ANTHROPIC_BASE_URL'],
  },
  {
    id: 'google',
    dialect: 'google',
    secrets: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    baseUrl: 'https://generativelanguage.googleapis.com',
    urlVariables: ['GOOGLE_GEMINI_BASE_URL'],
  },
  {
    id: 'openrouter',
    dialect: 'openai',
    secrets: ['OPENROUTER_API_KEY'],
    baseUrl: 'https://openrouter.ai/api/v1',
    urlVariables: [],
  },
  {
    id: 'xai',
    dialect: 'openai',
    secrets: ['XAI_API_KEY'],
    baseUrl: 'https://api.x.ai/v1',
    urlVariables: [],
  },
  {
    id: 'together',
    dialect: 'openai',
    secrets: ['TOGETHER_API_KEY'],
    baseUrl: 'https://api.together.xyz/v1',
    urlVariables: ['TOGETHER_BASE_URL'],
  },
]

/** The name of the secret that is the LLM key of its workspace. */
export const LLM_KEY = 'PINATA_LLM_KEY'

/** The operator's model, BERTH_MODEL_URL. */
export const OPERATOR_PROVIDER = 'berth'
/** The server that answers in its place if it fails, BERTH_MODEL_FALLBACK_URL. */
export const FALLBACK_PROVIDER = 'berth-fallback'
/** The server on the agent's machine that its owner chose (`localModel`). */
export const LOCAL_PROVIDER = 'local'

/** The path of a provider on the gateway, in the form in which the dialect's libraries take a base URL. */
export function gatewayPath({ id, dialect }: Pick<ModelProvider, 'id' | 'dialect'>): string {
  return { openai: `/${id}/v1`, anthropic: `/${id}`, google: `/${id}` }[dialect]
}
