/** The days for which spending is shown, in UTC, as budgets count them. */
const DAY_MS = 86_400_000
const DAYS = 30

export const RANGES = ['month', 'last', '30'] as const
export type Range = (typeof RANGES)[number]
export const BY = ['model', 'agent'] as const

/** The URL parameters of pages with spending. */
export interface SpendingSearch {
  /** This month if undefined. */
  range?: Range
  /** What the plot's colours stand for; models if undefined. */
  by?: (typeof BY)[number]
}

/** Reads the parameters. Anybody may have written the URL, so unknown values are dropped. */
export function readSpendingSearch({ range, by }: Record<string, unknown>): SpendingSearch {
  // The router reads `range=30` as a number.
  const known = { range: RANGES.find((one) => one === String(range)), by: BY.find((one) => one === by) }
  return { ...(known.range && { range: known.range }), ...(known.by && { by: known.by }) }
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)

/** The first and last day of a range. This month includes its days in the future. */
export function daysOf(range: Range, now = new Date()): string[] {
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()]
  const today = Date.UTC(year, month, now.getUTCDate())
  const [from, to] = {
    month: [Date.UTC(year, month, 1), Date.UTC(year, month + 1, 0)],
    last: [Date.UTC(year, month - 1, 1), Date.UTC(year, month, 0)],
    '30': [today - (DAYS - 1) * DAY_MS, today],
  }[range] as [number, number]
  return Array.from({ length: (to - from) / DAY_MS + 1 }, (_, i) => dayOf(from + i * DAY_MS))
}
