/** Checks whether the agent has a usable model, and explains the engine's failures to ask it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, type Json } from './json.ts'
import type { Log } from './logs.ts'
import { NO_MODEL } from './protocol.ts'

/** The engine's default provider. */
const DEFAULT_MODEL = 'openai/'
/** The engine's message if its model's provider has no key, or was the operator's and is gone. */
const KEYLESS =
  /No route-compatible authentication source|has no compatible credential source|No API key (?:found|resolved) for |Unknown model: berth\//
/** The engine's messages that hide the reason, which is in its log. */
const VAGUE = /^(?:internal error|upstream provider (?:error|timeout))$/
/** Log lines with a reason: the provider's own message first, then the engine's. */
const REASONS = [/^embedded run agent end: (.+)/s, / failed: (?:\w*Error: )?(.+)/s]
const SOURCES = /^gateway\/(?:agent\/embedded|openai-compat|openresponses)/
const RECENT_LINES = 200
/** The log may arrive after the response. */
const LOG_MS = { pause: 20, most: 400 }

/**
 * Checks whether the agent has a key for its model's provider: in its config or its secrets, otherwise by asking the
 * engine.
 * @param config the engine's. @param ask calls a method of the gateway.
 * @returns {@link NO_MODEL} if the agent has none; null if it has one; undefined if the engine does not respond.
 */
export async function lackOfModel(
  config: Json,
  env: Readonly<Record<string, string>>,
  ask: (method: string) => Promise<unknown>,
): Promise<string | null | undefined> {
  const provider = primaryModel(config).split('/')[0] ?? ''
  const { providers } = isObject(config.models) ? config.models : {}
  if (isObject(providers) && isObject(providers[provider])) return null
  if (env[`${provider.toUpperCase().replaceAll('-', '_')}_API_KEY`]) return null
  const status = await ask('models.authStatus').catch(() => undefined)
  const known = isObject(status) && Array.isArray(status.providers) ? status.providers : undefined
  if (!known) return undefined
  return known.some((one) => one?.provider === provider) ? null : NO_MODEL
}

/** The model in the engine's config, as `provider/model`. */
function primaryModel({ agents }: Json): string {
  const { defaults } = isObject(agents) ? agents : {}
  const { model } = isObject(defaults) ? defaults : {}
  const primary = isObject(model) ? model.primary : model
  return typeof primary === 'string' ? primary : DEFAULT_MODEL
}

/**
 * Replaces the engine's message: by {@link NO_MODEL} if the agent has no model, by the provider's message if the engine
 * hid it. Any other message stays.
 * @param since the time of the request.
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
