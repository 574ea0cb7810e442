import { useId, useState } from 'react'
import { clock } from '../../../parts/format.ts'
import { niceTop } from '../../../parts/plot.ts'
import { Card } from '../../../parts/ui.tsx'
import { texts } from '../../../texts.ts'

export interface Point {
  at: number
  value: number
}

const WIDTH = 600
const HEIGHT = 140
const words = texts.usage

/**
 * A line chart with the current value, the peak, and the limit if any. A table has the same values for people who
 * cannot see the chart.
 */
export function Plot({
  title,
  points,
  limit,
  format,
}: {
  title: string
  points: Point[]
  limit?: number | null
  format: (value: number) => string
}) {
  const id = useId()
  const [chosen, choose] = useState<Point>()
  const last = points.at(-1)
  if (!last) return null
  const highest = points.reduce((most, { value }) => Math.max(most, value), 0)
  // Show the limit only if it is near: otherwise all changes would look like a flat line.
  const top = limit && highest > limit / 3 ? limit : niceTop(highest)
  const first = points[0] ?? last
  const span = Math.max(last.at - first.at, 1)
  const x = ({ at }: Point) => ((at - first.at) / span) * WIDTH
  const y = ({ value }: Point) => HEIGHT - (Math.min(value, top) / top) * (HEIGHT - 4) - 1
  const line = points.map((point) => `${x(point).toFixed(1)},${y(point).toFixed(1)}`).join(' ')
  const shown = chosen ?? last
  const nearest = (share: number) =>
    points.reduce((best, point) =>
      Math.abs(x(point) - share * WIDTH) < Math.abs(x(best) - share * WIDTH) ? point : best,
    )
  return (
    <Card>
      <div className="flex items-baseline justify-between gap-3">
        <h2 className="font-medium text-soft text-sm">{title}</h2>
        <span className="text-soft text-xs">{words.highest(format(highest))}</span>
      </div>
      <p className="mt-1 font-semibold text-2xl tabular-nums tracking-tight">
        {format(shown.value)}
        {limit ? <span className="ml-2 font-normal text-sm text-soft">{words.of(format(limit))}</span> : null}
      </p>
      <p aria-hidden="true" className="mt-1 text-right text-soft text-xs tabular-nums">
        {format(top)}
      </p>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-labelledby={id}
        className="mt-0.5 h-36 w-full overflow-visible text-accent"
        onPointerMove={(event) => {
          const { left, width } = event.currentTarget.getBoundingClientRect()
          choose(nearest((event.clientX - left) / width))
        }}
        onPointerLeave={() => choose(undefined)}
      >
        <title id={id}>{words.picture(title, format(last.value), format(highest))}</title>
        {[0, 0.5, 1].map((share) => (
          <line
            key={share}
            x1={0}
            x2={WIDTH}
            y1={HEIGHT - 1 - share * (HEIGHT - 5)}
            y2={HEIGHT - 1 - share * (HEIGHT - 5)}
            stroke="var(--color-line)"
            vectorEffect="non-scaling-stroke"
          />
        ))}
        <polygon
          points={`0,${HEIGHT - 1} ${line} ${x(last).toFixed(1)},${HEIGHT - 1}`}
          fill="currentColor"
          opacity={0.12}
        />
        <polyline
          points={line}
          fill="none"
          stroke="currentColor"
          strokeWidth={2}
          strokeLinejoin="round"
          vectorEffect="non-scaling-stroke"
        />
        {chosen && (
          <line
            x1={x(chosen)}
            x2={x(chosen)}
            y1={0}
            y2={HEIGHT}
            stroke="currentColor"
            strokeDasharray="3 3"
            vectorEffect="non-scaling-stroke"
          />
        )}
      </svg>
      <div className="mt-1 flex justify-between text-soft text-xs tabular-nums">
        <span>{clock(first.at)}</span>
        {chosen && <span>{clock(chosen.at)}</span>}
        <span>{clock(last.at)}</span>
      </div>
    </Card>
  )
}
