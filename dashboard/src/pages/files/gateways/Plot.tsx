/** A value for one day, which the chart shows as a column. */
interface Point {
  day: string
  value: number
}

const WIDTH = 300
const HEIGHT = 72

export function Plot({
  title,
  total,
  points,
  show,
}: {
  title: string
  total: string
  points: Point[]
  show: (value: number) => string
}) {
  const most = Math.max(1, ...points.map(({ value }) => value))
  const step = WIDTH / points.length
  return (
    <figure>
      <figcaption className="mb-2 text-soft text-sm">
        {title}
        <span className="block font-semibold text-2xl text-ink tabular-nums">{total}</span>
      </figcaption>
      <svg
        role="img"
        aria-label={`${title}: ${total}`}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        className="h-20 w-full"
      >
        {points.map(({ day, value }, i) => {
          const height = value === 0 ? 1 : Math.max(2, (value / most) * HEIGHT)
          return (
            <rect
              key={day}
              x={i * step + step * 0.12}
              y={HEIGHT - height}
              width={step * 0.76}
              height={height}
              rx={1.5}
              className={value === 0 ? 'fill-line' : 'fill-accent'}
            >
              <title>{`${day}: ${show(value)}`}</title>
            </rect>
          )
        })}
      </svg>
      <p className="mt-1 flex justify-between text-soft text-xs">
        <span>{points[0]?.day}</span>
        <span>{points.at(-1)?.day}</span>
      </p>
    </figure>
  )
}
