/** Refusals of model calls, in words that the engine shows unchanged; see `spentText` in `limits.ts`. */
import type { Refusal } from '../agent-proxy/model/protocol.ts'
import { type Limit, spentText } from './limits.ts'

export const UNKNOWN_KEY: Refusal = {
  status: 401,
  code: 'unknown_key',
  message: 'This key is unknown or has ended',
}

export const PAUSED: Refusal = {
  status: 429,
  code: 'model_paused',
  message:
    'Usage limit: an owner has paused the models of this agent. Its quota is 0 until they are resumed.',
}

export const budgetExceeded = (limit: Limit, need: bigint): Refusal => ({
  status: 429,
  code: 'budget_exceeded',
  message: spentText(limit, need),
})

const PICODOLLARS_OF_MICROCREDIT = 1_000_000n

/** The same for a call with an LLM key. A credit is a US dollar. */
export function creditsSpent(limit: Limit, need: bigint): Refusal {
  const left = limit.unit === 'usd' ? limit.limit - limit.spent - limit.held : 0n
  const available = left > 0n ? left / PICODOLLARS_OF_MICROCREDIT : 0n
  return { ...budgetExceeded(limit, need), status: 402, availableMicrocredits: Number(available) }
}

const RECALL_SECONDS = 2

/** The budget has room, but proxies hold it and have been asked to return it. */
export const RECALLED: Refusal = {
  status: 503,
  code: 'unavailable',
  message: 'Other requests have reserved the rest of the budget and are returning it. Try again.',
  retryAfter: RECALL_SECONDS,
}

/** @param seconds until the next minute. */
export const requestLimit = (
  { scope, requestsPerMinute }: { scope: string; requestsPerMinute: number | null },
  seconds: number,
): Refusal => ({
  status: 429,
  code: 'request_limit',
  message: `Request limit: ${requestsPerMinute} requests per minute for this ${scope}. Try again in ${seconds} seconds.`,
  retryAfter: seconds,
})
