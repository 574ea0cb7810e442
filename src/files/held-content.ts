/**
 * References to content on an IPFS node: files, and everything else that has a CID (snapshots, skills and templates, in
 * the view `held_content`).
 */
import type { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import { lock } from '../db/advisory-locks.ts'
import type { Queryable } from '../db/pool.ts'
import { findReference } from '../db/statements/files.ts'
import { insertOperation } from '../operations/enqueue.ts'
import type { Network, Storage } from '../storage/port.ts'

/** In Prisma's terms, a file that is not deleted: neither a pin request nor removed. */
export const PINNED = { status: 'pinned', removedAt: null } as const

/**
 * Takes the lock of a CID's multihash until the transaction ends. Code holds it while it counts the files that keep a
 * CID and unpins it, or while it checks a pin and records it.
 * @throws 55P03 if another transaction holds it for more than 5 s, as happens when its IPFS node hangs.
 */
export async function lockCid(client: Queryable, cid: CID): Promise<void> {
  await client.query(`SET LOCAL lock_timeout = '5s'`)
  await lock(client, 'cid', Buffer.from(cid.multihash.bytes).toString('hex'))
}

const NODE_MS = 30_000

/**
 * Ensures that newly added content is pinned, in the transaction that writes the row that keeps it: nothing can release
 * the pin in between.
 * @throws StorageError `unavailable`, or `not_found` if its blocks were collected in the meantime; 55P03.
 */
export async function ensurePinned(client: Queryable, storage: Storage, cid: CID): Promise<void> {
  await lockCid(client, cid)
  const bounded = () => ({ signal: AbortSignal.timeout(NODE_MS) })
  if (await storage.isPinned(cid, bounded())) return
  await storage.pin(cid, { offline: true, stallMs: NODE_MS, ...bounded() })
}

/** Schedules the release of contents that rows kept which the caller deletes in the same transaction. */
export async function releaseContent(
  db: Queryable,
  contents: { workspaceId: string; network: Network; cid: string }[],
): Promise<void> {
  await db.query(
    insertOperation('content.release', {
      id: 'released.id',
      workspaceId: 'released.workspace_id',
      targetId: 'released.id',
      input: 'released.input',
      from: 'FROM unnest($1::uuid[], $2::uuid[], $3::jsonb[]) AS released (id, workspace_id, input)',
    }),
    [
      contents.map(() => uuidv7()),
      contents.map(({ workspaceId }) => workspaceId),
      contents.map(({ network, cid }) => JSON.stringify({ network, cid })),
    ],
  )
}

/**
 * True if any file of any workspace (except `except`), snapshot, skill or template keeps the CID. Only meaningful under
 * {@link lockCid}.
 */
export async function isReferenced(
  db: Queryable,
  network: string,
  canonical: string,
  { except = null }: { except?: string | null | undefined } = {},
): Promise<boolean> {
  return (await findReference.one(db, network, canonical, except)).kept
}
