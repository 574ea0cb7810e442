/** Calls an agent's agentd, and through it the engine, and turns their failures into API responses. */
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { ApiError, contractError, messages } from '../errors.ts'
import type { Agent } from './agent.ts'
import { type AgentdClient, AgentdError, type AgentdTarget } from './agentd-client.ts'
import { readStatus } from './agentd-status.ts'

/** Time limit for one engine call. agentd gives up a little earlier than Berth, and returns the reason. */
const ENGINE_MS = 20_000
const MARGIN_MS = 3000
/** The longest response is a page of runs with their summaries. */
const ENGINE_BYTES = 8_388_608

/**
 * While an engine is not ready: the pause between calls, the time for its status, and the total time once its gateway
 * reports ready.
 */
const PATIENCE_MS = { pause: 1000, status: 10_000, up: 5000 }

const NO_ANSWER = 'The agent sent no valid answer'

/** The engine understood the call and refused it. */
export class EngineRefusal extends Error {
  override name = 'EngineRefusal'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * API responses for failures of agentd that matter to one route's caller, by agentd's code; undefined for the default.
 */
export type Answers = Partial<Record<string, (error: AgentdError) => ApiError | undefined>>

/**
 * Runs a call to agentd. Fails with 503 and `Retry-After` if the agent is unavailable, with the error from `answers` if
 * it covers the failure, and otherwise with 500, the contract's `failure`, and the cause in the log.
 */
export async function askAgent<T>(
  agent: Agent,
  failure: string,
  call: () => Promise<T>,
  answers: Answers = {},
): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw error instanceof AgentdError ? toAnswer(agent, failure, error, answers) : error
  }
}

const passedOn: Answers = {
  timeout: (cause) => new ApiError(504, 'timeout', 'The agent did not answer in time', { cause }),
  bad_answer: (cause) => new ApiError(502, 'bad_answer', NO_ANSWER, { cause }),
}

/** {@link askAgent} for a request whose response is passed on: 504 if it is late, and 502 if it is invalid. */
export const askToPassOn = <T>(agent: Agent, call: () => Promise<T>): Promise<T> =>
  askAgent(agent, NO_ANSWER, call, passedOn)

/** @see askAgent */
export function toAnswer(agent: Agent, failure: string, error: AgentdError, answers: Answers = {}): ApiError {
  const answer = answers[error.code]?.(error)
  if (answer) return answer
  if (error.code === 'unreachable' || error.code === 'not_ready' || error.mayRepeat)
    return notThere(agent, error)
  if (error.code === 'busy') {
    return new ApiError(503, 'busy', `The agent is busy: ${error.message}`, {
      headers: { 'retry-after': '5' },
    })
  }
  return contractError(500, 'agent_failed', failure, error.message, { cause: error })
}

/** For requests that an agentd of an earlier Berth does not support. */
export const restartNeeded = (cause: AgentdError): ApiError =>
  new ApiError(409, 'restart_needed', 'The agent was started by an earlier Berth: restart it', { cause })

/** 503 for an agent that is starting, or does not run. */
const notThere = ({ status }: Agent, cause: AgentdError): ApiError =>
  notReady(cause, status === 'not_running' ? messages.agentNotRunning : messages.agentNotReady)

/** 503 that asks the client to try again. */
export const notReady = (cause: Error, message: string = messages.agentNotReady): ApiError =>
  new ApiError(503, 'agent_not_ready', message, { cause, headers: { 'retry-after': '5' } })

/** True if the engine did not accept a call because it is starting or stalled, or if its response was lost. */
export const isNotReady = (error: unknown): boolean =>
  (error instanceof ApiError && error.code === 'agent_not_ready') ||
  (error instanceof AgentdError && error.code === 'not_ready')

/**
 * Repeats a call while the engine is not ready, which may take many seconds on a busy machine, above all after its
 * start. Stops if the gateway has failed, or is up but accepts no calls. Only for calls that may run twice, and for
 * work without a waiting user.
 * @param options.ms the total time for repetitions.
 */
export async function whenReady<T>(
  agentd: AgentdClient,
  target: AgentdTarget,
  { ms, signal }: { ms: number; signal: AbortSignal },
  call: () => Promise<T>,
): Promise<T> {
  const deadline = performance.now() + ms
  let upSince = Number.POSITIVE_INFINITY
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (signal.aborted || !isNotReady(error)) throw error
      const asked = { timeoutMs: PATIENCE_MS.status, signal }
      const live = await readStatus(agentd, target, asked).catch(() => undefined)
      const state = live?.gateway.state
      const now = performance.now()
      upSince = state === 'ready' ? Math.min(upSince, now) : Number.POSITIVE_INFINITY
      const isDown = state === 'failed' || state === 'stopped'
      if (isDown || now > deadline || now - upSince > PATIENCE_MS.up) throw error
      await delay(PATIENCE_MS.pause, undefined, { signal })
    }
  }
}

const rpcResponse = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), payload: z.unknown() }),
  z.object({ ok: z.literal(false), error: z.object({ code: z.string(), message: z.string() }) }),
])

/** Read-only methods: each may be called twice, so it can use a kept connection. */
const READING = new Set([
  'channels.status',
  'chat.history',
  'config.schema.lookup',
  'cron.get',
  'cron.list',
  'cron.runs',
  'device.pair.list',
  'sessions.list',
])

export interface EngineCall<T> {
  method: string
  params?: Record<string, unknown>
  /** The response's shape; a loose shape keeps additional fields. */
  shape: z.ZodType<T>
  /** The contract's message for unspecific failures. */
  failure: string
  /** API responses for failures of agentd, instead of 500. */
  answers?: Answers
}

/**
 * Calls a method of the agent's engine.
 * @throws EngineRefusal if the engine refuses; ApiError 429 if it limits the rate; as {@link askAgent}, and if the
 *   response has another shape.
 */
export async function callEngine<T>(
  agentd: AgentdClient,
  agent: Agent,
  { method, params = {}, shape, failure, answers }: EngineCall<T>,
): Promise<T> {
  const request = {
    method: 'POST',
    path: '/v1/rpc',
    isRepeatable: READING.has(method),
    json: { method, params, timeoutMs: ENGINE_MS },
    timeoutMs: ENGINE_MS + MARGIN_MS,
    maxBytes: ENGINE_BYTES,
  }
  const answer = await askAgent(agent, failure, () => agentd.json<unknown>(agent, request), answers)
  const response = rpcResponse.safeParse(answer)
  const strange = () =>
    contractError(500, 'agent_failed', failure, `the engine answered ${method} in an unknown shape`)
  if (!response.success) throw strange()
  if (!response.data.ok) throw refused(response.data.error)
  const payload = shape.safeParse(response.data.payload)
  if (!payload.success) throw strange()
  return payload.data
}

/** `UNAVAILABLE` means that the engine is busy, or limits changes: 30 per minute for each method. */
function refused({ code, message }: { code: string; message: string }): EngineRefusal | ApiError {
  const refusal = new EngineRefusal(code, message)
  if (code !== 'UNAVAILABLE') return refusal
  const seconds = /^rate limit exceeded .*retry after (\d{1,4})s/.exec(message)?.[1]
  if (seconds === undefined) return notReady(refusal)
  return new ApiError(429, 'rate_limited', "Too many requests for the agent's engine", {
    cause: refusal,
    headers: { 'retry-after': seconds },
  })
}

/** 500 with the contract's message, if the engine refuses a valid request. */
export const engineFailed = (failure: string, refusal: EngineRefusal): ApiError =>
  contractError(500, 'engine_refused', failure, refusal.message, { cause: refusal })
