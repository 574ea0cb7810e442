/** Reading pins as the Pinning Service API lists them: by time of creation, page by page. */
import { escapeLike } from '../../db/like.ts'
import type { Queryable } from '../../db/pool.ts'
import { isoTime } from '../../operations/store.ts'
import type { PinProgress } from '../../storage/port.ts'
import { STATUSES, type Status } from './schema.ts'

/** A file or pin request of the public network, and how its retrieval fares. */
export interface PinRow {
  id: string
  status: string
  cid: string
  name: string | null
  keyvalues: Record<string, string>
  host_nodes: string[]
  /** Bytes of the content; null until it is pinned. */
  size: number | null
  expires_at: string | null
  /** Why the retrieval failed, and how far it is; null where that is not known (any more). */
  error: string | null
  progress: Pick<PinProgress, 'blocks' | 'bytes'> | null
}

export interface PinsFilter {
  /** In canonical form. */
  cids?: string[]
  name?: string
  match: 'exact' | 'iexact' | 'partial' | 'ipartial'
  statuses: Status[]
  /** Milliseconds of Unix time: created before the one, and not before the other. */
  before?: number
  from?: number
  /** Pairs that must all be there, as JSON. */
  meta?: string
}

/**
 * When a pin was created, in milliseconds of Unix time: the first 48 bits of its id, a UUIDv7. So the order by
 * id, which the lists' indexes have, is the order by time; and the time has no more digits than any client
 * keeps. A JavaScript `Date` cuts microseconds, and a page that continues at a time cut short loses what was
 * created between the two.
 */
export const createdAt = (id: string): number => Number.parseInt(id.replace('-', '').slice(0, 12), 16)

/** The least id of a millisecond. */
function firstId(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

const COLUMNS = `f.id, f.status, f.cid, f.name, f.keyvalues, f.host_nodes, f.size::float8 AS size,
  ${isoTime('f.expires_at')} AS expires_at, retrieval.error, retrieval.progress`
const RETRIEVAL = `LEFT JOIN LATERAL (
  SELECT error, progress FROM operation WHERE target_id = f.id AND kind = 'pin.add' ORDER BY id DESC LIMIT 1
) retrieval ON f.status <> 'pinned'`

export async function findPin(db: Queryable, workspaceId: string, id: string): Promise<PinRow | undefined> {
  const { rows } = await db.query({
    name: 'psa-pin-find',
    text: `SELECT ${COLUMNS} FROM file f ${RETRIEVAL}
      WHERE f.id = $1 AND f.workspace_id = $2 AND f.network = 'public' AND f.removed_at IS NULL`,
    values: [id, workspaceId],
  })
  return rows[0]
}

/**
 * A page of pins, the newest first, and how many match in all. The next page is what was created before the
 * last pin of this one, so pins of the same millisecond stay together: those that do not all fit on the page
 * wait for the next, and more of them than `limit` are a page of their own, longer than asked for. Nothing
 * is lost or comes twice.
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
    // A client that has as many as there are stops, whatever was deleted between the two statements.
    count: Math.max(await countPins(db, workspaceId, filter), rows.length),
    results:
      whole.length > 0 ? whole : await selectPins(db, workspaceId, { ...filter, from: ms, before: ms + 1 }),
  }
}

/** Each half of the files has an index for lists of its own, and the page is merged from the ends of both. */
async function selectPins(
  db: Queryable,
  workspaceId: string,
  filter: PinsFilter,
  limit: number | null = null,
): Promise<PinRow[]> {
  const { halves, values } = conditions(workspaceId, filter)
  const n = `$${values.push(limit)}`
  const pages = halves.map(
    (where) => `(SELECT id FROM file WHERE ${where} ORDER BY removed_at DESC, id DESC LIMIT ${n})`,
  )
  const { rows } = await db.query(
    `SELECT ${COLUMNS} FROM (${pages.join(' UNION ALL ')}) page JOIN file f USING (id) ${RETRIEVAL}
     ORDER BY f.id DESC LIMIT ${n}`,
    values,
  )
  return rows
}

async function countPins(db: Queryable, workspaceId: string, filter: PinsFilter): Promise<number> {
  const { halves, values } = conditions(workspaceId, filter)
  const counts = halves.map((where) => `(SELECT count(*) FROM file WHERE ${where})`)
  const { rows } = await db.query(`SELECT (${counts.join(' + ')})::int AS count`, values)
  return rows[0].count
}

/** The filter as conditions: one set for files that are pinned, one for all other, where they are asked for. */
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
