import { bytes } from '../../../parts/format.ts'
import { Section } from '../../../parts/section.tsx'
import { Cell, Table } from '../../../parts/table.tsx'
import { Problem } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'
import { Only } from '../Only.tsx'
import { usePlans } from './plans.ts'

const t = texts.operate.plans
type Name = keyof typeof t.columns

/** The plans with their limits. */
export function Plans() {
  return (
    <Only who="admins">
      <List />
    </Only>
  )
}

function List() {
  const { plans, error } = usePlans()
  return (
    <Section title={t.title} hint={t.hint}>
      <Problem error={error} />
      {!plans && !error && <p className="text-soft text-sm">{texts.loading}</p>}
      {plans && (
        <Table label={t.title} columns={Object.values(t.columns)}>
          {plans.map((plan) => (
            <tr key={plan.name}>
              {(Object.keys(t.columns) as Name[]).map((column) => (
                <Cell
                  key={column}
                  className={`whitespace-nowrap ${column === 'name' ? 'font-medium' : 'tabular-nums'}`}
                >
                  {inWords(column, plan[column])}
                </Cell>
              ))}
            </tr>
          ))}
        </Table>
      )}
    </Section>
  )
}

function inWords(column: Name, value: string | number | boolean | null): string {
  if (value === null) return column === 'agentDiskMb' ? t.asSet : t.unlimited
  if (typeof value === 'boolean') return value ? t.yes : t.no
  if (typeof value === 'string') return value
  if (column === 'storageBytes' || column === 'maxFileBytes') return bytes(value)
  return column === 'agentDiskMb' ? t.megabytes(value) : value.toLocaleString('en')
}
