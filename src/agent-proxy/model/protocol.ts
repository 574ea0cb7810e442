/**
 * The messages between agent proxies and `web` about models. A proxy calls `POST` with JSON and
 * `Authorization: Bearer AGENT_PROXY_KEY`; `web` answers 200, or 401 for another key. Money is in whole picodollars
 * (10⁻¹² US dollars): the price of a token is then a whole number, and every amount stays below 2⁵³.
 */

import type { Dialect } from '../../model-providers.ts'

/** The paths on `web`. */
export const MODEL_CONTROL = {
  /** {@link SessionRequest} → {@link SessionAnswer} */
  session: '/internal/models/session',
  /** {@link GrantRequest} → {@link GrantAnswer} */
  grant: '/internal/models/grant',
  /** {@link SyncRequest} → {@link SyncAnswer} */
  sync: '/internal/models/sync',
} as const

/** How often a proxy with something to report or to check calls `sync`. */
export const SYNC_MS = 1000
/** A lease ends this long after the last `sync` that named it. The proxy stops spending it {@link LEASE_MARGIN_MS} earlier. */
export const LEASE_MS = 30_000
export const LEASE_MARGIN_MS = 5000

/** Where requests of one provider go. */
export interface Provider {
  /** The first segment of its paths on the gateway, such as `openai`, or `berth` for the operator's model and `local` for an agent's `localModel`. */
  id: string
  dialect: Dialect
  /** The URL in front of the dialect's paths: `https://api.openai.com/v1`, `https://api.anthropic.com`, … */
  baseUrl: string
  /** The real key; undefined for a server that needs none. */
  key?: string
  /** Models under another name there: the operator's `default` is BERTH_MODEL. */
  models?: Record<string, string>
  /**
   * Providers of the same dialect to use if this one fails before its first byte, in order. They serve only `models` of
   * their own.
   */
  fallbacks?: string[]
}

/** Picodollars per token. */
export interface Price {
  input: number
  output: number
  /** For input that the provider read from its cache; `input` if undefined. */
  cachedInput?: number
  /** For input that the provider wrote to its cache; `input` if undefined. */
  cacheWrite?: number
  /** For reasoning; `output` if undefined. */
  reasoning?: number
  /** The most tokens of one reply if the request names no limit. */
  maxOutput?: number
  /** A request with more than `above` input tokens costs this many times as much, for all of its tokens. */
  long?: { above: number; input: number; output: number }
}

/**
 * Endings of names of one version of a model, which costs what the model does unless it has a price of its own:
 * `-2026-01-31`, `-20260131`, `-latest`, and Google's `-001`.
 */
const VERSION = /-(\d{4}-\d\d-\d\d|20\d{6}|latest|00\d)$/

/** The price of a model among those of a {@link Session}. */
export function priceOf(prices: Record<string, Price>, provider: string, model: string): Price | undefined {
  const names = [model, model.replace(VERSION, ''), '*']
  return names.map((name) => prices[`${provider}/${name}`]).find((price) => price !== undefined)
}

/** Why a call is refused, in the words that the agent's user reads. */
export interface Refusal {
  status: number
  /** `budget_exceeded`, `request_limit`, `model_paused`, `unknown_price`, `uncountable`, `unknown_key`, `unavailable`. */
  code: string
  message: string
  /** For `Retry-After`, in whole seconds. */
  retryAfter?: number
  /** Millionths of a US dollar that are left of the budget, for clients with an LLM key. */
  availableMicrocredits?: number
}

/** The agent of a virtual key, or the workspace of an LLM key. A proxy keeps it until a `sync` replaces or ends it. */
export interface Session {
  /** Changes with any other field. */
  version?: string
  /** The agent's id in paths; empty for an LLM key. */
  agentId: string
  /** SHA-256 (hex) of the credential in the agent's proxy URL; null for an agent that has no proxy of its own. */
  credential: string | null
  providers: Provider[]
  /** By `<provider>/<model>`, the model as the provider names it; `<provider>/*` for all its others. See {@link priceOf}. */
  prices: Record<string, Price>
  /** The units in which some budget limits the agent. Without `usd`, models without a price pass. */
  limits: { usd: boolean; tokens: boolean; requests: boolean }
  /** Set while the agent may not use models at all: it is paused, or its workspace is suspended. */
  refusal: Refusal | null
}

export interface SessionRequest {
  /** SHA-256 (hex) of the virtual key. */
  key: string
}
/** `refusal` with status 401 for a unknown key. */
export type SessionAnswer = { session: Session } | { refusal: Refusal }

/** The most money that a request can need or cost, in picodollars. A lease has more. */
export const MOST_USD = 4e15

export interface Amounts {
  /** Picodollars. */
  usd: number
  tokens: number
  requests: number
}

export interface GrantRequest {
  /** The id (UUID) of the proxy's process. */
  proxy: string
  key: string
  /** The most that the next request needs. The lease has at least that much. */
  need: Amounts
}

/** An allotment that the proxy may spend, and that counts against the budgets until it is spent or returned. */
export interface Lease extends Amounts {
  id: string
  /** `requests` may be spent for this long, because they belong to the minute in which they were granted. */
  requestsForMs: number
  /** When the lease ends in any case: at the end of the UTC day. */
  endsInMs: number
}
export type GrantAnswer = { lease: Lease } | { refusal: Refusal }

/** The usage of one request. Each is reported once, in a `sync` that is repeated until it is answered. */
export interface UsageRecord {
  provider: string
  model: string
  /** The conversation or task, as the agent reports it in a header; empty if it does not. */
  session: string
  usd: number
  /** All input tokens, including cached ones; all output tokens, including reasoning. */
  input: number
  output: number
  cachedInput: number
  cacheWrite: number
  reasoning: number
  /** True if the provider reported no usage, and the gateway counted itself. */
  estimated: boolean
  /** The status that the agent got. */
  status: number
  /** Milliseconds until the first byte of the response, and until its end. */
  firstByteMs: number
  totalMs: number
}

export interface LeaseReport {
  id: string
  key: string
  /** Counts this lease's reports from 1; `web` ignores one that it has already taken. */
  seq: number
  /** Requests in flight: what they have reserved. If the proxy dies, this much counts as spent. */
  open: { usd: number; tokens: number }
  records: UsageRecord[]
  /** True for the last report: what is left returns to the budgets. */
  done: boolean
}

export interface SyncRequest {
  proxy: string
  leases: LeaseReport[]
  /** Keys of the sessions that the proxy keeps. */
  keys: string[]
  /** By key: the `version` of the session that the proxy has. */
  known?: Record<string, string>
}

export interface SyncAnswer {
  /** By key: the session as it is now. */
  sessions: Record<string, Session>
  /** Keys whose session still has the `known` version. A key that is in neither no longer stands for an agent. */
  unchanged?: string[]
  /** Ids of leases that have ended: the proxy spends nothing more from them. */
  ended: string[]
}
