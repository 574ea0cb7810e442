import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, unwrap } from '../../../api/client.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { Time } from '../../../parts/time.tsx'
import { Button, Loading } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { conversationsKey } from './conversation.ts'

interface Listed {
  conversationId: string
  title: string | null
  updatedAt: string | null
  isReplying: boolean
}

/** The conversations with an agent, with buttons to open, start and delete one. */
export function Conversations({
  agentId,
  chosen,
  conversations,
  onNew,
}: {
  agentId: string
  chosen: string
  /** Undefined until loaded. */
  conversations: Listed[] | undefined
  onNew: () => void
}) {
  const [isGoing, setGoing] = useState<Listed>()
  return (
    <aside aria-label={texts.chat.conversations} className="min-w-0">
      <Button changes className="mb-3 w-full" onClick={onNew}>
        {texts.chat.begin}
      </Button>
      {!conversations && <Loading atOnce />}
      <ul className="max-h-28 space-y-1 overflow-y-auto md:max-h-[60dvh]">
        {conversations?.map((one) => (
          <li key={one.conversationId} className="group flex items-center gap-1">
            <Link
              to="/dashboard/agents/$agentId"
              params={{ agentId }}
              search={{ conversation: one.conversationId }}
              aria-current={one.conversationId === chosen ? 'page' : undefined}
              className="min-w-0 flex-1 rounded-lg px-3 py-2 text-sm hover:bg-card aria-[current=page]:bg-tint aria-[current=page]:text-accent"
            >
              <span className="block truncate">{one.title ?? texts.chat.untitled}</span>
              <span className="block text-soft text-xs">
                {one.isReplying ? texts.chat.replying : one.updatedAt && <Time at={one.updatedAt} />}
              </span>
            </Link>
            <Button
              changes
              look="bare"
              aria-label={texts.chat.remove(one.title ?? texts.chat.untitled)}
              onClick={() => setGoing(one)}
              className="size-8 text-soft hover:text-bad"
            >
              ×
            </Button>
          </li>
        ))}
      </ul>
      {isGoing && (
        <Remove
          agentId={agentId}
          conversation={isGoing}
          onClose={() => setGoing(undefined)}
          onGone={() => isGoing.conversationId === chosen && onNew()}
        />
      )}
    </aside>
  )
}

function Remove({
  agentId,
  conversation: { conversationId, title },
  onClose,
  onGone,
}: {
  agentId: string
  conversation: Listed
  onClose: () => void
  onGone: () => void
}) {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () =>
      unwrap(
        api.DELETE('/v0/agents/{agentId}/conversations/{conversationId}', {
          params: { path: { agentId, conversationId } },
        }),
      ),
    async onSuccess() {
      await queries.invalidateQueries({ queryKey: conversationsKey(agentId) })
      onGone()
      onClose()
    },
  })
  return (
    <FormDialog
      title={texts.chat.removeTitle}
      hint={texts.chat.removeHint(title ?? texts.chat.untitled)}
      submit={texts.chat.removeButton}
      look="danger"
      saving={remove}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    />
  )
}
