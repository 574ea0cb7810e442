import { Choice } from '../../parts/choice.tsx'
import { texts } from '../../texts.ts'
import { RANGES, type Range } from './range.ts'

const t = texts.spending
const LINK =
  'inline-flex min-h-9 items-center rounded-lg border border-line bg-card px-3.5 py-1.5 font-medium text-sm hover:border-accent'

/** The choice of days, and a link to download their spending. */
export function Ranges({
  range,
  csv,
  onChange,
}: {
  range: Range
  /** The address of the file. */
  csv: string
  onChange: (range: Range) => void
}) {
  return (
    <>
      <Choice
        label={t.range}
        value={range}
        onChange={onChange}
        options={RANGES.map((one) => [one, t.ranges[one]] as const)}
      />
      <a href={csv} download className={LINK}>
        {t.csv}
      </a>
    </>
  )
}
