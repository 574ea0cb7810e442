import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { api, unwrap } from '../../api/client.ts'
import { useMayChange } from '../../parts/rights.tsx'
import { Button, Loading } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { Composer } from './chat/Composer.tsx'
import { Conversations } from './chat/Conversations.tsx'
import { conversationsKey, type Message, resultsOf, useConversation } from './chat/conversation.ts'
import { Answer, Said, ToolCall } from './chat/MessageView.tsx'
import { Trouble } from './chat/Trouble.tsx'
import { EngineAway } from './EngineAway.tsx'

/** The chat with an agent: its conversations, and the one in the URL, or the latest one by default. */
export function Chat() {
  const { agentId, agent } = useAgent()
  const navigate = useNavigate()
  const { conversation } = useSearch({ from: '/shell/dashboard/agents/$agentId/' })
  const { data, error } = useQuery({
    queryKey: conversationsKey(agentId),
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}/conversations', { params: { path: { agentId } } })),
    retry: false,
  })
  const [fresh] = useState(() => crypto.randomUUID())
  const known = data?.conversations ?? []
  const chosen = conversation ?? known[0]?.conversationId ?? fresh
  // Put the conversation into the URL, so that a changed list does not switch to another one.
  useEffect(() => {
    if (data && conversation === undefined)
      void navigate({ to: '.', search: { conversation: chosen }, replace: true })
  }, [data, conversation, chosen, navigate])
  const begin = () => void navigate({ to: '.', search: { conversation: crypto.randomUUID() } })
  if (!data && agent && error) return <EngineAway error={error} agent={agent} />
  return (
    <div className="grid gap-4 md:grid-cols-[13rem_1fr]">
      <Conversations agentId={agentId} chosen={chosen} conversations={data?.conversations} onNew={begin} />
      {data || conversation ? (
        <Conversation key={chosen} agentId={agentId} conversationId={chosen} />
      ) : (
        <section aria-label={texts.chat.title} className={FRAME}>
          <div className="p-4 md:p-6">
            <Loading atOnce />
          </div>
        </section>
      )}
    </div>
  )
}

const FRAME =
  'flex h-[calc(100dvh-26rem)] min-h-80 min-w-0 flex-col rounded-xl border border-line bg-card md:h-[calc(100dvh-14rem)] md:min-h-96'

function Conversation({ agentId, conversationId }: { agentId: string; conversationId: string }) {
  const { history, messages, reply, isBusy, say, readMore } = useConversation(agentId, conversationId)
  const stop = useMutation({
    mutationFn: () =>
      unwrap(
        api.POST('/v0/agents/{agentId}/conversations/{conversationId}/stop', {
          params: { path: { agentId, conversationId } },
        }),
      ),
  })
  const results = resultsOf(messages)
  const last = messages.findLast(({ role }) => role !== 'tool')
  const writing = Object.entries(reply.texts)
  /** A page that joins in the middle of a reply does not learn which calls run, so it assumes the last ones. */
  const isAtLast = (message: Message) => isBusy && message === last && writing.length === 0
  const isEmpty = history.data && messages.length === 0 && !isBusy && !reply.said
  const place = useStayAtEnd()
  const mayChange = useMayChange()
  return (
    <section aria-label={texts.chat.title} className={FRAME}>
      <div
        ref={place}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
        tabIndex={0}
        role="log"
        aria-label={texts.chat.messages}
        aria-busy={isBusy}
        className="min-h-0 flex-1 overflow-y-auto p-4 md:p-6"
      >
        {readMore && (
          <div className="mb-4 text-center">
            <Button onClick={readMore}>{texts.chat.earlier}</Button>
          </div>
        )}
        {history.isPending && !reply.said && <Loading atOnce />}
        {isEmpty && (
          <div className="grid h-full place-content-center text-center">
            <p className="font-medium">{texts.chat.empty}</p>
            {mayChange && <p className="mt-1 text-soft text-sm">{texts.chat.emptyHint}</p>}
          </div>
        )}
        <ol className="mx-auto max-w-3xl space-y-5">
          {messages.map((message) => {
            const { id, role, text, createdAt, toolCalls, isError } = message
            if (role === 'tool') return null
            if (role === 'user') return <Said key={id} text={text} time={createdAt} />
            return [
              text && <Answer key={id} text={text} isError={isError} time={createdAt} />,
              ...toolCalls.map((call) => (
                <ToolCall
                  key={`${id} ${call.id}`}
                  call={call}
                  result={results.get(call)}
                  state={reply.calls[call.id] ?? (isAtLast(message) ? 'running' : undefined)}
                />
              )),
            ]
          })}
          {reply.said && <Said text={reply.said} />}
          {writing.map(([item, text]) => (
            <Answer key={item} text={text} />
          ))}
          {isBusy && writing.length === 0 && (
            <li className="text-soft text-sm motion-safe:animate-pulse">{texts.chat.thinking}</li>
          )}
        </ol>
      </div>
      <Trouble
        agentId={agentId}
        error={reply.error ?? stop.error ?? history.error}
        isEngine={reply.hasFailed}
      />
      {mayChange ? (
        <Composer isBusy={isBusy} onSay={say} onStop={() => stop.mutate()} />
      ) : (
        <p className="border-line border-t p-4 text-center text-soft text-sm">{texts.shell.viewersOnly}.</p>
      )}
    </section>
  )
}

/** Keeps a box scrolled to its end as content arrives, unless somebody has scrolled up. */
function useStayAtEnd() {
  const place = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  useEffect(() => {
    const box = place.current
    const look = () => {
      if (box) isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 80
    }
    box?.addEventListener('scroll', look)
    return () => box?.removeEventListener('scroll', look)
  }, [])
  useEffect(() => {
    if (isAtEnd.current) place.current?.scrollTo({ top: place.current.scrollHeight })
  })
  return place
}
