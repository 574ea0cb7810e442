/**
 * The names that are credentials of model providers. The engine uses the first credential of a provider that is set, in
 * its own order. A second one could silently take effect or not (contract 7.1: 409).
 *
 * The names come from OpenClaw 2026.9.6 (its plugins' manifests, and help/environment in its docs), and from the two
 * vendors' own command lines, which share a credential with it. Not included: lists such as `OPENAI_API_KEYS`, which
 * the engine uses together with a single key, and keys that only serve usage reports.
 */
const PROVIDERS: Readonly<Record<string, readonly string[]>> = {
  alibaba: ['DASHSCOPE_API_KEY', 'MODELSTUDIO_API_KEY', 'QWEN_API_KEY'],
  anthropic: [
    'ANTHROPIC_API_KEY',
    'ANTHROPIC_AUTH_TOKEN',
    'ANTHROPIC_OAUTH_TOKEN',
    'CLAUDE_CODE_OAUTH_TOKEN',
  ],
  arcee: ['ARCEEAI_API_KEY'],
  'azure-openai': ['AZURE_OPENAI_API_KEY'],
  baseten: ['BASETEN_API_KEY'],
  byteplus: ['BYTEPLUS_API_KEY'],
  cerebras: ['CEREBRAS_API_KEY'],
  chutes: ['CHUTES_API_KEY', 'CHUTES_OAUTH_TOKEN'],
  clawrouter: ['CLAWROUTER_API_KEY'],
  'cloudflare-ai-gateway': ['CLOUDFLARE_AI_GATEWAY_API_KEY'],
  cohere: ['COHERE_API_KEY'],
  comfy: ['COMFY_API_KEY', 'COMFY_CLOUD_API_KEY'],
  deepinfra: ['DEEPINFRA_API_KEY'],
  deepseek: ['DEEPSEEK_API_KEY'],
  elevenlabs: ['ELEVENLABS_API_KEY', 'XI_API_KEY'],
  fal: ['FAL_API_KEY', 'FAL_KEY'],
  featherless: ['FEATHERLESS_API_KEY'],
  fireworks: ['FIREWORKS_API_KEY'],
  'fish-audio': ['FISH_API_KEY', 'FISH_AUDIO_API_KEY'],
  'github-copilot': ['COPILOT_GITHUB_TOKEN'],
  gmi: ['GMI_API_KEY'],
  google: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
  'google-vertex': ['GOOGLE_CLOUD_API_KEY'],
  groq: ['GROQ_API_KEY'],
  huggingface: ['HF_TOKEN', 'HUGGINGFACE_HUB_TOKEN'],
  kilocode: ['KILOCODE_API_KEY'],
  kimi: ['KIMICODE_API_KEY', 'KIMI_API_KEY'],
  litellm: ['LITELLM_API_KEY'],
  longcat: ['LONGCAT_API_KEY'],
  minimax: ['MINIMAX_API_KEY', 'MINIMAX_CODE_PLAN_KEY', 'MINIMAX_CODING_API_KEY', 'MINIMAX_OAUTH_TOKEN'],
  mistral: ['MISTRAL_API_KEY'],
  moonshot: ['MOONSHOT_API_KEY'],
  novita: ['NOVITA_API_KEY'],
  nvidia: ['NVIDIA_API_KEY'],
  ollama: ['OLLAMA_API_KEY'],
  openai: ['CODEX_ACCESS_TOKEN', 'CODEX_API_KEY', 'OPENAI_API_KEY', 'OPENAI_OAUTH_TOKEN'],
  opencode: ['OPENCODE_API_KEY', 'OPENCODE_ZEN_API_KEY'],
  openrouter: ['OPENROUTER_API_KEY'],
  qianfan: ['QIANFAN_API_KEY'],
  runway: ['RUNWAYML_API_SECRET', 'RUNWAY_API_KEY'],
  stepfun: ['STEPFUN_API_KEY'],
  together: ['TOGETHER_API_KEY'],
  venice: ['VENICE_API_KEY'],
  'vercel-ai-gateway': ['AI_GATEWAY_API_KEY'],
  volcengine: ['VOLCANO_ENGINE_API_KEY'],
  xai: ['XAI_API_KEY'],
  xiaomi: ['XIAOMI_API_KEY'],
  zai: ['ZAI_API_KEY', 'Z_AI_API_KEY'],
}

const BY_NAME = new Map(
  Object.entries(PROVIDERS).flatMap(([provider, names]) => names.map((name) => [name, provider] as const)),
)

/** Providers with more than one credential, for the documentation: provider → names. */
export const conflictTable = Object.entries(PROVIDERS).filter(([, names]) => names.length > 1)

/** The provider that a secret's name is a credential of; undefined for any other secret. */
export function providerOf(name: string): string | undefined {
  return BY_NAME.get(name)
}

/** Names the first two credentials of one provider; undefined if there are none. */
export function describeConflict(names: readonly string[]): string | undefined {
  const first = new Map<string, string>()
  for (const name of names) {
    const provider = providerOf(name)
    if (!provider) continue
    const other = first.get(provider)
    if (other) return `${other} and ${name} are both credentials of ${provider}`
    first.set(provider, name)
  }
  return undefined
}
