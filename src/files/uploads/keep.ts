/** The end of every upload: content that is in the store, and pinned, becomes a file. */
import type { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import type { Plan } from '../../accounts/authenticator.ts'
import { crashPoint } from '../../crash-point.ts'
import { isForeignKeyViolation, isHeldUp } from '../../db/errors.ts'
import { type Pool, transaction } from '../../db/pool.ts'
import { ApiError, notFound } from '../../errors.ts'
import type { Storages } from '../../storage/open.ts'
import { type Network, StorageError } from '../../storage/port.ts'
import { lockCid } from '../cid-lock.ts'
import type { FileRecord } from '../files/schema.ts'
import { FILE_COLUMNS } from '../files/service.ts'
import { readUsage } from '../usage/service.ts'

/** Who uploads: the owner of a key, or of the key that signed the URL. */
export interface Uploader {
  workspaceId: string
  userId: string
  plan: Plan
}

/** What the client says of a file. */
export interface FileDetails {
  network: Network
  name: string | null
  keyvalues: Record<string, string>
  groupId: string | null
  /** When the file is to be removed; null for never. */
  expiresAt: Date | null
}

/** What the store says of it. */
export interface StoredContent {
  cid: CID
  size: number
  files: number
  mimeType: string
}

export interface KeptFile {
  file: FileRecord
  /** The workspace had this content on this network already, for as long: `file` is that older file, unchanged. */
  isDuplicate: boolean
}

const NODE_MS = 10_000

/**
 * Writes the file of content that `Storage.add` or `importCar` has just pinned. Under the CID's lock nobody
 * can release the pin between the check that it is there and the row that keeps it.
 * @param id the new file's id, where the client knows it already.
 * @throws ApiError 404 for a group that is not there, 413 `over_max_size` and 403 `over_free_limit` above the
 *   plan's limits; then the pin is the caller's to release. StorageError when the node does not answer, or others
 *   that wait for it hold this up: what was pinned without a file is released by the worker's comparison.
 */
export async function keepContent(
  { keepPool, storages }: { keepPool: Pool; storages: Storages },
  uploader: Uploader,
  details: FileDetails,
  content: StoredContent,
  id: string = uuidv7(),
): Promise<KeptFile> {
  const storage = storages[details.network]
  const cid = content.cid.toV1()
  const bounded = () => ({ signal: AbortSignal.timeout(NODE_MS) })
  crashPoint('after-add')
  const kept = await transaction(keepPool, async (client) => {
    await lockCid(client, cid)
    const owned = [uploader.workspaceId, details.network, `${cid}`]
    // One that ends sooner is no duplicate: the content would go with it, long before the client expects.
    const known = await client.query(
      `SELECT ${FILE_COLUMNS} FROM file WHERE workspace_id = $1 AND network = $2 AND cid_v1 = $3
         AND status = 'pinned' AND removed_at IS NULL
         AND (expires_at IS NULL OR expires_at >= coalesce($4, 'infinity'::timestamptz)) ORDER BY id LIMIT 1`,
      [...owned, details.expiresAt],
    )
    if (known.rows.length === 0) await checkLimits(client, uploader, details, content)
    if (!(await storage.isPinned(cid, bounded()))) {
      // Released since it was added: by the deletion of another file, or as a pin that no file kept.
      await storage.pin(cid, { offline: true, stallMs: NODE_MS, ...bounded() })
    }
    if (known.rows[0]) return { file: known.rows[0], isDuplicate: true }
    const { rows } = await client.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, group_id, host_nodes,
         user_id, size, number_of_files, mime_type, pinned_at, expires_at)
       VALUES ($4, $1, $2, 'pinned', $5, $3, $6, $7, $8, '{}', $9, $10, $11, $12, clock_timestamp(), $13)
       RETURNING ${FILE_COLUMNS}`,
      [
        ...owned,
        id,
        `${content.cid}`,
        details.name,
        JSON.stringify(details.keyvalues),
        details.groupId,
        uploader.userId,
        content.size,
        content.files,
        content.mimeType,
        details.expiresAt,
      ],
    )
    return { file: rows[0], isDuplicate: false }
  }).catch((error) => {
    // Deleted between the look at it and the insert.
    if (isForeignKeyViolation(error, 'file_group_id_fkey')) throw groupNotFound()
    if (!isHeldUp(error)) throw error
    throw new StorageError('unavailable', `Others wait for the node, before ${cid}`, { cause: error })
  })
  crashPoint('after-keep')
  return kept
}

const groupNotFound = () => notFound('group_id: there is no such group')

/** @throws ApiError where the plan, or a group that is not there, forbids a new file. */
async function checkLimits(
  client: Pick<Pool, 'query'>,
  { workspaceId, plan }: Uploader,
  { network, groupId }: FileDetails,
  { size }: StoredContent,
): Promise<void> {
  if (groupId !== null) {
    const group = await client.query(
      'SELECT FROM file_group WHERE id = $1 AND workspace_id = $2 AND network = $3',
      [groupId, workspaceId, network],
    )
    if (group.rowCount === 0) throw groupNotFound()
  }
  if (plan.maxFileBytes !== null && size > plan.maxFileBytes) throw overMaxSize(plan.maxFileBytes)
  if (plan.storageBytes === null) return
  // One upload of the workspace at a time is counted, as in the pins of `workers/pin-add.ts`.
  await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 1))', [workspaceId])
  const { bytes } = await readUsage(client, workspaceId)
  if (bytes + size > plan.storageBytes) throw overFreeLimit(plan.storageBytes)
}

/** The answer to a file above the plan's limit for one file. */
export const overMaxSize = (limit: number): ApiError =>
  new ApiError(413, 'over_max_size', `file: larger than the ${limit} bytes that the plan allows for one file`)

/** The answer to a file above what the plan stores in all. */
export const overFreeLimit = (limit: number): ApiError =>
  new ApiError(403, 'over_free_limit', `file: would exceed the ${limit} bytes that the plan stores`)
