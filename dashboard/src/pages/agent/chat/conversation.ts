import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { api, RequestError, unwrap } from '../../../api/client.ts'
import { serverEvents } from '../../../api/server-events.ts'

export const PAGE = 100

export const conversationsKey = (agentId: string) => ['agents', agentId, 'conversations']
const keyOf = (agentId: string, id: string) => [...conversationsKey(agentId), id]

const readPage = (agentId: string, conversationId: string, limit: number) =>
  unwrap(
    api.GET('/v0/agents/{agentId}/conversations/{conversationId}', {
      params: { path: { agentId, conversationId }, query: { limit } },
    }),
  )
type Page = Awaited<ReturnType<typeof readPage>>
export type Message = Page['messages'][number]

/** A reply that is still arriving, before it is in the history. */
interface Reply {
  isOpen: boolean
  /** The message to the agent, until it is in the history. */
  said: string | undefined
  /** The texts that are being written, by the engine's name of each. */
  texts: Record<string, string>
  /** Why there is none, in the words of the API or of the engine. */
  error: Error | undefined
  hasFailed: boolean
}
const NONE: Reply = { isOpen: false, said: undefined, texts: {}, error: undefined, hasFailed: false }

/** A conversation with an agent: its messages, and the reply as it comes. One component is of one conversation. */
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

  const take = useCallback(
    (name: string, data: ReplyEvent) => {
      if (name === 'text')
        setReply((before) => {
          const { item = '', text = '', replace } = data
          const written = replace ? text : (before.texts[item] ?? '') + text
          return { ...before, texts: { ...before.texts, [item]: written } }
        })
      if (name === 'message') {
        const message = data as unknown as Message
        queries.setQueriesData<Page>(
          { queryKey: keyOf(agentId, conversationId) },
          (page) => page && withMessage(page, message),
        )
        setReply((before) =>
          message.role === 'user' ? { ...before, said: undefined } : { ...before, texts: {} },
        )
      }
      if (name === 'end' && data.state === 'failed')
        setReply((before) => ({ ...before, hasFailed: true, error: new Error(data.error ?? '') }))
      if (name === 'error') setReply((before) => ({ ...before, error: new Error(data.error ?? '') }))
    },
    [queries, agentId, conversationId],
  )

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
        // Nothing was said: it can be sent again.
        if (error instanceof RequestError) throw error
      } finally {
        if (open.current === ended) {
          await queries.invalidateQueries({ queryKey: conversationsKey(agentId) })
          setReply((before) => ({ ...NONE, error: before.error, hasFailed: before.hasFailed }))
        }
      }
    },
    [queries, agentId, conversationId, take],
  )

  // A reply goes on without us.
  useEffect(() => () => open.current?.abort(), [])

  const isReplying = history.data?.isReplying === true && !history.isPlaceholderData
  // Also where a connection broke off, once the API answers again.
  const isLost = isReplying && history.isSuccess && !reply.isOpen
  const isRefused = reply.hasFailed || reply.error instanceof RequestError
  useEffect(() => {
    if (isLost && !isRefused) stream(undefined).catch(() => {})
  }, [isLost, isRefused, stream])

  return {
    history,
    reply,
    isBusy: reply.isOpen || isReplying,
    say: (text: string) => stream(text),
    readMore: history.data?.nextOffset != null && limit < 1000 ? () => setLimit(1000) : undefined,
  }
}

/** The result of each tool call. Models may give several calls the same id: a result belongs to the latest call before it. */
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
  item?: string
  text?: string
  replace?: boolean
  state?: string
  error?: string
}

function withMessage(page: Page, message: Message): Page {
  if (page.messages.some(({ id }) => id === message.id)) return page
  return { ...page, messages: [...page.messages, message] }
}
