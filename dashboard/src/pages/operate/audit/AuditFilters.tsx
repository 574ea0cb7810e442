import { useTyped } from '../../../parts/typed.ts'
import { texts } from '../../../texts.ts'
import { Filter } from '../Filter.tsx'
import type { AuditSearch } from './search.ts'

const t = texts.operate.audit
const FIELD = 'min-h-9 rounded-lg border border-line bg-card px-3 py-1.5 text-sm placeholder:text-soft'

export function AuditFilters({
  asked,
  mayChoose,
  onChange,
}: {
  asked: AuditSearch
  /** True if the user may see both audit logs. */
  mayChoose: boolean
  onChange: (change: AuditSearch) => void
}) {
  return (
    <div className="mb-3 flex flex-wrap gap-2">
      {mayChoose && (
        <Filter
          label={t.scope}
          value={asked.of ?? ''}
          onChange={(value) => onChange({ of: value === 'instance' ? value : undefined })}
          options={[
            ['', t.ofWorkspace],
            ['instance', t.ofInstance],
          ]}
        />
      )}
      <Filter
        label={t.result}
        value={asked.result ?? ''}
        onChange={(value) =>
          onChange({ result: value === 'done' || value === 'refused' ? value : undefined })
        }
        options={[
          ['', `${t.result}: ${texts.operate.all}`],
          ['done', t.results.done],
          ['refused', t.results.refused],
        ]}
      />
      <Typed label={t.action} value={asked.action} onChange={(action) => onChange({ action })} />
      <Typed label={t.resource} value={asked.resource} onChange={(resource) => onChange({ resource })} />
      <Day label={t.from} value={asked.from} onChange={(from) => onChange({ from })} />
      <Day label={t.to} value={asked.to} onChange={(to) => onChange({ to })} />
    </div>
  )
}

interface Field {
  label: string
  value: string | undefined
  onChange: (value: string | undefined) => void
}

/** A text filter that takes effect when typing pauses. */
function Typed({ label, value = '', onChange }: Field) {
  const [typed, setTyped] = useTyped(value, (typed) => onChange(typed || undefined))
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      maxLength={255}
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
      className={`min-w-56 flex-1 ${FIELD}`}
    />
  )
}

function Day({ label, value = '', onChange }: Field) {
  return (
    <label className="flex items-center gap-2 text-soft text-sm">
      {label}
      <input
        type="date"
        value={value}
        onChange={(event) => onChange(event.target.value || undefined)}
        className={`text-ink ${FIELD}`}
      />
    </label>
  )
}
