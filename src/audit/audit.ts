/** Reads the audit: over HTTP, and for `berth audit`. */
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
  /** The resource, or a prefix of its path. */
  resource?: string | undefined
  result?: (typeof RESULTS)[number] | undefined
  /** Start of the time range, inclusive. */
  from?: Date | undefined
  /** End of the time range, exclusive. */
  to?: Date | undefined
  /** The id of the last entry on the previous page. */
  after?: string | undefined
}

const LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/**
 * A page of entries, newest first. @param of a workspace; null for all entries, including those without a workspace.
 */
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

/** Entries per statement of an export, which holds neither a transaction nor a connection between statements. */
const PAGE = 500

/** All matching entries, newest first, one page at a time. */
export async function* eachPage(db: Queryable, of: string | null, filter: AuditFilter) {
  let { after } = filter
  for (;;) {
    const rows = await listAudit(db, of, { ...filter, after }, PAGE)
    yield rows
    if (rows.length < PAGE) return
    after = rows.at(-1)?.id
  }
}
