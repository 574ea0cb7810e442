import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAgent } from '../../api/agent.ts'
import { useChange } from '../../api/change.ts'
import { api, unwrap } from '../../api/client.ts'
import { Choice } from '../../parts/choice.tsx'
import { Fields } from '../../parts/rights.tsx'
import { Note, Section } from '../../parts/section.tsx'
import { Button, Loading, Problem } from '../../parts/ui.tsx'
import { Unsaved } from '../../parts/unsaved.tsx'
import { texts } from '../../texts.ts'
import { AllSettings } from './config/AllSettings.tsx'
import { ConfigEditor } from './config/ConfigEditor.tsx'
import { ConfigForm } from './config/ConfigForm.tsx'
import { type Json, parse } from './config/config.ts'
import { EngineAway } from './EngineAway.tsx'

const t = texts.config
type View = keyof typeof t.views

/** The engine's config: common settings as a form, all settings by the engine's schema, and everything as JSON. */
export function Config() {
  const { agentId, agent } = useAgent()
  const params = { path: { agentId } }
  const [view, setView] = useState<View>('form')
  /** The unsaved text; undefined if there is none. */
  const [draft, setDraft] = useState<string>()
  const [said, setSaid] = useState<{ of: string; valid: boolean; output: string }>()
  const stored = useQuery({
    queryKey: ['agents', agentId, 'config'],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}/config', { params })),
    retry: false,
  })
  const operator = useQuery({
    queryKey: ['agents', agentId, 'config', 'operator'],
    queryFn: () => unwrap(api.GET('/v0/agents/{agentId}/config/operator-keys', { params })),
    retry: false,
  })
  const before = stored.data?.config ?? ''
  const text = draft ?? before
  const config = parse(text)
  const change = (next: string) => setDraft(next === before ? undefined : next)
  const changeTo = (next: Json) => change(`${JSON.stringify(next, null, 2)}\n`)
  const check = useChange(async (config: string) => {
    const verdict = await unwrap(
      api.POST('/v0/agents/{agentId}/config/validate', { params, body: { config } }),
    )
    return { of: config, ...verdict }
  }, setSaid)
  const save = useChange(
    async (config: string) => {
      await unwrap(api.PUT('/v0/agents/{agentId}/config', { params, body: { config } }))
      const { data } = await stored.refetch()
      return { sent: config, kept: data?.config ?? config }
    },
    ({ sent, kept }) => {
      // Keep text that was typed during the save.
      setDraft((now) => (now === sent ? undefined : now))
      setSaid({ of: kept, valid: true, output: t.saved })
    },
  )
  // Do not show an error about another text.
  const failed = [check, save].find(({ error, variables }) => error && variables === text)
  if (!agent) return null
  if (stored.error) return <EngineAway error={stored.error} agent={agent} />
  if (!stored.data) return <Loading />
  const isBusy = check.isPending || save.isPending
  return (
    <Section
      title={t.title}
      hint={t.hint}
      actions={
        <Choice
          label={t.view}
          value={view}
          onChange={setView}
          options={(Object.keys(t.views) as View[]).map((one) => [one, t.views[one]] as const)}
        />
      }
    >
      {view !== 'json' && !config.value && <Note>{t.notJson}</Note>}
      {view === 'form' && config.value && (
        <Fields>
          <ConfigForm config={config.value} onChange={changeTo} />
        </Fields>
      )}
      {view === 'all' && config.value && (
        <AllSettings
          agentId={agentId}
          config={config.value}
          operatorKeys={operator.data?.keys ?? []}
          onChange={changeTo}
        />
      )}
      {view === 'json' && (
        <ConfigEditor text={text} onChange={change} operatorKeys={operator.data?.keys ?? []} />
      )}
      <Unsaved isOn={draft !== undefined} />
      {config.error && <Problem error={new Error(config.error)} />}
      <Problem error={operator.error ?? failed?.error ?? null} />
      {said?.of === text && <Verdict {...said} />}
      <div className="sticky bottom-13.5 z-10 -mx-4 mt-4 flex flex-wrap items-center justify-end gap-2 border-line border-t bg-page px-4 py-3 md:bottom-0">
        {draft !== undefined && <span className="mr-auto text-busy text-sm">{t.unsaved}</span>}
        {draft !== undefined && <Button onClick={() => change(before)}>{t.discard}</Button>}
        <Button changes disabled={!config.value || isBusy} onClick={() => check.mutate(text)}>
          {check.isPending ? t.checking : t.check}
        </Button>
        <Button
          changes
          look="main"
          disabled={draft === undefined || !config.value || isBusy}
          onClick={() => save.mutate(text)}
        >
          {save.isPending ? t.saving : t.save}
        </Button>
      </div>
    </Section>
  )
}

function Verdict({ valid, output }: { valid: boolean; output: string }) {
  return (
    <p
      role="status"
      className={`mt-3 whitespace-pre-line break-words text-sm ${valid ? 'text-good' : 'text-bad'}`}
    >
      {valid ? output || t.valid : `${t.invalid}\n${output}`}
    </p>
  )
}
