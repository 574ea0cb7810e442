/** Sums of the spending, by what the caller chooses. The columns depend on that, so the statement is composed here. */
import type { Cursor } from '../db/cursor.ts'
import type { Pool } from '../db/pool.ts'
import { readPage, toPage } from '../http/pages.ts'
import { storableText } from '../lib/read.ts'
import { toPicodollars, toUsd } from './money.ts'

export const GROUPS = ['day', 'model', 'agent', 'session'] as const
type Group = (typeof GROUPS)[number]
/** Calls with the LLM key have no agent. */
const AGENT = "coalesce(a.agent_id, '')"

/** The columns of each group, with their names in answers. */
const COLUMNS: Record<Group, Record<string, string>> = {
  day: { day: 's.day::text' },
  model: { provider: 's.provider', model: 's.model' },
  agent: { agentId: AGENT },
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
  /** The first and the last day. */
  from: string
  to: string
  groupBy: readonly Group[]
  limit: number
  pageToken?: string | undefined
}

/** @throws ApiError 400 for a page token of another grouping. */
export async function readSpending(
  pool: Pool,
  { workspaceId, agentId, from, to, groupBy, ...query }: Selection,
) {
  const columns = Object.assign({}, ...groupBy.map((group) => COLUMNS[group])) as Record<string, string>
  const names = Object.keys(columns)
  const keys = Object.values(columns)
  const sums = SUMS.map((name) => `coalesce(sum(s.${name}), 0)::text AS ${name}`).join(', ')
  const source = `FROM model_spending s LEFT JOIN agent a ON a.id = s.agent_id
    WHERE s.workspace_id = $1 AND ($2::text IS NULL OR a.agent_id = $2) AND s.day BETWEEN $3::date AND $4::date`
  const values = [workspaceId, agentId ?? null, from, to]
  const placeOf = (row: Row) => toPlace(names, row)
  const read = async ({ after, limit }: Cursor) => {
    const place = fromPlace(names, after ?? '') ?? []
    const beyond = after === undefined ? '' : `AND (${keys}) > (${place.map((_, at) => `$${at + 5}::text`)})`
    const all = names.map((name, at) => `${keys[at]} AS "${name}"`)
    const places = names.map((_, at) => at + 1).join(', ')
    const { rows } = await pool.query<Row>(
      `SELECT ${[...all, sums].join(', ')} ${source} ${beyond}
       GROUP BY ${places} HAVING sum(s.requests) <> 0 ORDER BY ${places} LIMIT ${limit}`,
      [...values, ...place],
    )
    return rows
  }
  const isPlace = (text: string) => fromPlace(names, text) !== undefined
  const page = await readPage(query, read, { placeOf, isPlace })
  const { rows: total } = await pool.query<Row>(`SELECT ${sums} ${source}`, values)
  return {
    page,
    data: {
      ...toPage('rows', page, (row) => ({ ...keysOf(row, names), ...sumsOf(row) })).data,
      total: sumsOf(total[0] as Row),
    },
    toCsv: () =>
      toCsv([
        [...names, ...SUMS],
        ...page.items.map((row) => [...names, ...SUMS].map((name) => row[name] ?? '')),
      ]),
  }
}

/** The place of a row in a list by these columns, in ASCII. Values may be empty, a place is not. */
const toPlace = (names: string[], row: Row) =>
  [names, names.map((name) => row[name] ?? '')].map((texts) => texts.map(encodeURIComponent).join()).join(':')

/** The values of a row's columns; undefined if the text is not a place in this list. */
function fromPlace(names: string[], text: string): string[] | undefined {
  const [of, values = ''] = text.split(':', 2)
  try {
    const place = values.split(',').map(decodeURIComponent)
    const isStorable = place.every((value) => value === storableText(value))
    return of === names.join() && place.length === names.length && isStorable ? place : undefined
  } catch {
    return undefined
  }
}

const keysOf = (row: Row, names: string[]) =>
  Object.fromEntries(names.map((name) => [name, name === 'agentId' ? row[name] || null : row[name]]))

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
