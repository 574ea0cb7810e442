import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import { api, unwrap } from '../../../api/client.ts'
import { FormDialog, Select, TextArea } from '../../../parts/forms.tsx'
import { Field } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { asTimeOnDays, interval, inWords, type Schedule, timeOnDays, UNITS, type Unit } from './schedule.ts'
import type { Task } from './tasks.ts'

const t = texts.tasks
const KINDS = ['days', 'every', 'once', 'cron'] as const
type Kind = (typeof KINDS)[number]
const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone
/** Monday first. */
const WEEK = [1, 2, 3, 4, 5, 6, 0]

interface When {
  kind: Kind
  n: string
  unit: Unit
  time: string
  days: number[]
  at: string
  expr: string
  tz: string
}

/** Creates or changes a task: its schedule, and the message to the agent. */
export function TaskForm({ agentId, task, onClose }: { agentId: string; task?: Task; onClose: () => void }) {
  const [name, setName] = useState(task?.name ?? '')
  const [message, setMessage] = useState(task?.message ?? '')
  const [kind, setKind] = useState(task?.kind ?? 'agentTurn')
  const [when, setWhen] = useState(() => toForm(task?.schedule))
  const schedule = toSchedule(when)
  const save = useChange(async () => {
    if (!schedule) throw new Error(t.whenMissing)
    const more = kind === 'agentTurn' ? task?.more : {}
    const body = { name, schedule, payload: { ...more, kind, message } }
    if (!task) return unwrap(api.POST('/v0/agents/{agentId}/tasks', { params: { path: { agentId } }, body }))
    const sessionTarget = kind === 'systemEvent' ? 'main' : 'isolated'
    return unwrap(
      api.PUT('/v0/agents/{agentId}/tasks/{jobId}', {
        params: { path: { agentId, jobId: task.id } },
        body: { ...body, sessionTarget },
      }),
    )
  }, onClose)
  return (
    <FormDialog
      title={task ? t.editTitle : t.create}
      submit={task ? t.save : t.create}
      saving={save}
      disabled={!schedule}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Field
        label={t.name}
        required
        maxLength={200}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <TextArea
        label={t.message}
        required
        placeholder={t.messageExample}
        value={message}
        onChange={(event) => setMessage(event.target.value)}
      />
      <Select label={t.kind} value={kind} onChange={(event) => setKind(event.target.value as Task['kind'])}>
        <option value="agentTurn">{t.kinds.agentTurn}</option>
        <option value="systemEvent">{t.kinds.systemEvent}</option>
      </Select>
      <WhenFields value={when} onChange={setWhen} />
      {schedule && (
        <p className="rounded-lg bg-tint px-3 py-2 text-sm" aria-live="polite">
          {t.runsAt(inWords(schedule))}
        </p>
      )}
    </FormDialog>
  )
}

function WhenFields({ value, onChange }: { value: When; onChange: (when: When) => void }) {
  const set = (change: Partial<When>) => onChange({ ...value, ...change })
  const { kind, n, unit, time, days, at, expr, tz } = value
  return (
    <>
      <Select label={t.when} value={kind} onChange={(event) => set({ kind: event.target.value as Kind })}>
        {KINDS.map((one) => (
          <option key={one} value={one}>
            {t.whens[one]}
          </option>
        ))}
      </Select>
      {kind === 'every' && (
        <div className="grid grid-cols-2 gap-3">
          <Field
            label={t.number}
            type="number"
            min={1}
            required
            value={n}
            onChange={(event) => set({ n: event.target.value })}
          />
          <Select label={t.unit} value={unit} onChange={(event) => set({ unit: event.target.value as Unit })}>
            {(Object.keys(UNITS) as Unit[]).map((one) => (
              <option key={one} value={one}>
                {t.units[one]}
              </option>
            ))}
          </Select>
        </div>
      )}
      {kind === 'days' && (
        <>
          <fieldset className="flex flex-wrap gap-1" aria-label={t.onWhichDays}>
            {WEEK.map((day) => (
              <button
                key={day}
                type="button"
                aria-pressed={days.includes(day)}
                onClick={() =>
                  set({ days: days.includes(day) ? days.filter((one) => one !== day) : [...days, day] })
                }
                className="rounded-lg border border-line px-2.5 py-1.5 text-sm aria-pressed:border-accent aria-pressed:bg-tint aria-pressed:text-accent"
              >
                {t.days[day]}
              </button>
            ))}
          </fieldset>
          <Field
            label={t.time}
            type="time"
            required
            value={time}
            onChange={(event) => set({ time: event.target.value })}
          />
        </>
      )}
      {kind === 'once' && (
        <Field
          label={t.at}
          type="datetime-local"
          required
          value={at}
          onChange={(event) => set({ at: event.target.value })}
        />
      )}
      {kind === 'cron' && (
        <Field
          label={t.expr}
          required
          pattern="\s*\S+(\s+\S+){4}\s*"
          title={t.exprHint}
          placeholder="0 9 * * 1-5"
          value={expr}
          onChange={(event) => set({ expr: event.target.value })}
        />
      )}
      {(kind === 'days' || kind === 'cron') && (
        <Field label={t.zone} value={tz} onChange={(event) => set({ tz: event.target.value })} />
      )}
    </>
  )
}

/** The initial schedule of the form: the task's, or weekdays at nine. */
function toForm(schedule: Schedule | undefined): When {
  const form: When = {
    kind: 'days',
    n: '1',
    unit: 'hours',
    time: '09:00',
    days: [1, 2, 3, 4, 5],
    at: '',
    expr: '0 9 * * 1-5',
    tz: HERE,
  }
  if (schedule?.kind === 'every') {
    const { n, unit } = interval(schedule.everyMs)
    return { ...form, kind: 'every', n: String(n), unit }
  }
  if (schedule?.kind === 'at') return { ...form, kind: 'once', at: localTime(schedule.at) }
  if (schedule?.kind === 'cron') {
    const { expr, tz = '' } = schedule
    const simple = asTimeOnDays(expr)
    return { ...form, expr, tz, kind: simple ? 'days' : 'cron', ...simple }
  }
  return form
}

/** Undefined while the form is incomplete. */
function toSchedule({ kind, n, unit, time, days, at, expr, tz }: When): Schedule | undefined {
  const zone = tz.trim() && { tz: tz.trim() }
  if (kind === 'every')
    return Number(n) > 0 ? { kind, everyMs: Math.round(Number(n) * UNITS[unit]) } : undefined
  if (kind === 'once') return at ? { kind: 'at', at: new Date(at).toISOString() } : undefined
  if (kind === 'cron') return expr.trim() ? { kind, expr: expr.trim(), ...zone } : undefined
  return time && days.length > 0 ? { kind: 'cron', expr: timeOnDays(time, days), ...zone } : undefined
}

/** The value for a `datetime-local` field: the local time without its zone. */
function localTime(at: string): string {
  const time = new Date(at)
  const local = new Date(time.getTime() - time.getTimezoneOffset() * UNITS.minutes)
  return Number.isNaN(local.getTime()) ? '' : local.toISOString().slice(0, 16)
}
