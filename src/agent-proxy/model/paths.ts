/** The paths that the gateway serves. A path is compared as it is written, so no other spelling of one passes. */
import type { Dialect } from '../../model-providers.ts'

export type Operation =
  | 'chat'
  | 'responses'
  | 'embeddings'
  | 'messages'
  | 'generate'
  /** Counts the tokens of a request, which costs nothing. */
  | 'count'
  /** The provider's models, which the gateway answers itself. */
  | 'models'

/** A request that the gateway serves. */
export interface Call {
  /** The id of the provider. */
  provider: string
  /** In which dialects the path has this meaning. */
  dialects: readonly Dialect[]
  operation: Operation
  method: 'GET' | 'POST'
  /** The model in a path of Google's; elsewhere the body names it. */
  model?: string
  /** True for Google's path of streams; elsewhere the body asks for one. */
  isOfStreams: boolean
  /** The path behind the provider's base URL, for a model. */
  upstreamPath(model: string): string
}

interface Rule {
  method: 'GET' | 'POST'
  /** The path behind the provider's, with `{model}`. */
  path: string
  dialects: readonly Dialect[]
  operation: Operation
}

const RULES: readonly Rule[] = [
  { method: 'POST', path: '/v1/chat/completions', dialects: ['openai'], operation: 'chat' },
  { method: 'POST', path: '/v1/responses', dialects: ['openai'], operation: 'responses' },
  { method: 'POST', path: '/v1/embeddings', dialects: ['openai'], operation: 'embeddings' },
  { method: 'GET', path: '/v1/models', dialects: ['openai', 'anthropic'], operation: 'models' },
  { method: 'POST', path: '/v1/messages', dialects: ['anthropic'], operation: 'messages' },
  { method: 'POST', path: '/v1/messages/count_tokens', dialects: ['anthropic'], operation: 'count' },
  {
    method: 'POST',
    path: '/v1beta/models/{model}:generateContent',
    dialects: ['google'],
    operation: 'generate',
  },
  {
    method: 'POST',
    path: '/v1beta/models/{model}:streamGenerateContent',
    dialects: ['google'],
    operation: 'generate',
  },
  { method: 'POST', path: '/v1beta/models/{model}:countTokens', dialects: ['google'], operation: 'count' },
  { method: 'GET', path: '/v1beta/models', dialects: ['google'], operation: 'models' },
]

const PROVIDER = /^\/([a-z0-9][a-z0-9-]{0,63})(\/.*)$/
const MODEL_PATH = /^(\/v1beta\/models\/)([A-Za-z0-9][\w.-]{0,127})(:[A-Za-z]+)$/

/** Reads method and path, without the query; undefined if the gateway does not serve them. */
export function readCall(method: string, path: string): Call | undefined {
  const [, provider = '', rest = ''] = PROVIDER.exec(path) ?? []
  const [, before, model, after] = MODEL_PATH.exec(rest) ?? []
  // Requests must not name the placeholder itself.
  const asked = model === undefined ? rest.replaceAll(/[{}]/g, '%') : `${before}{model}${after}`
  const rule = RULES.find((one) => one.path === asked && one.method === method)
  if (!rule) return undefined
  return {
    provider,
    dialects: rule.dialects,
    operation: rule.operation,
    method: rule.method,
    ...(model !== undefined && { model }),
    isOfStreams: rule.path.endsWith(':streamGenerateContent'),
    // OpenAI's base URLs include the version.
    upstreamPath: (name) =>
      (rule.dialects[0] === 'openai' ? rule.path.slice('/v1'.length) : rule.path).replace(
        '{model}',
        encodeURIComponent(name),
      ),
  }
}

/** The dialect of errors while only the path is known. */
export function dialectOf(path: string): Dialect {
  if (path.includes('/v1beta/')) return 'google'
  return path.includes('/v1/messages') ? 'anthropic' : 'openai'
}

/** All paths, for the answer to another one. */
export const PATHS = RULES.map(({ method, path }) => `${method} /<provider>${path}`)

/** Parameters of the query that are forwarded: Google's form of a stream, and the mark of Anthropic's library. */
export function forwardedQuery(query: URLSearchParams): string {
  if (query.get('alt') === 'sse') return '?alt=sse'
  return query.get('beta') === 'true' ? '?beta=true' : ''
}
