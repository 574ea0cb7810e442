import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { AgentdError } from './agentd-errors.ts'
import { Connection, type Frame } from './gateway-client.ts'
import { explainFailure } from './model.ts'
import { CHAT_PATHS, type ChatEvent, type ChatRequest, type RpcResponse } from './protocol.ts'
import { type Agent, type Route, requireReady, type Service } from './server.ts'

/** Each stream is a connection to the gateway, which sends it everything that its agent does. */
const AT_ONCE = 32
const CALL_MS = 20_000
const KEEP_ALIVE_MS = 10_000
/** A reader that is this far behind is disconnected. The engine keeps the conversation, which can be read again. */
const BEHIND_BYTES = 4_194_304
const LINE_BYTES = 524_288
const ERROR_CHARS = 2000
const LABEL_CHARS = 80
/** The API's limit for the id of a call. */
const CALL_ID_CHARS = 200
const RUN_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const SETTLE_MS = 5000
const POLL_MS = 100
/** A reply is silent while a tool runs. After this silence agentd asks the engine whether the reply continues. */
const SILENCE_MS = 30_000
/** Consecutive questions that the engine did not answer, or answered with an ended reply. */
const MAX_FAILED = 4
const MAX_OVER = 2

/** `POST /v1/chat`: says something in a conversation, or follows it. */
export function chatService({ gateway, log }: Agent): Service {
  let streams = 0
  const handle: Route['handle'] = async (call) => {
    const request = check(await call.json<ChatRequest>())
    if (streams >= AT_ONCE) throw new AgentdError('busy', `${AT_ONCE} clients already follow conversations`)
    streams++
    try {
      await converse({ gateway, log }, request, call)
    } finally {
      streams--
    }
    return undefined
  }
  return { routes: CHAT_PATHS.map((path) => ({ method: 'POST', path, handle })) }
}

async function converse(
  { gateway, log }: Pick<Agent, 'gateway' | 'log'>,
  { sessionKey, message, runId: idempotencyKey = randomUUID() }: ChatRequest,
  { res, signal }: { res: ServerResponse; signal: AbortSignal },
): Promise<void> {
  const since = Date.now()
  const { token, port } = requireReady(gateway)
  const follower = new Follower(res, sessionKey)
  const connection = new Connection(port, token, {
    onEvent: (frame) => follower.take(frame),
    onClose: (reason) => follower.end(lost(`The agent's gateway ${reason}`)),
  })
  const ask = async (method: string, params: Record<string, unknown>) =>
    resultOf(await connection.call(method, params, CALL_MS))
  const look = async () => {
    const { sessionInfo, messages } = (await ask('chat.history', { sessionKey, limit: 1 })) as History
    return { isActive: sessionInfo?.hasActiveRun === true, isNew: messages?.length === 0 }
  }
  let watch: NodeJS.Timeout | undefined
  try {
    // In this order nothing is missed: events wait until it is known whether there is a reply.
    await ask('sessions.messages.subscribe', { key: sessionKey })
    // The engine reports tool calls only to subscribers of all sessions.
    await ask('sessions.subscribe', {})
    const { isActive, isNew } = await look()
    if (message !== undefined) {
      if (isActive) throw new AgentdError('conflict', 'the agent is still replying')
      const { runId } = await ask('chat.send', { sessionKey, message, idempotencyKey })
      follower.begin(String(runId))
      if (isNew) await entitle(ask, sessionKey, message)
    } else if (isActive) follower.begin()
    else follower.begin().end({ type: 'end', state: 'idle' })
    watch = watchSilence(follower, look)
    const end = await Promise.race([follower.ended, aborted(signal)])
    if (!end) return
    if (end.type === 'error') return follower.finish(end)
    // The engine reports the end a moment before it accepts the next message.
    const isSettled = async () => !(await look().catch(() => undefined))?.isActive
    for (let waited = 0; waited < SETTLE_MS && !(await isSettled()); waited += POLL_MS) await sleep(POLL_MS)
    const error = end.error && (await explainFailure(log.redact(end.error), log, since))
    follower.finish(error ? { ...end, error } : end)
  } finally {
    clearInterval(watch)
    follower.close()
    connection.close()
  }
}

const lost = (error: string): End => ({ type: 'error', error })

/**
 * Ends a silent stream if its reply has ended unnoticed, or if its gateway no longer responds.
 * @param look asks the engine.
 */
function watchSilence(follower: Follower, look: () => Promise<{ isActive: boolean }>): NodeJS.Timeout {
  let failed = 0
  let over = 0
  let isAsking = false
  const check = async () => {
    const { silentMs } = follower
    if (silentMs < SILENCE_MS) failed = over = 0
    if (isAsking || silentMs < SILENCE_MS) return
    isAsking = true
    const found = await look().catch(() => undefined)
    isAsking = false
    failed = found ? 0 : failed + 1
    over = found?.isActive === false ? over + 1 : 0
    if (failed >= MAX_FAILED) follower.end(lost("The agent's gateway no longer answers"))
    if (over >= MAX_OVER) follower.end(lost('The reply has ended, but its end was not reported: read it'))
  }
  return setInterval(() => void check(), SILENCE_MS)
}

/** Sets the conversation's title to its first words, because the engine finds its own title much later, if at all. */
async function entitle(
  ask: (method: string, params: Record<string, unknown>) => Promise<unknown>,
  key: string,
  message: string,
): Promise<void> {
  const words = message.replace(/\s+/g, ' ').trim()
  const label = words.length > LABEL_CHARS ? `${words.slice(0, LABEL_CHARS - 1).toWellFormed()}…` : words
  // No two sessions may have the same title.
  for (const one of [label, `${label.slice(0, LABEL_CHARS - 8)} ${key.slice(-6)}`])
    if (await ask('sessions.patch', { key, label: one }).catch(() => undefined)) return
}

/** Resolves to undefined when the client disconnects. */
function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

interface History {
  sessionInfo?: { hasActiveRun?: unknown }
  messages?: unknown[]
}

type End = ChatEvent & { type: 'end' | 'error' }

/** Follows the gateway's events of one conversation until its reply has ended. */
class Follower {
  /** How the reply, or following it, ended. */
  readonly ended: Promise<End>
  readonly #res: ServerResponse
  readonly #sessionKey: string
  readonly #end: (end: End) => void
  /** Frames that came before {@link begin}; undefined afterwards. */
  #early: Frame[] | undefined = []
  #runId: string | undefined
  /** The unfinished texts, by the engine's name for each. */
  readonly #texts = new Map<string, string>()
  /** The provider's message if it refused the reply. */
  #refusal: string | undefined
  #heardAt = performance.now()
  #keepAlive: NodeJS.Timeout | undefined

  constructor(res: ServerResponse, sessionKey: string) {
    this.#res = res
    this.#sessionKey = sessionKey
    const { promise, resolve } = Promise.withResolvers<End>()
    this.ended = promise
    this.#end = resolve
  }

  /** The time since the engine's last event of the conversation. */
  get silentMs(): number {
    return performance.now() - this.#heardAt
  }

  /** @param runId the reply to follow; without it, the one that ends first. */
  begin(runId?: string): this {
    const res = this.#res
    this.#runId = runId
    res.writeHead(200, { 'content-type': 'application/x-ndjson' })
    res.flushHeaders()
    this.#keepAlive = setInterval(() => res.write('\n'), KEEP_ALIVE_MS)
    const early = this.#early ?? []
    this.#early = undefined
    for (const frame of early) this.take(frame)
    return this
  }

  take(frame: Frame): void {
    const payload = (frame.payload ?? {}) as Payload
    if (payload.sessionKey !== this.#sessionKey) return
    if (this.#early) return void this.#early.push(frame)
    this.#heardAt = performance.now()
    if (frame.event === 'session.message') this.#message(payload.message)
    else if (frame.event === 'agent' && payload.stream === 'assistant') this.#text(payload.data ?? {})
    else if (frame.event === 'agent' && payload.stream === 'lifecycle') this.#lifecycle(payload.data ?? {})
    else if (frame.event === 'session.tool') this.#tool(payload.data ?? {})
    else if (frame.event === 'chat' && (this.#runId ?? payload.runId) === payload.runId) this.#state(payload)
  }

  end(end: End): void {
    this.#end(end)
  }

  close(): void {
    clearInterval(this.#keepAlive)
    // Before the stream has begun, the call itself fails.
    if (!this.#early) this.#res.end()
  }

  send(event: ChatEvent): void {
    const isBehind = this.#res.writableLength > BEHIND_BYTES
    if (isBehind) this.end(lost('The reader is too slow: the reply continues without it'))
    else this.finish(event)
  }

  /** Sends the last event, however much still waits for the reader. */
  finish(event: ChatEvent): void {
    if (!this.#res.destroyed) this.#res.write(`${JSON.stringify(event)}\n`)
  }

  #message(message: unknown): void {
    const isLong = JSON.stringify(message ?? null).length > LINE_BYTES
    this.send({ type: 'message', message: isLong ? null : message })
  }

  #text({ itemId = '', text, delta }: NonNullable<Payload['data']>): void {
    const before = this.#texts.get(itemId) ?? ''
    const now = text ?? before + (delta ?? '')
    this.#texts.set(itemId, now)
    const replace = !now.startsWith(before)
    const more = replace ? now : now.slice(before.length)
    if (more === '' && !replace) return
    for (let at = 0; at === 0 || at < more.length; at += LINE_BYTES)
      this.send({
        type: 'text',
        item: itemId,
        text: more.slice(at, at + LINE_BYTES),
        replace: replace && at === 0,
      })
  }

  #tool({ toolCallId, phase, isError }: NonNullable<Payload['data']>): void {
    if (typeof toolCallId !== 'string' || (phase !== 'start' && phase !== 'result')) return
    const state = phase === 'start' ? 'running' : isError === true ? 'failed' : 'done'
    this.send({ type: 'tool', call: toolCallId.slice(0, CALL_ID_CHARS), state })
  }

  /** The engine summarises the provider's refusal for people; its lifecycle event has the original message. */
  #lifecycle({ fallbackStepFromFailureDetail: detail }: NonNullable<Payload['data']>): void {
    if (typeof detail === 'string' && detail !== '') this.#refusal = detail
  }

  #state({ state, errorMessage }: Payload): void {
    if (state === 'final') this.end({ type: 'end', state: 'done' })
    else if (state === 'aborted') this.end({ type: 'end', state: 'stopped' })
    else if (state === 'error') {
      const error = (this.#refusal ?? String(errorMessage ?? '')).slice(0, ERROR_CHARS).toWellFormed()
      this.end({ type: 'end', state: 'failed', error })
    }
  }
}

/** The fields of the engine's events that are used here. */
interface Payload {
  sessionKey?: string
  runId?: string
  state?: string
  errorMessage?: string
  stream?: string
  message?: unknown
  data?: {
    itemId?: string
    text?: string
    delta?: string
    toolCallId?: unknown
    phase?: unknown
    isError?: unknown
    fallbackStepFromFailureDetail?: unknown
  }
}

function resultOf(answer: RpcResponse): Record<string, unknown> {
  if (!answer.ok) throw new AgentdError('engine', answer.error.message)
  return (answer.payload ?? {}) as Record<string, unknown>
}

function check(request: ChatRequest): ChatRequest {
  const { sessionKey, message, runId } = request ?? {}
  if (typeof sessionKey !== 'string' || sessionKey === '')
    throw new AgentdError('bad_request', 'sessionKey: must be the name of a conversation')
  if (message !== undefined && (typeof message !== 'string' || message.trim() === ''))
    throw new AgentdError('bad_request', 'message: must be a non-empty text')
  if (runId !== undefined && (typeof runId !== 'string' || !RUN_ID.test(runId)))
    throw new AgentdError('bad_request', 'runId: must be a UUID')
  return request
}
