/** Asking an agent's agentd, and through it the engine: where their failures become answers of the API. */
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { ApiError, contractError, messages } from '../errors.ts'
import type { Agent } from './agent.ts'
import { type AgentdClient, AgentdError, type AgentdTarget } from './agentd-client.ts'
import { readStatus } from './agentd-status.ts'

/** Time of an engine for one call. agentd gives up a little earlier than Berth does, and says why. */
const ENGINE_MS = 20_000
const MARGIN_MS = 3000
/** A page of runs with their summaries is the longest answer. */
const ENGINE_BYTES = 8_388_608

/** For an engine that is not ready: between two calls, for its status, and in all where its gateway is said to be ready. */
const PATIENCE_MS = { pause: 1000, status: 10_000, up: 5000 }

/** The engine understood the call, and says no. */
export class EngineRefusal extends Error {
  override name = 'EngineRefusal'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** Answers for failures of agentd that mean something for the caller of one route, by agentd's code; undefined is none. */
export type Answers = Partial<Record<string, (error: AgentdError) => ApiError | undefined>>

/**
 * Runs a call to agentd. Where the agent is not there, the answer is 503 with `Retry-After`; where `answers` has
 * the failure, it is that; any other is 500 with the contract's `failure`, its cause in the log.
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

/** For what the agentd of an earlier Berth does not know. */
export const restartNeeded = (cause: AgentdError): ApiError =>
  new ApiError(409, 'restart_needed', 'The agent was started by an earlier Berth: restart it', { cause })

/** 503 for an agent that comes up, or does not run. */
const notThere = ({ status }: Agent, cause: AgentdError): ApiError =>
  notReady(cause, status === 'not_running' ? messages.agentNotRunning : messages.agentNotReady)

/** 503 that asks the client to try again. */
export const notReady = (cause: Error, message: string = messages.agentNotReady): ApiError =>
  new ApiError(503, 'agent_not_ready', message, { cause, headers: { 'retry-after': '5' } })

/** True for a call that the engine did not take, as it stalls or starts, or whose answer was lost on the way. */
export const isNotReady = (error: unknown): boolean =>
  (error instanceof ApiError && error.code === 'agent_not_ready') ||
  (error instanceof AgentdError && error.code === 'not_ready')

/**
 * Repeats what the engine was not ready for, as it may be for many seconds on a busy machine, above all after its start.
 * Not where the gateway has failed, or is up and takes no calls all the same. Only for what may run twice, and for work in
 * which nobody waits at a page.
 * @param options.ms the time in which it is repeated.
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

/** Methods that change nothing: each may be called twice, so it can take a kept connection. */
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
  /** The answer's shape; what the engine says more stays in it where the shape is loose. */
  shape: z.ZodType<T>
  /** The contract's message where it fails in a way of its own. */
  failure: string
  /** Answers for failures of agentd, in place of 500. */
  answers?: Answers
}

/**
 * Calls a method of the agent's engine.
 * @throws EngineRefusal when the engine refuses; ApiError 429 when it does so for now; as {@link askAgent}, and where the answer has another shape.
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

/** The engine is busy with itself, or limits how often it is changed: 30 times a minute for each method. */
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

/** 500 with the contract's message, for what the engine refuses though nothing is wrong with the request. */
export const engineFailed = (failure: string, refusal: EngineRefusal): ApiError =>
  contractError(500, 'engine_refused', failure, refusal.message, { cause: refusal })
