/** Content that something else than a file keeps: a snapshot, a skill or a template (the view `held_content`). */
import { CID } from 'multiformats/cid'
import type pg from 'pg'
import { uuidv7 } from 'uuidv7'
import type { Queryable } from '../db/pool.ts'
import { catalog } from '../operations/catalog.ts'
import type { Network, Storage } from '../storage/port.ts'
import { lockCid } from './cid-lock.ts'

const NODE_MS = 30_000

/**
 * Makes sure that content which was just added is pinned, in the transaction that writes the row which keeps it: nobody
 * can release the pin in between.
 * @throws StorageError `unavailable`, or `not_found` where its blocks were collected meanwhile.
 */
export async function holdContent(client: pg.PoolClient, storage: Storage, cid: CID): Promise<void> {
  await lockCid(client, cid)
  const bounded = () => ({ signal: AbortSignal.timeout(NODE_MS) })
  if (await storage.isPinned(cid, bounded())) return
  await storage.pin(cid, { offline: true, stallMs: NODE_MS, ...bounded() })
}

/** Has contents released that rows kept which the caller deletes in the same transaction. */
export async function releaseContent(
  db: Queryable,
  contents: { workspaceId: string; network: Network; cid: string }[],
): Promise<void> {
  await db.query(
    `INSERT INTO operation (id, workspace_id, kind, queue, target_id, exclusive_key, input)
     SELECT id, workspace_id, 'content.release', $1, id, 'content:' || id, input
     FROM unnest($2::uuid[], $3::uuid[], $4::jsonb[]) AS released (id, workspace_id, input)`,
    [
      catalog['content.release'].queue,
      contents.map(() => uuidv7()),
      contents.map(({ workspaceId }) => workspaceId),
      contents.map(({ network, cid }) => JSON.stringify({ network, cid })),
    ],
  )
}
