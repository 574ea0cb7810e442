/**
 * Hot swaps: the history of what a CID was swapped to, one row for each change. The newest row is in force.
 * A swap is one step: A → B and B → C do not make A → C.
 */
import type { Queryable } from '../../db/pool.ts'
import type { Network } from '../../storage/port.ts'

/**
 * What a workspace has a CID swapped to now, in canonical form; null where it is not swapped, or the swap was
 * removed. Whether the workspace still keeps that content is for the reader to check.
 * @param canonical the original, as `canonicalCid` has it.
 */
export async function currentSwap(
  db: Queryable,
  workspaceId: string,
  network: Network,
  canonical: string,
): Promise<string | null> {
  const { rows } = await db.query({
    name: 'swap-current',
    text: `SELECT mapped_cid_v1 FROM swap WHERE workspace_id = $1 AND network = $2 AND cid_v1 = $3
      ORDER BY id DESC LIMIT 1`,
    values: [workspaceId, network, canonical],
  })
  return rows[0]?.mapped_cid_v1 ?? null
}
