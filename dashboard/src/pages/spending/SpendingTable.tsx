import type { ReactNode } from 'react'
import { compact, duration, usd } from '../../parts/format.ts'
import { Section } from '../../parts/section.tsx'
import { Cell, Table } from '../../parts/table.tsx'
import { texts } from '../../texts.ts'
import { type Row, tokensOf } from './spending.ts'

const t = texts.spending
const { usd: money, tokens, requests, errors, latency } = t.columns
const NUMBERS = [money, tokens, requests, errors, latency]

/** Spending in rows, the most expensive first. */
export function SpendingTable({
  title,
  hint,
  rows,
  nameOf,
}: {
  title: string
  hint?: string
  rows: Row[]
  nameOf: (row: Row) => { id: string; name: ReactNode }
}) {
  if (rows.length === 0) return null
  const sorted = rows.toSorted((a, b) => Number(b.usd) - Number(a.usd) || tokensOf(b) - tokensOf(a))
  return (
    <Section title={title} {...(hint && { hint })}>
      <Table label={title} columns={[t.columns.name, ...NUMBERS]} numbers={NUMBERS}>
        {sorted.map((row) => {
          const { id, name } = nameOf(row)
          return (
            <tr key={id}>
              <Cell className="w-full max-w-0 break-words">{name}</Cell>
              <Cell numeric className="font-medium">
                <span title={row.estimated.requests > 0 ? t.estimated(usd(row.estimated.usd)) : undefined}>
                  {usd(row.usd)}
                </span>
              </Cell>
              <Cell numeric>
                <span title={t.tokensOf(row.tokens)}>{compact(tokensOf(row))}</span>
              </Cell>
              <Cell numeric>{row.requests.toLocaleString('en')}</Cell>
              <Cell numeric className={row.errors > 0 ? 'text-bad' : 'text-soft'}>
                {row.errors.toLocaleString('en')}
              </Cell>
              <Cell numeric className="text-soft">
                {t.latency(duration(row.latencyMs.firstByte), duration(row.latencyMs.total))}
              </Cell>
            </tr>
          )
        })}
      </Table>
    </Section>
  )
}
