import { useState } from 'react'
import { bytes } from '../../../parts/format.ts'
import { Section } from '../../../parts/section.tsx'
import { Cell, Table } from '../../../parts/table.tsx'
import { Button, Loading, Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { RequireRole } from '../RequireRole.tsx'
import { ChangePlan, type Plan } from './PlanForm.tsx'
import { usePlans } from './plans.ts'

const t = texts.operate.plans
type Name = keyof typeof t.columns
const ALLOWED = Object.keys(t.columns) as Name[]

/** The plans with their limits. */
export function Plans() {
  return (
    <RequireRole who="admins">
      <List />
    </RequireRole>
  )
}

function List() {
  const { plans, error } = usePlans()
  const [open, setOpen] = useState<Plan>()
  return (
    <Section title={t.title} hint={t.hint}>
      <Problem error={error} />
      {!plans && !error && <Loading />}
      {plans && (
        <Table
          label={t.title}
          columns={[t.allows, ...plans.map(({ name }) => name)]}
          numbers={plans.map(({ name }) => name)}
        >
          {ALLOWED.map((column) => (
            <tr key={column}>
              <Cell className="w-full whitespace-nowrap">{t.columns[column]}</Cell>
              {plans.map((plan) => (
                <Cell key={plan.name} numeric>
                  {inWords(column, plan[column])}
                </Cell>
              ))}
            </tr>
          ))}
          <tr>
            <Cell>{t.models}</Cell>
            {plans.map((plan) => (
              <Cell key={plan.name} numeric>
                <Button onClick={() => setOpen(plan)}>{t.change}</Button>
              </Cell>
            ))}
          </tr>
        </Table>
      )}
      {open && <ChangePlan plan={open} onClose={() => setOpen(undefined)} />}
    </Section>
  )
}

function inWords(column: Name, value: number | boolean | string | null): string {
  if (value === null) return column === 'agentDiskMb' || column === 'replicas' ? t.asSet : t.unlimited
  if (typeof value === 'boolean') return value ? t.yes : t.no
  if (typeof value === 'string') return `$${value}`
  if (column === 'storageBytes' || column === 'maxFileBytes') return bytes(value)
  return column === 'agentDiskMb' ? t.megabytes(value) : value.toLocaleString('en')
}
