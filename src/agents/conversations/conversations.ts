/** Conversations with an agent: sessions of its engine whose names begin with Berth's prefix. */
import type { IncomingMessage } from 'node:http'
import type { Response } from 'express'
import { z } from 'zod'
import { CHAT_PATHS, type ChatRequest } from '../../../agentd/protocol.ts'
import { ApiError, contractError } from '../../errors.ts'
import { openEventStream } from '../../http/event-stream.ts'
import type { Agent } from '../agent.ts'
import { type AgentdClient, AgentdError } from '../agentd-client.ts'
import { jsonLines, readWithin } from '../agentd-stream.ts'
import {
  type Answers,
  askAgent,
  callEngine,
  EngineRefusal,
  engineFailed,
  notReady,
  restartNeeded,
} from '../engine-call.ts'
import type { Conversation, Message } from './conversation-schema.ts'
import { replyOf, timeOf, toMessage } from './engine-messages.ts'

const PREFIX = 'agent:main:berth:'
const keyOf = (conversationId: string) => `${PREFIX}${conversationId.toLowerCase()}`
const MAX_CONVERSATIONS = 200
const MAX_TITLE = 120
/**
 * agentd responds as soon as the engine has accepted the message, which is immediate unless the engine is still
 * starting.
 */
const BEGIN_MS = 60_000
/** agentd sends an empty line every ten seconds; one that is silent for this long hangs. */
const SILENCE_MS = 60_000
/** A text of 524,288 characters, the longest that agentd sends, takes three bytes per character. */
const LINE_BYTES = 2_097_152
const FAILURE = 'The conversation failed'
/** Messages of a page, and the pages that are searched for a reply. */
const PAGE = 200
const SEARCHED_PAGES = 5

const sessions = z.object({
  sessions: z.array(
    z.looseObject({
      key: z.string().max(500),
      label: z.string().optional().catch(undefined),
      displayName: z.string().optional().catch(undefined),
      updatedAt: z.number().nullish().catch(undefined),
      hasActiveRun: z.boolean().optional().catch(undefined),
    }),
  ),
})
const history = z.looseObject({
  messages: z.array(z.unknown()),
  nextOffset: z.number().int().nonnegative().optional(),
  sessionInfo: z.looseObject({ hasActiveRun: z.boolean().optional() }).optional(),
  inFlightRun: z.looseObject({ runId: z.string() }).optional().catch(undefined),
})
const chatEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), item: z.string().max(200), text: z.string(), replace: z.boolean() }),
  z.object({ type: z.literal('message'), message: z.unknown() }),
  z.object({
    type: z.literal('tool'),
    call: z.string().max(200),
    state: z.enum(['running', 'done', 'failed']),
  }),
  z.object({
    type: z.literal('end'),
    state: z.enum(['done', 'stopped', 'failed', 'idle']),
    error: z.string().max(4000).optional(),
  }),
  z.object({ type: z.literal('error'), error: z.string().max(4000) }),
])

/** An event of a reply, as the API describes them; `end` or `error` comes last. */
export type ReplyEvent =
  | Exclude<z.output<typeof chatEvent>, { type: 'message' }>
  | { type: 'message'; message: Message }

/** A reply, found by the id of its run. */
export interface Reply {
  /** `unknown` if the engine has never heard of the message, or forgot it. */
  state: 'working' | 'completed' | 'failed' | 'canceled' | 'unknown'
  /** The agent's last words, which are the reply itself once it is completed. */
  text: string
}

/** Each engine call may be repeated: if its response did not arrive in time, the client tries again. */
const callAnswers: Answers = { engine: (cause) => notReady(cause), timeout: (cause) => notReady(cause) }

/** A message is sent once: if the engine's response is lost, it is unknown whether the message arrived. */
const messageAnswers: Answers = {
  conflict: (cause) =>
    new ApiError(409, 'still_replying', 'The agent is still replying here: wait for the end, or stop it', {
      cause,
    }),
  not_found: restartNeeded,
  engine: ({ message }) => contractError(502, 'engine_refused', FAILURE, message),
}

export class Conversations {
  readonly #agentd: AgentdClient

  constructor(agentd: AgentdClient) {
    this.#agentd = agentd
  }

  /** Conversations started through the API, latest first. */
  async list(agent: Agent): Promise<Conversation[]> {
    const params = { limit: MAX_CONVERSATIONS, search: PREFIX }
    const found = await this.#call(agent, 'sessions.list', params, sessions)
    return found.sessions
      .filter(({ key }) => key.startsWith(PREFIX))
      .sort((a, b) => (b.updatedAt ?? 0) - (a.updatedAt ?? 0))
      .map(({ key, label, displayName, updatedAt, hasActiveRun }) => ({
        conversationId: key.slice(PREFIX.length),
        title: (label ?? displayName)?.slice(0, MAX_TITLE).toWellFormed() ?? null,
        updatedAt: timeOf(updatedAt ?? undefined),
        isReplying: hasActiveRun ?? false,
      }))
  }

  /** A page of messages, counted from the newest, in chronological order; empty if nothing has been said yet. */
  async read(
    agent: Agent,
    id: string,
    { limit, offset }: { limit: number; offset: number },
  ): Promise<{ messages: Message[]; isReplying: boolean; nextOffset: number | null }> {
    const params = { sessionKey: keyOf(id), limit, offset }
    const found = await this.#call(agent, 'chat.history', params, history)
    return {
      messages: found.messages.flatMap((said) => toMessage(said) ?? []),
      isReplying: found.sessionInfo?.hasActiveRun ?? false,
      nextOffset: found.nextOffset ?? null,
    }
  }

  /** The reply to a message, by the id of its run, if the message is among the latest thousand. */
  async readReply(agent: Agent, id: string, runId: string): Promise<Reply> {
    const said: unknown[] = []
    let offset: number | undefined = 0
    for (let read = 0; read < SEARCHED_PAGES && offset !== undefined; read++) {
      const params = { sessionKey: keyOf(id), limit: PAGE, offset }
      const page: z.output<typeof history> = await this.#call(agent, 'chat.history', params, history)
      said.unshift(...page.messages)
      const reply = replyOf(said, runId)
      if (page.inFlightRun?.runId === runId) return { state: 'working', text: reply?.text ?? '' }
      if (reply) return reply
      offset = page.nextOffset
    }
    return { state: 'unknown', text: '' }
  }

  /** Stops the reply in progress, or only that of one run. @returns whether there was one. */
  async stop(agent: Agent, id: string, runId?: string): Promise<boolean> {
    const shape = z.looseObject({ aborted: z.boolean() })
    const params = { sessionKey: keyOf(id), ...(runId && { runId }) }
    return (await this.#call(agent, 'chat.abort', params, shape)).aborted
  }

  /**
   * Deletes a conversation. The engine refuses if the conversation has changed since the call arrived, as can happen
   * after a reply; a second call then succeeds.
   * @throws ApiError 503 if the engine refuses again, or does not respond in time.
   */
  async remove(agent: Agent, id: string): Promise<void> {
    const remove = () => this.#call(agent, 'sessions.delete', { key: keyOf(id) }, z.unknown())
    await remove().catch((error) => {
      if (!isChanged(error.cause)) throw error
      return remove()
    })
  }

  /**
   * Sends a message, or without a text only follows the reply in progress. The reply continues if nobody follows it.
   * @param options.runId names the reply for {@link readReply}.
   * @returns what happens, once the agent has accepted the message. Iterating ends with `end` or `error`.
   * @throws ApiError 409 while the agent is still replying, 503 if it is unavailable.
   */
  async open(
    agent: Agent,
    id: string,
    { text, runId, signal }: { text?: string; runId?: string; signal: AbortSignal },
  ): Promise<AsyncGenerator<ReplyEvent, void>> {
    const json: ChatRequest = {
      sessionKey: keyOf(id),
      ...(text !== undefined && { message: text }),
      ...(runId !== undefined && { runId }),
    }
    const path = CHAT_PATHS[runId === undefined ? 0 : 1]
    const request = { method: 'POST', path, json, timeoutMs: BEGIN_MS, signal }
    const lines = await askAgent(agent, FAILURE, () => this.#agentd.stream(agent, request), messageAnswers)
    return eventsOf(lines)
  }

  /** Does {@link open}, and writes the events as server-sent events. @throws ApiError before the first byte. */
  async converse(
    agent: Agent,
    id: string,
    { res, ...options }: { text?: string; res: Response; signal: AbortSignal },
  ): Promise<void> {
    const reply = await this.open(agent, id, options)
    const events = openEventStream(res)
    try {
      for await (const { type, ...event } of reply)
        await events.send(type, 'message' in event ? event.message : event)
    } finally {
      events.end()
    }
  }

  async #call<T>(agent: Agent, method: string, params: Record<string, unknown>, shape: z.ZodType<T>) {
    try {
      const call = { method, params, shape, failure: FAILURE, answers: callAnswers }
      return await callEngine(this.#agentd, agent, call)
    } catch (error) {
      throw error instanceof EngineRefusal ? toAnswer(error) : error
    }
  }
}

/** The events of agentd's stream. Leaving the loop ends it. */
async function* eventsOf(lines: IncomingMessage): AsyncGenerator<ReplyEvent, void> {
  try {
    for await (const event of jsonLines(readWithin(lines, SILENCE_MS), LINE_BYTES, chatEvent)) {
      const message = event.type === 'message' ? toMessage(event.message) : undefined
      if (event.type !== 'message') yield event
      else if (message) yield { type: 'message', message }
      if (event.type === 'end' || event.type === 'error') return
    }
    throw new AgentdError('bad_answer', "agentd's stream ended before the reply")
  } catch (error) {
    yield { type: 'error', error: lossOf(error) }
  } finally {
    lines.destroy()
  }
}

/** Why a stream ended before its reply did, worded for clients. */
function lossOf(error: unknown): string {
  const reason = error instanceof AgentdError && REASONS[error.code]
  return reason || FAILURE
}

const REASONS: Record<string, string | undefined> = {
  timeout: `The agent sent nothing for ${SILENCE_MS / 1000} seconds`,
  bad_answer: 'The connection to the agent broke off',
}

const isChanged = (cause: unknown) =>
  cause instanceof EngineRefusal && / changed before deletion\. Retry\./.test(cause.message)

const toAnswer = (refusal: EngineRefusal) =>
  isChanged(refusal) ? notReady(refusal) : engineFailed(FAILURE, refusal)
