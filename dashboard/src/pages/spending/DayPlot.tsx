import { type ReactNode, useState } from 'react'
import { niceTop } from '../../parts/plot.ts'
import { Cell, Table } from '../../parts/table.tsx'
import { texts } from '../../texts.ts'
import type { Series } from './spending.ts'

const t = texts.spending
const STEP = 20
const HEIGHT = 140
/** By the place of the series; the last is for the sum of the others. */
const FILLS = ['fill-plot-1', 'fill-plot-2', 'fill-plot-3', 'fill-plot-4', 'fill-plot-5', 'fill-plot-other']
const DOTS = ['bg-plot-1', 'bg-plot-2', 'bg-plot-3', 'bg-plot-4', 'bg-plot-5', 'bg-plot-other']
const DATE = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' })
const dateOf = (day = '') => (day ? DATE.format(Date.parse(day)) : '')

/**
 * A column for each day, made of the series. The amounts are those of all days, or of the day under the pointer; the
 * arrow keys choose a day, too. A table has the same values.
 */
export function DayPlot({
  title,
  note,
  days,
  series,
  format,
  children,
}: {
  title: string
  /** Further totals of all days. */
  note: string
  days: string[]
  series: Series[]
  format: (value: number) => string
  /** Choices of what is shown. */
  children: ReactNode
}) {
  const [chosen, choose] = useState<number>()
  const on = (day = '') => series.reduce((sum, { byDay }) => sum + (byDay.get(day) ?? 0), 0)
  const top = niceTop(Math.max(...days.map(on)))
  const day = chosen === undefined ? undefined : days[chosen]
  const total = series.reduce((sum, one) => sum + one.total, 0)
  const shown = format(day === undefined ? total : on(day))
  return (
    <>
      <div className="flex flex-wrap items-start justify-between gap-3">
        <div>
          <p className="text-soft text-sm">{day ? t.onDay(title, dateOf(day)) : title}</p>
          <p className="font-semibold text-3xl tabular-nums tracking-tight">{shown}</p>
          <p className="mt-0.5 text-soft text-sm tabular-nums">{note}</p>
        </div>
        <div className="flex flex-wrap gap-2">{children}</div>
      </div>
      <figure aria-label={t.perDay(title)} className="mt-3">
        <p aria-hidden="true" className="text-right text-soft text-xs tabular-nums">
          {format(top)}
        </p>
        <div className="relative mt-1 rounded-sm outline-accent outline-offset-4 has-focus-visible:outline-2">
          <svg
            aria-hidden="true"
            viewBox={`0 0 ${days.length * STEP} ${HEIGHT}`}
            preserveAspectRatio="none"
            className="block h-44 w-full"
          >
            {[0, 0.5, 1].map((share) => (
              <line
                key={share}
                x1={0}
                x2={days.length * STEP}
                y1={0.5 + share * (HEIGHT - 1)}
                y2={0.5 + share * (HEIGHT - 1)}
                stroke="var(--color-line)"
                vectorEffect="non-scaling-stroke"
              />
            ))}
            {days.map((one, i) => (
              <g key={one} opacity={chosen === undefined || chosen === i ? 1 : 0.45}>
                <Column day={one} x={i * STEP} series={series} top={top} />
              </g>
            ))}
          </svg>
          <input
            type="range"
            aria-label={t.day}
            aria-valuetext={`${dateOf(days[chosen ?? 0])}: ${format(on(days[chosen ?? 0]))}`}
            min={0}
            max={days.length - 1}
            value={chosen ?? 0}
            onChange={(event) => choose(Number(event.target.value))}
            onPointerMove={(event) => {
              const { left, width } = event.currentTarget.getBoundingClientRect()
              const at = Math.floor(((event.clientX - left) / width) * days.length)
              choose(Math.min(Math.max(at, 0), days.length - 1))
            }}
            onPointerLeave={() => choose(undefined)}
            onBlur={() => choose(undefined)}
            className="absolute inset-0 size-full cursor-crosshair opacity-0"
          />
        </div>
        <p aria-hidden="true" className="mt-1 flex justify-between text-soft text-xs tabular-nums">
          <span>{dateOf(days[0])}</span>
          <span>{dateOf(days.at(-1))}</span>
        </p>
      </figure>
      <ul aria-label={t.perDay(title)} className="mt-4 grid gap-x-8 gap-y-1.5 text-sm sm:grid-cols-2">
        {series.map(({ id, label, total, byDay }, i) => (
          <li key={id} className="flex min-w-0 items-center gap-2">
            <span aria-hidden="true" className={`size-2.5 shrink-0 rounded-xs ${DOTS[i]}`} />
            <span className="min-w-0 flex-1 truncate" title={label}>
              {label}
            </span>
            <span className="text-soft tabular-nums">
              {format(day === undefined ? total : (byDay.get(day) ?? 0))}
            </span>
          </li>
        ))}
      </ul>
      <AsTable
        title={title}
        days={days.filter((one) => on(one) > 0)}
        series={series}
        on={on}
        format={format}
      />
    </>
  )
}

/** One day's amounts on top of each other, the highest series at the bottom. */
function Column({ day, x, series, top }: { day: string; x: number; series: Series[]; top: number }) {
  let below = 0
  return series.map(({ id, byDay }, i) => {
    const height = ((byDay.get(day) ?? 0) / top) * HEIGHT
    if (height === 0) return null
    below += height
    return (
      <rect
        key={id}
        x={x + STEP * 0.14}
        y={HEIGHT - below}
        width={STEP * 0.72}
        height={Math.max(height, 1)}
        vectorEffect="non-scaling-stroke"
        className={`stroke-card ${FILLS[i]}`}
      />
    )
  })
}

function AsTable({
  title,
  days,
  series,
  on,
  format,
}: {
  title: string
  days: string[]
  series: Series[]
  on: (day: string) => number
  format: (value: number) => string
}) {
  const names = [...series.map(({ label }) => label), t.total]
  return (
    <details className="mt-4">
      <summary className="cursor-pointer font-medium text-sm">{texts.usage.table}</summary>
      <div className="mt-3">
        <Table label={title} columns={[t.day, ...names]} numbers={names}>
          {days.toReversed().map((day) => (
            <tr key={day}>
              <Cell className="whitespace-nowrap tabular-nums">{day}</Cell>
              {series.map(({ id, byDay }) => (
                <Cell key={id} numeric>
                  {format(byDay.get(day) ?? 0)}
                </Cell>
              ))}
              <Cell numeric className="font-medium">
                {format(on(day))}
              </Cell>
            </tr>
          ))}
        </Table>
      </div>
    </details>
  )
}
