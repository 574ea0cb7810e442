/** The model of the agent: whether it has one that can be asked, and what the engine says where its model fails. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, type Json } from './json.ts'
import type { Log } from './logs.ts'
import { NO_MODEL } from './protocol.ts'

/** The engine's own, where its config names none. */
const DEFAULT_MODEL = 'openai/'
/** The engine's words where the provider of its model has no key. */
const KEYLESS =
  /No route-compatible authentication source|has no compatible credential source|No API key (?:found|resolved) for /
/** The engine's words that hide the reason; its log has that. */
const VAGUE = /^(?:internal error|upstream provider (?:error|timeout))$/
/** Lines of the log that have a reason, the provider's own words before the engine's. */
const REASONS = [/^embedded run agent end: (.+)/s, / failed: (?:\w*Error: )?(.+)/s]
const SOURCES = /^gateway\/(?:agent\/embedded|openai-compat|openresponses)/
const RECENT_LINES = 200
/** The log comes by another way than the answer, and may be later. */
const LOG_MS = { pause: 20, most: 400 }

/**
 * Asks whether the agent has no model that can be asked: its own config and its secrets tell mostly, else the engine.
 * @param config the engine's. @param ask calls a method of the gateway.
 * @returns {@link NO_MODEL}; null where there is one, or nobody knows.
 */
export async function lackOfModel(
  config: Json,
  env: Readonly<Record<string, string>>,
  ask: (method: string) => Promise<unknown>,
): Promise<string | null> {
  const provider = primaryModel(config).split('/')[0] ?? ''
  const { providers } = isObject(config.models) ? config.models : {}
  if (isObject(providers) && isObject(providers[provider])) return null
  if (env[`${provider.toUpperCase().replaceAll('-', '_')}_API_KEY`]) return null
  const status = await ask('models.authStatus').catch(() => undefined)
  const known = isObject(status) && Array.isArray(status.providers) ? status.providers : undefined
  return known && !known.some((one) => one?.provider === provider) ? NO_MODEL : null
}

/** `provider/model`, as the engine's config has it. */
function primaryModel({ agents }: Json): string {
  const { defaults } = isObject(agents) ? agents : {}
  const { model } = isObject(defaults) ? defaults : {}
  const primary = isObject(model) ? model.primary : model
  return typeof primary === 'string' ? primary : DEFAULT_MODEL
}

/**
 * The reason of a failure that the engine tells of: what is missing where there is no model, and where the engine hides
 * the provider's words, these.
 * @param since when the request came.
 */
export async function explainFailure(message: string, log: Log, since: number): Promise<string> {
  if (KEYLESS.test(message)) return NO_MODEL
  if (!VAGUE.test(message)) return message
  for (let waited = 0; waited <= LOG_MS.most; waited += LOG_MS.pause) {
    const reason = loggedReason(log, since)
    if (reason) return KEYLESS.test(reason) ? NO_MODEL : `${message}: ${reason}`
    await sleep(LOG_MS.pause)
  }
  return message
}

function loggedReason(log: Log, since: number): string | undefined {
  const lines = log
    .lines(RECENT_LINES)
    .filter(({ timestamp, source }) => SOURCES.test(source) && Date.parse(timestamp) >= since)
    .reverse()
  for (const reason of REASONS)
    for (const { message } of lines) {
      const [, words] = reason.exec(message) ?? []
      if (words) return words
    }
}
