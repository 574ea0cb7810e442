/** The audit as it is read: over HTTP, and by `berth audit`. */
import { leastUuid } from '../db/partitions.ts'
import type { Queryable } from '../db/pool.ts'
import { readAudit, readWholeAudit } from '../db/statements/audit.ts'

export const RESULTS = ['done', 'refused', 'unknown'] as const

export interface AuditFilter {
  userId?: string | undefined
  keyId?: string | undefined
  /** The agent that acted. */
  agentId?: string | undefined
  action?: string | undefined
  /** The resource, or what it is a part of. */
  resource?: string | undefined
  result?: (typeof RESULTS)[number] | undefined
  /** The first moment. */
  from?: Date | undefined
  /** The first moment that is too late. */
  to?: Date | undefined
  /** The id of the last entry of the page before. */
  after?: string | undefined
}

const LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** A page of entries, the newest first. @param of a workspace; null for all entries, those of no workspace included. */
export async function listAudit(db: Queryable, of: string | null, filter: AuditFilter, limit: number) {
  const { from, to, after = LAST, userId, keyId, agentId, action, resource, result } = filter
  const before = to ? leastUuid(to.getTime()) : LAST
  const { rows } = await (of === null ? readWholeAudit : readAudit).run(
    db,
    of,
    leastUuid(from?.getTime() ?? 0),
    before < after ? before : after,
    userId ?? null,
    keyId ?? null,
    agentId ?? null,
    action ?? null,
    resource ?? null,
    result ?? null,
    limit,
  )
  return rows
}

/** Entries of one statement of an export: it holds neither a transaction nor a connection between two. */
const PAGE = 500

/** All entries that fit, the newest first, a page at a time. */
export async function* eachPage(db: Queryable, of: string | null, filter: AuditFilter) {
  let { after } = filter
  for (;;) {
    const rows = await listAudit(db, of, { ...filter, after }, PAGE)
    yield rows
    if (rows.length < PAGE) return
    after = rows.at(-1)?.id
  }
}
