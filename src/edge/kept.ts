import { CID } from 'multiformats/cid'
import type { Pool } from '../db/pool.ts'
import { canonicalCid } from '../files/cid.ts'
import type { Gateway } from '../files/gateways/service.ts'
import { currentSwap } from '../files/swaps/service.ts'
import type { Network } from '../storage/port.ts'

/** A file of the gateway's workspace. */
export interface KeptContent {
  cid: CID
  name: string | null
  mimeType: string | null
}

/**
 * The file that a gateway serves for a CID: what the CID is swapped to, where the gateway has the plugin, else
 * the content itself. Undefined where the gateway's workspace does not keep it on this network, or no more.
 */
export async function findKept(
  pool: Pool,
  { workspaceId, hasSwaps }: Gateway,
  network: Network,
  asked: CID,
): Promise<KeptContent | undefined> {
  const original = canonicalCid(asked)
  const swapped = hasSwaps ? await currentSwap(pool, workspaceId, network, original) : null
  const canonical = swapped ?? original
  const { rows } = await pool.query({
    name: 'gateway-content',
    text: `SELECT name, mime_type AS "mimeType" FROM file
      WHERE workspace_id = $1 AND network = $2 AND cid_v1 = $3 AND status = 'pinned' AND removed_at IS NULL
        AND (expires_at IS NULL OR expires_at > now())
      ORDER BY id LIMIT 1`,
    values: [workspaceId, network, canonical],
  })
  return rows[0] && { cid: CID.parse(canonical), ...rows[0] }
}
