import { type ReactNode, useState } from 'react'
import { Choice } from '../../parts/choice.tsx'
import { compact, usd } from '../../parts/format.ts'
import { Card } from '../../parts/ui.tsx'
import { texts } from '../../texts.ts'
import { DayPlot } from './DayPlot.tsx'
import { type Row, type Spending, seriesOf, tokensOf } from './spending.ts'

const t = texts.spending
const MEASURES = ['usd', 'tokens'] as const

/** A plot of spending by day, in money or tokens, with the totals. Tokens come first if nothing cost money. */
export function PlotCard({
  days,
  spending: { rows, total },
  nameOf,
  children,
}: {
  days: string[]
  spending: Spending
  /** The series that a row belongs to. */
  nameOf: (row: Row) => { id: string; label: string }
  /** Further choices. */
  children?: ReactNode
}) {
  const [chosen, choose] = useState<(typeof MEASURES)[number]>()
  const measure = chosen ?? (Number(total.usd) > 0 ? 'usd' : 'tokens')
  const amountOf = measure === 'usd' ? (row: Row) => Number(row.usd) : tokensOf
  const other = measure === 'usd' ? t.tokens(compact(tokensOf(total))) : usd(total.usd)
  return (
    <Card className="mb-8">
      <DayPlot
        title={t.plot[measure]}
        note={[other, t.requestsOf(total.requests), t.errorsOf(total.errors)].filter(Boolean).join(' · ')}
        days={days}
        series={seriesOf(rows, nameOf, amountOf)}
        format={measure === 'usd' ? usd : compact}
      >
        {children}
        <Choice
          label={t.measure}
          value={measure}
          onChange={choose}
          options={MEASURES.map((one) => [one, t.measures[one]] as const)}
        />
      </DayPlot>
    </Card>
  )
}
