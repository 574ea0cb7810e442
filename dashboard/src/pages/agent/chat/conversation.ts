import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { api, RequestError, serverEvents, unwrap } from '../../../api/client.ts'

export const PAGE = 100

export const conversationsKey = (agentId: string) => ['agents', agentId, 'conversations']
const keyOf = (agentId: string, id: string) => [...conversationsKey(agentId), id]

const readPage = (agentId: string, conversationId: string, limit: number) =>
  unwrap(
    api.GET('/v0/agents/{agentId}/conversations/{conversationId}', {
      params: { path: { agentId, conversationId }, query: { limit } },
    }),
  )
export type Message = Awaited<ReturnType<typeof readPage>>['messages'][number]

/** A reply that is still arriving, before it is in the history. */
interface Reply {
  isOpen: boolean
  /** The message to the agent, until it is in the history. */
  said: string | undefined
  /** The texts that are still being written, by the engine's id of each item. */
  texts: Record<string, string>
  /** The messages of the reply so far. A read of the conversation during the reply may be older. */
  messages: Message[]
  /** The states of tool calls, by id. */
  calls: Record<string, CallState>
  /** Why there is no reply, in the words of the API or the engine. */
  error: Error | undefined
  hasFailed: boolean
}
export type CallState = 'running' | 'done' | 'failed'
const NONE: Reply = {
  ...{ isOpen: false, said: undefined, texts: {}, messages: [], calls: {} },
  ...{ error: undefined, hasFailed: false },
}

/** A conversation with an agent: its messages, and the reply as it arrives. A component has only one conversation. */
export function useConversation(agentId: string, conversationId: string) {
  const queries = useQueryClient()
  const [limit, setLimit] = useState(PAGE)
  const [reply, setReply] = useState<Reply>(NONE)
  const open = useRef<AbortController>(undefined)
  const history = useQuery({
    queryKey: [...keyOf(agentId, conversationId), limit],
    queryFn: () => readPage(agentId, conversationId, limit),
    placeholderData: (before) => before,
  })

  const take = useCallback((name: string, data: ReplyEvent) => {
    if (name === 'text')
      setReply((before) => {
        const { item = '', text = '', replace } = data
        const written = replace ? text : (before.texts[item] ?? '') + text
        return { ...before, texts: { ...before.texts, [item]: written } }
      })
    if (name === 'message') {
      const message = data as unknown as Message
      setReply((before) => ({
        ...before,
        messages: [...before.messages, message],
        ...(message.role === 'user' ? { said: undefined } : { texts: {} }),
      }))
    }
    const { call = '', state } = data
    if (name === 'tool')
      setReply((before) => ({ ...before, calls: { ...before.calls, [call]: state as CallState } }))
    if (name === 'end' && data.state === 'failed')
      setReply((before) => ({ ...before, hasFailed: true, error: new Error(data.error ?? '') }))
    if (name === 'error') setReply((before) => ({ ...before, error: new Error(data.error ?? '') }))
  }, [])

  const stream = useCallback(
    async (text: string | undefined) => {
      const ended = new AbortController()
      open.current = ended
      setReply({ ...NONE, isOpen: true, said: text })
      try {
        const params = { path: { agentId, conversationId } }
        const options = { params, parseAs: 'stream' as const, signal: ended.signal }
        const path = '/v0/agents/{agentId}/conversations/{conversationId}'
        const body = await unwrap(
          text === undefined
            ? api.GET(`${path}/events`, options)
            : api.POST(`${path}/messages`, { ...options, body: { text } }),
        )
        for await (const { name, data } of serverEvents(body as unknown as ReadableStream<Uint8Array>))
          take(name, JSON.parse(data) as ReplyEvent)
      } catch (error) {
        if (!ended.signal.aborted)
          setReply((before) => ({ ...before, error: error instanceof Error ? error : new Error(`${error}`) }))
        // The message was not sent: the person can send it again.
        if (error instanceof RequestError) throw error
      } finally {
        if (open.current === ended) {
          await queries.invalidateQueries({ queryKey: conversationsKey(agentId) })
          setReply((before) => ({ ...before, isOpen: false, said: undefined, texts: {}, calls: {} }))
        }
      }
    },
    [queries, agentId, conversationId, take],
  )

  // The agent continues its reply after the page stops listening.
  useEffect(() => () => open.current?.abort(), [])

  const isReplying = history.data?.isReplying === true && !history.isPlaceholderData
  // Includes a broken connection, once the API responds again.
  const isLost = isReplying && history.isSuccess && !reply.isOpen
  const isRefused = reply.hasFailed || reply.error instanceof RequestError
  useEffect(() => {
    if (isLost && !isRefused) stream(undefined).catch(() => {})
  }, [isLost, isRefused, stream])

  return {
    history,
    messages: withReply(history.data?.messages ?? [], reply.isOpen || history.isError ? reply.messages : []),
    reply,
    isBusy: reply.isOpen || isReplying,
    say: (text: string) => stream(text),
    readMore: history.data?.nextOffset != null && limit < 1000 ? () => setLimit(1000) : undefined,
  }
}

/** The result of each tool call. Models may reuse the id of a call: a result belongs to the latest call before it. */
export function resultsOf(messages: Message[]): Map<Message['toolCalls'][number], Message> {
  const calls = new Map<string, Message['toolCalls'][number]>()
  const results = new Map<Message['toolCalls'][number], Message>()
  for (const message of messages) {
    for (const call of message.toolCalls) calls.set(call.id, call)
    const asked = message.toolCallId && calls.get(message.toolCallId)
    if (asked) results.set(asked, message)
  }
  return results
}

interface ReplyEvent {
  call?: string
  item?: string
  text?: string
  replace?: boolean
  state?: string
  error?: string
}

/** The messages that were read, followed by the reply's messages that are not among them. */
function withReply(read: Message[], came: Message[]): Message[] {
  const known = new Set(read.map(({ id }) => id))
  return [...read, ...came.filter(({ id }) => !known.has(id))]
}
