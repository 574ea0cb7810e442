import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { Check } from '../../../parts/choice.tsx'
import { FormDialog, Select } from '../../../parts/forms.tsx'
import { Field } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { useAgents } from '../../agents/agents.ts'
import { type Pattern, SORTS, type Webhook } from './webhooks.ts'

const t = texts.operate.webhooks

/** Creates or changes a webhook. */
export function WebhookForm({
  webhook,
  onMade,
  onClose,
}: {
  webhook?: Webhook
  /** Receives the secret of a new webhook. */
  onMade?: (secret: string) => void
  onClose: () => void
}) {
  const [url, setUrl] = useState(webhook?.url ?? '')
  const [events, setEvents] = useState<readonly Pattern[]>(
    (webhook?.events as Pattern[] | undefined) ?? ['*'],
  )
  const [agentId, setAgent] = useState(webhook?.agentId ?? '')
  const agents = useAgents()
  const save = useChange(async () => {
    const body = { url, events: [...events], agentId: agentId || null }
    if (webhook) {
      await unwrap(api.PATCH('/v0/webhooks/{id}', { params: { path: { id: webhook.id } }, body }))
      onClose()
    } else onMade?.((await unwrap(api.POST('/v0/webhooks', { body }))).data.secret)
  })
  return (
    <FormDialog
      title={webhook ? t.edit : t.create}
      submit={webhook ? t.save : t.submit}
      saving={save}
      disabled={events.length === 0}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <div>
        <Field
          label={t.url}
          type="url"
          required
          maxLength={2048}
          placeholder="https://example.com/berth"
          value={url}
          onChange={(event) => setUrl(event.target.value)}
        />
        <p className="mt-1 text-soft text-xs">{t.urlHint}</p>
      </div>
      <EventPicker events={events} onChange={setEvents} />
      <Select label={t.onlyAgent} value={agentId} onChange={(event) => setAgent(event.target.value)}>
        <option value="">{t.anyAgent}</option>
        {agents.data?.agents.map((agent) => (
          <option key={agent.agentId} value={agent.agentId}>
            {agent.name}
          </option>
        ))}
      </Select>
    </FormDialog>
  )
}

/** Selects event types one by one or by category. */
function EventPicker({
  events,
  onChange,
}: {
  events: readonly Pattern[]
  onChange: (events: readonly Pattern[]) => void
}) {
  const has = (pattern: Pattern) => events.includes(pattern)
  const put = (isOn: boolean, pattern: Pattern, instead: readonly Pattern[] = []) => {
    const rest = events.filter((one) => one !== pattern && !instead.includes(one))
    onChange(isOn ? [...rest, pattern] : rest)
  }
  return (
    <fieldset aria-label={t.events} className="space-y-2">
      <legend className="mb-1 font-medium text-sm">{t.events}</legend>
      <Check label={t.everything} checked={has('*')} onChange={(isOn) => onChange(isOn ? ['*'] : [])} />
      {!has('*') && (
        <div className="max-h-60 space-y-3 overflow-y-auto rounded-lg border border-line p-3">
          {SORTS.map(({ all, label, types }) => (
            <div key={all} className="space-y-1.5">
              <Check label={label} hint={all} checked={has(all)} onChange={(isOn) => put(isOn, all, types)} />
              {!has(all) && types.length > 1 && (
                <div className="space-y-1 pl-6">
                  {types.map((type) => (
                    <Check key={type} label={type} checked={has(type)} onChange={(isOn) => put(isOn, type)} />
                  ))}
                </div>
              )}
            </div>
          ))}
        </div>
      )}
      {events.length === 0 && <p className="text-bad text-sm">{t.needed}</p>}
    </fieldset>
  )
}
