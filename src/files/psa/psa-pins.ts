/** Lists pins for the Pinning Service API, by time of creation and page by page, and shows each in its format. */

import { type Queryable, queryOne } from '../../db/pool.ts'
import { PIN_COLUMNS, type PinRow, RETRIEVAL } from '../../db/statements/pins.ts'
import { escapeLike } from '../../db/statements/statement.ts'
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
}

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
 * A page of pins, newest first, and how many match in total. The next page contains pins created before the last pin of
 * this page, so pins of the same millisecond stay together. If they do not all fit on the page, they move to the next
 * one. More of them than `limit` form a page of their own, longer than requested. Nothing is lost or repeated.
 */
export async function listPins(
  db: Queryable,
  workspaceId: string,
  filter: PinsFilter,
  limit: number,
): Promise<{ count: number; results: PinRow[] }> {
  const rows = await selectPins(db, workspaceId, filter, limit + 1)
  const beyond = rows[limit]
  if (!beyond) return { count: rows.length, results: rows }
  const ms = createdAt(beyond.id)
  const whole = rows.filter(({ id }) => createdAt(id) > ms)
  return {
    // A client stops when it has this many, even if pins were deleted between the two statements.
    count: Math.max(await countPins(db, workspaceId, filter), rows.length),
    results:
      whole.length > 0 ? whole : await selectPins(db, workspaceId, { ...filter, from: ms, before: ms + 1 }),
  }
}

/** Each half of the files has its own index for lists, and the page is merged from the first rows of both. */
async function selectPins(
  db: Queryable,
  workspaceId: string,
  filter: PinsFilter,
  limit: number | null = null,
): Promise<PinRow[]> {
  const { halves, values } = conditions(workspaceId, filter)
  const n = `$${values.push(limit)}`
  // Pins with a name are all collected, as for their count: OFFSET 0 keeps the planner from following the list for a
  // long way.
  const fence = filter.name === undefined ? '' : 'OFFSET 0'
  const pages = halves.map(
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

async function countPins(db: Queryable, workspaceId: string, filter: PinsFilter): Promise<number> {
  const { halves, values } = conditions(workspaceId, filter)
  const counts = halves.map((where) => `(SELECT count(*) FROM file WHERE ${where})`)
  const row = await queryOne<{ count: number }>(db, `SELECT (${counts.join(' + ')})::int AS count`, values)
  return row.count
}

/** The filter as conditions: one set for pinned files, one for all others, as far as requested. */
function conditions(
  workspaceId: string,
  { cids, name, match, statuses, before, from, meta }: PinsFilter,
): { halves: string[]; values: unknown[] } {
  const values: unknown[] = [workspaceId]
  const where = [`workspace_id = $1`, `network = 'public'`, `removed_at IS NULL`]
  const add = (condition: (placeholder: string) => string, value: unknown) => {
    values.push(value)
    where.push(condition(`$${values.length}`))
  }
  if (cids) add((p) => `cid_v1 = ANY (${p}::text[])`, cids)
  if (name !== undefined) {
    const part = match.endsWith('partial') ? '%' : ''
    const like = match.startsWith('i') ? 'ILIKE' : 'LIKE'
    add((p) => `name ${like} ${p}`, `${part}${escapeLike(name)}${part}`)
  }
  if (before !== undefined) add((p) => `id < ${p}`, firstId(before))
  if (from !== undefined) add((p) => `id >= ${p}`, firstId(from))
  if (meta !== undefined) add((p) => `keyvalues @> ${p}`, meta)
  const halves = []
  if (statuses.includes('pinned')) halves.push([...where, `status = 'pinned'`])
  const others = statuses.filter((status) => status !== 'pinned').flatMap((status) => [...STATUSES[status]])
  if (others.length > 0) {
    values.push(others)
    halves.push([...where, `status <> 'pinned'`, `status = ANY ($${values.length}::text[])`])
  }
  return { halves: halves.map((half) => half.join(' AND ')), values }
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
