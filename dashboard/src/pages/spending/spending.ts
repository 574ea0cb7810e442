/** What agents spent on models: the queries, and the series of a plot. */
import { useQuery } from '@tanstack/react-query'
import type { paths } from '../../api/client.ts'
import { api, unwrap } from '../../api/client.ts'
import { texts } from '../../texts.ts'

/** No event reports spending. */
const EACH_MS = 15_000
const PAGE = 10_000
/** The most series in a plot, each in its own colour; the others are one. */
const MAX_SERIES = 5

type Body = paths['/v0/spending']['get']['responses'][200]['content']['application/json']
export type Spending = Body['data']
export type Row = Spending['rows'][number]
type Query = NonNullable<paths['/v0/spending']['get']['parameters']['query']>

interface Asked {
  /** The agent; undefined for the whole workspace. */
  agentId?: string | undefined
  days: string[]
  groupBy: NonNullable<Query['groupBy']>
}

const queryOf = ({ days, groupBy }: Asked) => ({ from: days[0] ?? '', to: days.at(-1) ?? '', groupBy })

/** The API takes lists with commas. */
const querySerializer = { array: { style: 'form', explode: false } } as const

/** All pages. */
async function readSpending(asked: Asked): Promise<Spending> {
  const first = await readPage(asked)
  const rows = [...first.rows]
  for (let pageToken = first.next_page_token; pageToken; ) {
    const page = await readPage(asked, pageToken)
    rows.push(...page.rows)
    pageToken = page.next_page_token
  }
  return { ...first, rows }
}

async function readPage(asked: Asked, pageToken?: string): Promise<Spending> {
  const { agentId } = asked
  const query = { ...queryOf(asked), limit: PAGE, ...(pageToken && { pageToken }) }
  const body = await unwrap(
    agentId
      ? api.GET('/v0/agents/{agentId}/spending', {
          params: { path: { agentId }, query },
          querySerializer,
        })
      : api.GET('/v0/spending', { params: { query }, querySerializer }),
  )
  return (body as Body).data
}

export const useSpending = (asked: Asked) =>
  useQuery({
    queryKey: ['spending', asked.agentId, queryOf(asked)],
    queryFn: () => readSpending(asked),
    refetchInterval: EACH_MS,
    placeholderData: (before) => before,
  })

/** The same as a file with one line per row, which the browser downloads. */
export const csvOf = (asked: Asked): string => {
  const path = asked.agentId ? `/v0/agents/${asked.agentId}/spending` : '/v0/spending'
  return `${path}?${new URLSearchParams({ ...queryOf(asked), groupBy: asked.groupBy.join(), format: 'csv', limit: `${PAGE}` })}`
}

/** All input and output tokens. */
export const tokensOf = ({ tokens }: Row): number => tokens.input + tokens.output

/** The name of a row's model. */
export const modelOf = ({ provider, model }: Row): string => {
  if (model) return `${provider}/${model}`
  return provider === 'unknown' ? texts.spending.lostCalls : texts.spending.otherModels
}

/** What one colour of a plot stands for. */
export interface Series {
  id: string
  label: string
  total: number
  byDay: Map<string, number>
}

/** The series with the highest totals, highest first, and the sum of all others. */
export function seriesOf(
  rows: Row[],
  nameOf: (row: Row) => { id: string; label: string },
  amountOf: (row: Row) => number,
): Series[] {
  const all = new Map<string, Series>()
  for (const row of rows) {
    const { id, label } = nameOf(row)
    const series = all.get(id) ?? { id, label, total: 0, byDay: new Map() }
    add(series, row.day ?? '', amountOf(row))
    all.set(id, series)
  }
  const found = [...all.values()].filter(({ total }) => total > 0).sort((a, b) => b.total - a.total)
  if (found.length <= MAX_SERIES) return found
  const rest: Series = { id: '', label: texts.spending.others, total: 0, byDay: new Map() }
  for (const { byDay } of found.slice(MAX_SERIES)) for (const [day, amount] of byDay) add(rest, day, amount)
  return [...found.slice(0, MAX_SERIES), rest]
}

function add(series: Series, day: string, amount: number): void {
  series.total += amount
  series.byDay.set(day, (series.byDay.get(day) ?? 0) + amount)
}
