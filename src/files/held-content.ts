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

/** Has content released that a row kept which the caller deletes in the same transaction. */
export async function releaseContent(
  db: Queryable,
  { workspaceId, network, cid }: { workspaceId: string; network: Network; cid: string },
): Promise<void> {
  const id = uuidv7()
  await db.query(
    `INSERT INTO operation (id, workspace_id, kind, queue, target_id, exclusive_key, input)
     VALUES ($1, $2, 'content.release', $3, $1, $4, $5)`,
    [id, workspaceId, catalog['content.release'].queue, `content:${id}`, JSON.stringify({ network, cid })],
  )
}
