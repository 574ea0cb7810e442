/** Sums of the spending, by what the caller chooses. The columns depend on that, so the statement is composed here. */
import type { Pool } from '../db/pool.ts'
import { toPicodollars, toUsd } from './money.ts'

export const GROUPS = ['day', 'model', 'agent', 'session'] as const
type Group = (typeof GROUPS)[number]
const MAX_ROWS = 10_000

/** The columns of each group, with their names in answers. */
const COLUMNS: Record<Group, Record<string, string>> = {
  day: { day: 's.day::text' },
  model: { provider: 's.provider', model: 's.model' },
  agent: { agentId: 'a.agent_id' },
  session: { session: 's.session' },
}
const SUMS = [
  'requests',
  'errors',
  'input',
  'output',
  'cached_input',
  'cache_write',
  'reasoning',
  'usd',
  'first_byte_ms',
  'total_ms',
  'estimated',
  'estimated_usd',
]

type Row = Record<string, string>

interface Selection {
  workspaceId: string
  agentId?: string | undefined
  from?: string | undefined
  to?: string | undefined
  groupBy: readonly Group[]
}

export async function readSpending(pool: Pool, { workspaceId, agentId, from, to, groupBy }: Selection) {
  const columns = Object.assign({}, ...groupBy.map((group) => COLUMNS[group])) as Record<string, string>
  const names = Object.keys(columns)
  const sums = SUMS.map((name) => `coalesce(sum(s.${name}), 0)::text AS ${name}`).join(', ')
  const source = `FROM model_spending s LEFT JOIN agent a ON a.id = s.agent_id
    WHERE s.workspace_id = $1 AND ($2::text IS NULL OR a.agent_id = $2)
      AND s.day >= coalesce($3::date, date_trunc('month', now() AT TIME ZONE 'UTC')::date)
      AND s.day <= coalesce($4::date, (now() AT TIME ZONE 'UTC')::date)`
  const values = [workspaceId, agentId ?? null, from ?? null, to ?? null]
  const keys = Object.entries(columns).map(([name, column]) => `${column} AS "${name}"`)
  const places = names.map((_, at) => at + 1).join(', ')
  const { rows } = await pool.query<Row>(
    `SELECT ${[...keys, sums].join(', ')} ${source} GROUP BY ${places} ORDER BY ${places} LIMIT ${MAX_ROWS}`,
    values,
  )
  const { rows: total } = await pool.query<Row>(`SELECT ${sums} ${source}`, values)
  const records = rows.map((row) => ({ ...keysOf(row, names), ...sumsOf(row) }))
  return {
    data: { rows: records, total: sumsOf(total[0] as Row) },
    toCsv: () =>
      toCsv([[...names, ...SUMS], ...rows.map((row) => [...names, ...SUMS].map((name) => row[name] ?? ''))]),
  }
}

const keysOf = (row: Row, names: string[]) => Object.fromEntries(names.map((name) => [name, row[name]]))

function sumsOf(row: Row) {
  const number = (name: string) => Number(row[name])
  const mean = (name: string) =>
    number('requests') === 0 ? 0 : Math.round(number(name) / number('requests'))
  return {
    usd: toUsd(toPicodollars(row.usd ?? '0')),
    tokens: {
      input: number('input'),
      output: number('output'),
      cachedInput: number('cached_input'),
      cacheWrite: number('cache_write'),
      reasoning: number('reasoning'),
    },
    requests: number('requests'),
    errors: number('errors'),
    latencyMs: { firstByte: mean('first_byte_ms'), total: mean('total_ms') },
    estimated: {
      requests: number('estimated'),
      usd: toUsd(toPicodollars(row.estimated_usd ?? '0')),
    },
  }
}

/** RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe in front: agents choose texts. */
const toCsv = (rows: readonly string[][]) => rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('')

function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
