/**
 * Hot swaps: what a CID of a workspace was swapped to, one row for each change; the newest row is in force.
 * A swap is one step: with A → B and B → C, A is served from B. It outlives its files: what is served is for
 * the gateway to check.
 */
import type { CID } from 'multiformats/cid'
import { type Pool, type Queryable, transaction } from '../../db/pool.ts'
import { badRequest, forbidden, notFound } from '../../errors.ts'
import { isoTime } from '../../operations/store.ts'
import type { Network } from '../../storage/port.ts'
import { canonicalCid } from '../cid.ts'
import type { SwapEntry } from './schema.ts'

/** A CID that may be swapped: that of a workspace on a network, in canonical form. */
export interface Original {
  workspaceId: string
  network: Network
  canonical: string
}

/** As many entries of a history are shown. */
const HISTORY = 1000
const ENTRY = `mapped_cid, ${isoTime('created_at')} AS created_at`
const OF_ORIGINAL = 'workspace_id = $1 AND network = $2 AND cid_v1 = $3'

/**
 * What a CID is swapped to now, in canonical form; null where it is not swapped, or the swap was removed.
 * @param canonical the original, as `canonicalCid` has it.
 */
export async function currentSwap(
  db: Queryable,
  workspaceId: string,
  network: Network,
  canonical: string,
): Promise<string | null> {
  return (await newestEntry(db, { workspaceId, network, canonical }))?.target ?? null
}

/** The changes of a swap, the newest first; none where the CID was never swapped. */
export async function swapHistory(db: Queryable, original: Original): Promise<SwapEntry[]> {
  const { rows } = await db.query(
    `SELECT ${ENTRY} FROM swap WHERE ${OF_ORIGINAL} ORDER BY id DESC LIMIT ${HISTORY}`,
    values(original),
  )
  return rows
}

/**
 * Swaps a CID. Doing it again changes nothing, and answers with the entry that is in force.
 * @param spelled the new CID as the client spelled it: so it is shown.
 * @returns the entry in force, and whether this first swap of the workspace has brought its gateway the plugin.
 * @throws ApiError 400 for a swap to itself, 403 where the plan has no swaps, 404 for a CID that is no file of
 *   the workspace on this network.
 */
export function swap(
  pool: Pool,
  original: Original,
  target: CID,
  spelled: string,
): Promise<{ entry: SwapEntry; installed: boolean }> {
  const targetCanonical = canonicalCid(target)
  if (targetCanonical === original.canonical) throw badRequest('swap_cid: is the CID itself')
  return inOrder(pool, original, async (client) => {
    const isFile = (cid: string) => `EXISTS (SELECT FROM file WHERE workspace_id = $1 AND network = $2
      AND cid_v1 = ${cid} AND status = 'pinned' AND removed_at IS NULL)`
    const checked = await client.query(
      `SELECT plan.hot_swaps AS "inPlan", ${isFile('$3')} AS "hasOriginal", ${isFile('$4')} AS "hasTarget"
       FROM workspace JOIN plan ON plan.name = workspace.plan WHERE workspace.id = $1`,
      [...values(original), targetCanonical],
    )
    const { inPlan, hasOriginal, hasTarget } = checked.rows[0]
    if (!inPlan) throw forbidden('Swaps are not part of the free plan', 'plan')
    if (!hasOriginal) throw notFound('CID not pinned to account')
    if (!hasTarget) throw notFound('swap_cid: CID not pinned to account')
    const newest = await newestEntry(client, original)
    if (newest?.target === targetCanonical) return { entry: newest.entry, installed: false }
    const installed = await installForFirstSwap(client, original.workspaceId)
    return { entry: await insert(client, original, spelled, targetCanonical), installed }
  })
}

/**
 * Gives the oldest gateway of a workspace that has never swapped the plugin, unless another one has it: the
 * npm SDK can swap, but not install plugins. Gateways do not have it from the start, since it costs them
 * the caching of content that never changes.
 */
async function installForFirstSwap(db: Queryable, workspaceId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `UPDATE gateway SET hot_swaps = true
     WHERE id = (SELECT id FROM gateway WHERE workspace_id = $1 ORDER BY id LIMIT 1)
       AND NOT EXISTS (SELECT FROM gateway WHERE workspace_id = $1 AND hot_swaps)
       AND NOT EXISTS (SELECT FROM swap WHERE workspace_id = $1)`,
    [workspaceId],
  )
  return rowCount === 1
}

/** Takes a swap back; its history stays. @throws ApiError 404 where the CID is not swapped. */
export function removeSwap(pool: Pool, original: Original): Promise<SwapEntry> {
  return inOrder(pool, original, async (client) => {
    const newest = await newestEntry(client, original)
    if (!newest?.target) throw notFound('CID is not swapped')
    return insert(client, original, null, null)
  })
}

/** The entry in force, and its new CID in canonical form. */
async function newestEntry(
  db: Queryable,
  original: Original,
): Promise<{ entry: SwapEntry; target: string | null } | undefined> {
  const { rows } = await db.query({
    name: 'swap-newest',
    text: `SELECT ${ENTRY}, mapped_cid_v1 FROM swap WHERE ${OF_ORIGINAL} ORDER BY id DESC LIMIT 1`,
    values: values(original),
  })
  if (!rows[0]) return undefined
  const { mapped_cid_v1: target, ...entry } = rows[0]
  return { entry, target }
}

const values = ({ workspaceId, network, canonical }: Original) => [workspaceId, network, canonical]

/** One change of a CID's swap at a time, so that ids and times grow together. */
function inOrder<T>(pool: Pool, original: Original, change: (client: Queryable) => Promise<T>): Promise<T> {
  return transaction(pool, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 3))', [values(original).join()])
    return change(client)
  })
}

async function insert(
  db: Queryable,
  original: Original,
  spelled: string | null,
  canonical: string | null,
): Promise<SwapEntry> {
  const { rows } = await db.query(
    `INSERT INTO swap (workspace_id, network, cid_v1, mapped_cid, mapped_cid_v1)
     VALUES ($1, $2, $3, $4, $5) RETURNING ${ENTRY}`,
    [...values(original), spelled, canonical],
  )
  return rows[0]
}
