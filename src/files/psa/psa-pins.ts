/** Lists pins for the Pinning Service API, by time of creation and page by page, and shows each in its format. */

import { RESTS } from '../../db/late-indexes.ts'
import { type Queryable, queryOne } from '../../db/pool.ts'
import { PIN_COLUMNS, type PinRow, RETRIEVAL } from '../../db/statements/pins.ts'
import { escapeLike } from '../../db/statements/statement.ts'
import { isInManyNames, type NameSample, wordsToLookUp } from '../name-index.ts'
import { type PinStatus, STATUSES, type Status } from './psa-schema.ts'

export interface PinsFilter {
  /** CIDs in canonical form. */
  cids?: string[] | undefined
  name?: string | undefined
  match: 'exact' | 'iexact' | 'partial' | 'ipartial'
  statuses: Status[]
  /** Unix time in milliseconds: created before `before`, and not before `from`. */
  before?: number | undefined
  from?: number | undefined
  /** Pairs that must all match, as JSON. */
  meta?: string | undefined
  /** A sample of names, if the index on parts of names exists. */
  sample?: NameSample | undefined
}

/** The most pins of a list that each of its pages counts. Searches are counted whole, because their time is limited. */
const COUNT_LIMIT = 100_000

/**
 * When a pin was created, as Unix time in milliseconds: the first 48 bits of its id, a UUIDv7. So the order by id,
 * which the lists' indexes have, is the order by time, and the time has no more digits than clients keep. A JavaScript
 * `Date` truncates microseconds, and a page that continued at a truncated time would lose the pins created between the
 * two times.
 */
const createdAt = (id: string): number => Number.parseInt(id.replace('-', '').slice(0, 12), 16)

/** The smallest id of a millisecond. */
function firstId(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

/**
 * A page of pins, newest first, and how many match in total: `countLimit` stands for that many or more. The next
 * page contains pins created before the last pin of this page, so pins of the same millisecond stay together. If they
 * do not all fit on the page, they move to the next one. More of them than `limit` form a page of their own, longer
 * than requested. Nothing is lost or repeated.
 */
export async function listPins(
  db: Queryable,
  workspaceId: string,
  filter: PinsFilter,
  limit: number,
  countLimit = COUNT_LIMIT,
): Promise<{ count: number; results: PinRow[] }> {
  const rows = await selectPins(db, workspaceId, filter, limit + 1)
  const beyond = rows[limit]
  if (!beyond) return { count: rows.length, results: rows }
  const ms = createdAt(beyond.id)
  const whole = rows.filter(({ id }) => createdAt(id) > ms)
  return {
    // A client stops when it has this many, even if pins were deleted between the two statements.
    count: Math.max(await countPins(db, workspaceId, filter, countLimit), rows.length),
    results:
      whole.length > 0 ? whole : await selectPins(db, workspaceId, { ...filter, from: ms, before: ms + 1 }),
  }
}

/** Each part of the files has its own index for lists, and the page is merged from the first rows of all. */
async function selectPins(
  db: Queryable,
  workspaceId: string,
  filter: PinsFilter,
  limit: number | null = null,
): Promise<PinRow[]> {
  const { parts, values } = conditions(workspaceId, filter)
  const n = `$${values.push(limit)}`
  // Pins with a rare name are all collected, as for their count: OFFSET 0 keeps the planner from following the list for
  // a long way.
  const fence = filter.name === undefined || isCommon(filter) ? '' : 'OFFSET 0'
  const pages = parts.map(
    (where) => `(SELECT id FROM (SELECT id, removed_at FROM file WHERE ${where} ${fence}) found
      ORDER BY removed_at DESC, id DESC LIMIT ${n})`,
  )
  const { rows } = await db.query<PinRow>(
    `SELECT ${PIN_COLUMNS} FROM (${pages.join(' UNION ALL ')}) page JOIN file f USING (id) ${RETRIEVAL}
     ORDER BY f.id DESC LIMIT ${n}`,
    values,
  )
  return rows
}

async function countPins(
  db: Queryable,
  workspaceId: string,
  filter: PinsFilter,
  countLimit: number,
): Promise<number> {
  const { parts, values } = conditions(workspaceId, filter)
  const isSearch = filter.name !== undefined || filter.meta !== undefined
  const most = isSearch ? '' : `LIMIT ${countLimit}`
  const counts = parts.map(
    (where) => `(SELECT count(*) FROM (SELECT FROM file WHERE ${where} ${most}) counted)`,
  )
  const row = await queryOne<{ count: number }>(
    db,
    `SELECT least(${counts.join(' + ')}${isSearch ? '' : `, ${countLimit}`})::int AS count`,
    values,
  )
  return row.count
}

const isWhole = ({ name, match }: PinsFilter): boolean => name !== undefined && !match.endsWith('partial')
const isCommon = ({ name = '', match, sample }: PinsFilter): boolean =>
  match.endsWith('partial') && sample !== undefined && isInManyNames(name, sample)

/**
 * The filter as conditions: one set for pinned files, one for all others, as far as requested. If it has a name, the
 * others are several: of those that workers retrieve there are few at a time, and only the rest has indexes of names.
 */
function conditions(workspaceId: string, filter: PinsFilter): { parts: string[]; values: unknown[] } {
  const { cids, name, statuses, before, from, meta } = filter
  const values: unknown[] = [workspaceId]
  const where = [`workspace_id = $1`, `network = 'public'`, `removed_at IS NULL`]
  const put = (value: unknown) => `$${values.push(value)}`
  if (cids) where.push(`cid_v1 = ANY (${put(cids)}::text[])`)
  if (name !== undefined) where.push(...nameConditions(name, filter, put))
  if (before !== undefined) where.push(`id < ${put(firstId(before))}`)
  if (from !== undefined) where.push(`id >= ${put(firstId(from))}`)
  if (meta !== undefined) where.push(`keyvalues @> ${put(meta)}`)
  const parts = statuses.includes('pinned') ? [[...where, `status = 'pinned'`]] : []
  const others = statuses.filter((status) => status !== 'pinned').flatMap((status) => [...STATUSES[status]])
  if (others.length > 0) {
    // A whole name is rarer than a status, which the planner cannot know: no index covers this expression.
    const status = isWhole(filter) ? `status || ''` : 'status'
    const isAsked = `${status} = ANY (${put(others)}::text[])`
    const kinds =
      name === undefined
        ? [`status <> 'pinned'`]
        : [`status = 'prechecking'`, `status IN ('searching', 'retrieving')`, RESTS]
    parts.push(...kinds.map((kind) => [...where, kind, isAsked]))
  }
  return { parts: parts.map((part) => part.join(' AND ')), values }
}

/** A whole name is looked up by its lower case, a part by those of its words that few names have. */
function nameConditions(
  name: string,
  { match, sample }: PinsFilter,
  put: (value: unknown) => string,
): string[] {
  const like = match.startsWith('i') ? 'ILIKE' : 'LIKE'
  // No index covers this expression.
  const unindexed = `name || ''`
  if (!match.endsWith('partial'))
    return [`lower(name) = lower(${put(name)})`, `${unindexed} ${like} ${put(escapeLike(name))}`]
  const has = (text: string) => put(`%${escapeLike(text)}%`)
  const words = sample && !isInManyNames(name, sample) ? wordsToLookUp(name, sample) : []
  const column = words.length > 0 ? unindexed : 'name'
  return [...words.map((word) => `name ILIKE ${has(word)}`), `${column} ${like} ${has(name)}`]
}

const NAMES = new Map<string, Status>(
  Object.entries(STATUSES).flatMap(([name, statuses]) => statuses.map((status) => [status, name as Status])),
)

/** @param delegates addresses of the IPFS node. */
export function toPinStatus(row: PinRow, delegates: string[]): PinStatus {
  const status = NAMES.get(row.status)
  if (!status) throw new Error(`A file has the status ${row.status}`)
  return {
    requestid: row.id,
    status,
    created: new Date(createdAt(row.id)).toISOString(),
    pin: {
      cid: row.cid,
      ...(row.name !== null && { name: row.name }),
      origins: row.host_nodes,
      meta: row.keyvalues,
    },
    delegates,
    info: status === 'pinned' ? stored(row) : { status_details: details(status, row) },
  }
}

function stored({ size, expires_at }: PinRow): Record<string, string> {
  return { raw_size: `${size}`, ...(expires_at !== null && { pinned_until: expires_at }) }
}

/** Berth's own status, which is more detailed, and what is known about it. */
function details(name: Status, { status, error, progress }: PinRow): string {
  if (name === 'failed' && error !== null) return `${status}: ${error}`
  if (status === 'retrieving' && progress)
    return `${status}: ${progress.blocks} blocks, ${progress.bytes} bytes`
  return status
}
