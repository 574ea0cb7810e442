import type { Queryable } from '../db/pool.ts'

/** A file keeps its CID while it is pinned, or may become so. */
export const KEEPS = `removed_at IS NULL
  AND status IN ('prechecking', 'backfilled', 'searching', 'retrieving', 'pinned')`

/** Whether any file of any workspace (but `except`), snapshot, skill or template keeps this CID. Meaningful under {@link lockCid} only. */
export async function isKept(
  db: Queryable,
  network: string,
  canonical: string,
  { except = null }: { except?: string | null } = {},
): Promise<boolean> {
  const { rows } = await db.query(
    `SELECT EXISTS (
       SELECT FROM file WHERE network = $1 AND cid_v1 = $2 AND ($3::uuid IS NULL OR id <> $3) AND ${KEEPS}
     UNION ALL SELECT FROM held_content WHERE network = $1 AND cid = $2) AS kept`,
    [network, canonical, except],
  )
  return rows[0].kept
}
