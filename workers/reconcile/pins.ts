/**
 * Compares the files marked as pinned with the pins of the IPFS node, both ways. Differences are checked once more
 * under the CID's lock, because an operation may be in progress. If the storage has several parts, a pin is missing
 * unless all of them have it, and orphaned if one has it.
 */
import { CID } from 'multiformats/cid'
import { tryLockSession } from '../../src/db/advisory-locks.ts'
import { type Pool, type Queryable, queryOne, transaction } from '../../src/db/pool.ts'
import { withSession } from '../../src/db/session.ts'
import { KEEPS } from '../../src/db/statements/files.ts'
import { noteRelease } from '../../src/db/statements/garbage.ts'
import { lockCid } from '../../src/files/held-content.ts'
import { within } from '../../src/lib/signals.ts'
import { enqueueWhere } from '../../src/operations/enqueue.ts'
import { recordRepairs } from '../../src/operations/repairs.ts'
import { partsOf, type Storage, StorageError } from '../../src/storage/port.ts'

const BATCH = 1000
/** Repairs of one pass; the next pass finds the rest. */
const MAX_REPAIRS = 1000
const CHECK_MS = 30_000
const COMPARE_MS = 600_000

/** A file keeps the pin, or an operation works on it or still has to release the content. */
const CLAIMED = `(${KEEPS} OR EXISTS (
  SELECT FROM operation WHERE target_id = file.id AND state IN ('queued', 'running')))`

export interface PinRepairs {
  /** Missing pins: files get a repair operation, other content is pinned again if its blocks exist here. */
  missing: number
  /** Pins that nothing keeps; released. */
  orphaned: number
}

export async function reconcilePins(pool: Pool, storage: Storage, signal: AbortSignal): Promise<PinRepairs> {
  // A session of its own, for its temporary table and its lock. A listing may take long, and a transaction as long
  // would keep PostgreSQL from vacuuming after other statements.
  const options = { name: 'berth-reconcile', statementMs: COMPARE_MS }
  return withSession(pool.directUrl, options, async (client) => {
    const hasLock = await tryLockSession(client, storage.network === 'public' ? 'pinsPublic' : 'pinsPrivate')
    if (!hasLock) return { missing: 0, orphaned: 0 }
    // Taken before the listing, so that pins made during it cause no repair.
    const { at: listedAt } = await queryOne<{ at: Date }>(client, 'SELECT now() AS at')
    const everywhere = await copyPins(client, storage, signal)
    const missing = await client.query<{ id: string; workspaceId: string; cid_v1: string }>(
      `SELECT id, workspace_id AS "workspaceId", cid_v1 FROM file f
       WHERE network = $1 AND status = 'pinned' AND removed_at IS NULL AND pinned_at < $2
         AND NOT EXISTS (SELECT FROM pinned WHERE cid = f.cid_v1 AND whole_in = $4)
         AND NOT EXISTS (SELECT FROM operation o WHERE o.target_id = f.id AND o.state IN ('queued', 'running'))
       LIMIT $3`,
      [storage.network, listedAt, MAX_REPAIRS, everywhere],
    )
    const unpinned = await client.query<{ cid: string }>(
      `SELECT DISTINCT cid FROM held_content h
       WHERE network = $1 AND NOT EXISTS (SELECT FROM pinned WHERE cid = h.cid AND whole_in = $3) LIMIT $2`,
      [storage.network, MAX_REPAIRS, everywhere],
    )
    const orphaned = await client.query<{ cid: string }>(
      `SELECT cid FROM pinned p
       WHERE NOT EXISTS (SELECT FROM file WHERE network = $1 AND cid_v1 = p.cid AND ${CLAIMED})
         AND NOT EXISTS (SELECT FROM held_content WHERE network = $1 AND cid = p.cid) LIMIT $2`,
      [storage.network, MAX_REPAIRS],
    )
    const report = { missing: 0, orphaned: 0 }
    for (const file of missing.rows) if (await repair(pool, storage, file, signal)) report.missing++
    for (const { cid } of unpinned.rows) if (await pinAgain(pool, storage, cid, signal)) report.missing++
    for (const { cid } of orphaned.rows) if (await release(pool, storage, cid, signal)) report.orphaned++
    return report
  })
}

/**
 * Lists the pins of all parts. `whole_in` has a bit for each part.
 * @returns the bits of a CID that every part has.
 */
async function copyPins(client: Queryable, storage: Storage, signal: AbortSignal): Promise<number> {
  await client.query('CREATE TEMP TABLE pinned (cid text PRIMARY KEY, whole_in int NOT NULL)')
  const parts = partsOf(storage)
  for (const [part, list] of parts.entries()) {
    let batch = new Map<string, number>()
    const flush = async () => {
      await client.query(
        `INSERT INTO pinned SELECT * FROM unnest($1::text[], $2::int[])
         ON CONFLICT (cid) DO UPDATE SET whole_in = pinned.whole_in | excluded.whole_in`,
        [[...batch.keys()], [...batch.values()]],
      )
      batch = new Map()
    }
    for await (const { cid, isWhole } of list({ signal })) {
      batch.set(cid.toV1().toString(), isWhole ? 1 << part : 0)
      if (batch.size === BATCH) await flush()
    }
    await flush()
  }
  await client.query('ANALYZE pinned')
  return (1 << parts.length) - 1
}

async function repair(
  pool: Pool,
  storage: Storage,
  file: { id: string; workspaceId: string; cid_v1: string },
  signal: AbortSignal,
): Promise<boolean> {
  const cid = CID.parse(file.cid_v1)
  return transaction(pool, async (client) => {
    await lockCid(client, cid)
    if (await storage.isPinned(cid, { signal: within(CHECK_MS, signal) })) return false
    const operationId = await enqueueWhere(
      client,
      'pin.repair',
      file,
      `subject.status = 'pinned' AND NOT EXISTS (
        SELECT FROM operation WHERE target_id = subject.id AND state IN ('queued', 'running'))`,
    )
    if (operationId) await recordRepairs(client, 'pins', 'pin missing', [file.id])
    return operationId !== undefined
  })
}

/** Pins content of snapshots, skills and templates again. If its blocks are gone, nobody else can provide them. */
async function pinAgain(pool: Pool, storage: Storage, text: string, signal: AbortSignal): Promise<boolean> {
  const cid = CID.parse(text)
  const bounded = within(CHECK_MS, signal)
  return transaction(pool, async (client) => {
    await lockCid(client, cid)
    const { rowCount } = await client.query(
      'SELECT FROM held_content WHERE network = $1 AND cid = $2 LIMIT 1',
      [storage.network, text],
    )
    if (!rowCount || (await storage.isPinned(cid, { signal: bounded }))) return false
    try {
      await storage.pin(cid, { offline: true, stallMs: CHECK_MS, signal: bounded })
    } catch (error) {
      if (error instanceof StorageError && error.code === 'not_found') return false
      throw error
    }
    await recordRepairs(client, 'pins', 'pin missing', [text])
    return true
  })
}

async function release(pool: Pool, storage: Storage, text: string, signal: AbortSignal): Promise<boolean> {
  const cid = CID.parse(text)
  return transaction(pool, async (client) => {
    await lockCid(client, cid)
    const { rowCount } = await client.query(
      // Removed files are not indexed by CID: the query finds them through the operations that will release them.
      `SELECT FROM file WHERE network = $1 AND cid_v1 = $2 AND removed_at IS NULL AND ${CLAIMED}
       UNION ALL SELECT FROM operation JOIN file ON file.id = target_id AND removed_at IS NOT NULL
         WHERE kind = 'pin.remove' AND state IN ('queued', 'running') AND network = $1 AND cid_v1 = $2
       UNION ALL SELECT FROM held_content WHERE network = $1 AND cid = $2 LIMIT 1`,
      [storage.network, text],
    )
    if (rowCount) return false
    const gone = await storage.unpin(cid, { signal: within(CHECK_MS, signal) })
    await noteRelease.run(client, storage.network)
    if (gone) await recordRepairs(client, 'pins', 'pin that nothing keeps', [text])
    return gone
  })
}
