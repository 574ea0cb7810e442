import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { TextArea } from '../../../parts/forms.tsx'
import { Fields } from '../../../parts/rights.tsx'
import { Section } from '../../../parts/section.tsx'
import { Button, Card, Field, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'

const t = texts.settings
const NAMES = ['name', 'emoji', 'description', 'vibe'] as const
type Told = Record<(typeof NAMES)[number], string>

/** The agent's name and description, which its owner chooses. */
export function Names({
  agent,
}: {
  agent: { agentId: string; name: string } & Record<'emoji' | 'description' | 'vibe', string | null>
}) {
  const { agentId } = agent
  const queries = useQueryClient()
  const before: Told = {
    name: agent.name,
    emoji: agent.emoji ?? '',
    description: agent.description ?? '',
    vibe: agent.vibe ?? '',
  }
  /** Unsaved input, which survives changes that the agent makes itself. */
  const [draft, setDraft] = useState<Partial<Told>>({})
  const unsaved = Object.fromEntries(
    Object.entries(draft).filter(([name, text]) => text !== before[name as keyof Told]),
  )
  if (Object.keys(unsaved).length < Object.keys(draft).length) setDraft(unsaved)
  const told = { ...before, ...unsaved }
  const isChanged = NAMES.some((name) => told[name] !== before[name])
  const save = useChange(
    async (sent: Told) => {
      const { name, emoji, description, vibe } = sent
      const body = { name, emoji: emoji || null, description: description || null, vibe: vibe || null }
      await unwrap(
        api.PATCH('/v0/agents/{agentId}/platform/metadata', { params: { path: { agentId } }, body }),
      )
      await queries.invalidateQueries()
      return sent
    },
    // Keep input that was typed during the save.
    (sent) =>
      setDraft((now) =>
        Object.fromEntries(Object.entries(now).filter(([name, text]) => text !== sent[name as keyof Told])),
      ),
  )
  const send = (event: FormEvent) => {
    event.preventDefault()
    save.mutate(told)
  }
  const field = (name: keyof Told) => ({
    label: t.fields[name],
    value: told[name],
    onChange: (event: { target: { value: string } }) => setDraft({ ...unsaved, [name]: event.target.value }),
  })
  return (
    <Section title={t.names} hint={t.namesHint}>
      <Card>
        <form onSubmit={send}>
          <Fields>
            <div className="grid gap-4 md:grid-cols-[minmax(0,1fr)_8rem]">
              <Field required maxLength={100} {...field('name')} />
              <Field maxLength={32} {...field('emoji')} />
              <div className="md:col-span-2">
                <TextArea rows={2} maxLength={10_000} {...field('description')} />
              </div>
              <div className="md:col-span-2">
                <Field maxLength={200} placeholder={t.vibeExample} {...field('vibe')} />
              </div>
            </div>
          </Fields>
          <Problem error={save.error} />
          <div className="mt-4 flex justify-end">
            <Button changes look="main" type="submit" disabled={!isChanged || save.isPending}>
              {t.save}
            </Button>
          </div>
        </form>
      </Card>
    </Section>
  )
}
