import { useState } from 'react'
import { FormDialog } from '../../parts/forms.tsx'
import { Field } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { type Budget, PERIODS, useSetBudget } from './budget.ts'

const t = texts.spending.budget

/** Text fields by limit; empty means no limit. */
interface Draft {
  usd: Record<'day' | 'month', string>
  tokens: Record<'day' | 'month', string>
  requests: string
}

const textOf = (limit: string | number | null) => (limit === null ? '' : String(limit))
const numberOf = (text: string) => (text.trim() ? Number(text) : null)

/** Changes the limits of an agent, or of the workspace. */
export function BudgetForm({
  agentId,
  budget: { day, month, requestsPerMinute },
  onClose,
}: {
  agentId?: string
  budget: Budget
  onClose: () => void
}) {
  const [draft, setDraft] = useState<Draft>({
    usd: { day: textOf(day.usd.limit), month: textOf(month.usd.limit) },
    tokens: { day: textOf(day.tokens.limit), month: textOf(month.tokens.limit) },
    requests: textOf(requestsPerMinute.limit),
  })
  const save = useSetBudget(agentId, onClose)
  const limitsOf = (period: 'day' | 'month') => ({
    usd: draft.usd[period].trim() || null,
    tokens: numberOf(draft.tokens[period]),
  })
  const submit = () =>
    save.mutate({
      day: limitsOf('day'),
      month: limitsOf('month'),
      requestsPerMinute: numberOf(draft.requests),
    })
  return (
    <FormDialog
      title={agentId ? t.ofAgent : t.ofWorkspace}
      hint={t.formHint}
      submit={t.save}
      saving={save}
      onSubmit={submit}
      onClose={onClose}
    >
      {PERIODS.map((period) => (
        <div key={period} className="grid gap-4 sm:grid-cols-2">
          <Field
            label={t.usdPer[period]}
            inputMode="decimal"
            pattern="\s*(0|[1-9]\d{0,6})(\.\d{1,6})?\s*"
            title={t.usdExample}
            placeholder={t.none}
            value={draft.usd[period]}
            onChange={(event) => setDraft({ ...draft, usd: { ...draft.usd, [period]: event.target.value } })}
          />
          <Field
            label={t.tokensPer[period]}
            type="number"
            min={0}
            step={1}
            placeholder={t.none}
            value={draft.tokens[period]}
            onChange={(event) =>
              setDraft({ ...draft, tokens: { ...draft.tokens, [period]: event.target.value } })
            }
          />
        </div>
      ))}
      <Field
        label={t.requestsPerMinute}
        type="number"
        min={0}
        step={1}
        placeholder={t.none}
        value={draft.requests}
        onChange={(event) => setDraft({ ...draft, requests: event.target.value })}
      />
      <p className="text-soft text-sm">{t.moneyHint}</p>
    </FormDialog>
  )
}
