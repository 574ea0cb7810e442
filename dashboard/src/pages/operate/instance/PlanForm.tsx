import { useState } from 'react'
import { useChange } from '../../../api/change.ts'
import type { paths } from '../../../api/client.ts'
import { api, unwrap } from '../../../api/client.ts'
import { FormDialog } from '../../../parts/forms.tsx'
import { Field } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'

const t = texts.operate.plans
const fields = texts.spending.budget
type Page = paths['/v0/admin/plans']['get']['responses'][200]['content']['application/json']
export type Plan = Page['data']['plans'][number]

/** Changes what a plan lets a workspace spend on models. */
export function ChangePlan({
  plan: { name, modelUsdPerMonth, modelTokensPerMonth },
  onClose,
}: {
  plan: Plan
  onClose: () => void
}) {
  const [usd, setUsd] = useState(modelUsdPerMonth ?? '')
  const [tokens, setTokens] = useState(modelTokensPerMonth === null ? '' : String(modelTokensPerMonth))
  const save = useChange(
    () =>
      unwrap(
        api.PATCH('/v0/admin/plans/{name}', {
          params: { path: { name } },
          body: {
            modelUsdPerMonth: usd.trim() || null,
            modelTokensPerMonth: tokens.trim() ? Number(tokens) : null,
          },
        }),
      ),
    onClose,
  )
  return (
    <FormDialog
      title={t.formTitle(name)}
      hint={t.formHint}
      submit={t.save}
      saving={save}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Field
        label={t.columns.modelUsdPerMonth}
        inputMode="decimal"
        pattern="\s*(0|[1-9]\d{0,6})(\.\d{1,6})?\s*"
        title={fields.usdExample}
        placeholder={fields.none}
        value={usd}
        onChange={(event) => setUsd(event.target.value)}
      />
      <Field
        label={t.columns.modelTokensPerMonth}
        type="number"
        min={0}
        step={1}
        placeholder={fields.none}
        value={tokens}
        onChange={(event) => setTokens(event.target.value)}
      />
    </FormDialog>
  )
}
