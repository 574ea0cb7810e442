/** The end of every upload: stored, pinned content becomes a file. */

import type { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import { z } from 'zod'
import { isContention, isForeignKeyViolation } from '../../db/database-errors.ts'
import { type Pool, transaction } from '../../db/pool.ts'
import { findDuplicate, insertFile, updateType } from '../../db/statements/files.ts'
import { findGroup } from '../../db/statements/groups.ts'
import { settleUpload, type Uploader } from '../../db/statements/uploads.ts'
import { ApiError } from '../../errors.ts'
import { contentCid, keyvaluePairs, like, timestamp, uuid } from '../../http/fields.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { enqueue } from '../../operations/enqueue.ts'
import type { Storages } from '../../storage/open.ts'
import { type Network, StorageError } from '../../storage/port.ts'
import { lockCid } from '../held-content.ts'
import { groupNotFound } from '../pins/pin-inserts.ts'
import { overMaxSize, overPlanStorage } from './allowance.ts'
import { isBetterType } from './content-type.ts'
import { publishQuotaReached } from './reservations.ts'

/** A file, as shown to clients. */
export const fileRecord = z.object({
  id: uuid,
  name: like('logo.png').nullable(),
  cid: contentCid,
  size: like(17_408).describe('Bytes of the content.'),
  number_of_files: like(1),
  mime_type: like('image/png'),
  keyvalues: keyvaluePairs,
  group_id: z.string().nullable(),
  created_at: timestamp,
  expires_at: z
    .number()
    .nullable()
    .describe('When it will be deleted, as Unix time in seconds; null for never.'),
})
export type FileRecord = z.output<typeof fileRecord>

/** A file as the client describes it. */
export interface FileDetails {
  network: Network
  name: string | null
  keyvalues: Record<string, string>
  groupId: string | null
  /** When to remove the file; null for never. */
  expiresAt: Date | null
}

/** The content of a file, as measured by the store. */
export interface StoredContent {
  cid: CID
  size: number
  files: number
  mimeType: string
}

export interface KeptFile {
  file: FileRecord
  /**
   * The workspace already had this content on this network, with the same or a later expiry: `file` is that older file,
   * possibly with a better type.
   */
  isDuplicate: boolean
}

const NODE_MS = 10_000

/**
 * Writes the file of content that `Storage.add` or `importCar` has just pinned. Because of the CID's lock, nothing can
 * release the pin between the check that it exists and the row that keeps it.
 * @param id the new file's id, if the client already knows it.
 * @param reservation the upload's reservation of the plan's storage; see `settleUpload`.
 * @throws ApiError 404 if the group does not exist, 413 `over_max_size` and 403 `over_free_limit` above the plan's
 *   limits; the caller must then release the pin. StorageError if the node does not respond, or if others that wait for
 *   it hold this up; the worker's comparison then releases content that was pinned without a file.
 */
export async function keepContent(
  { keepPool, storages }: { keepPool: Pool; storages: Storages },
  uploader: Uploader,
  details: FileDetails,
  content: StoredContent,
  { id = uuidv7(), reservation }: { id?: string; reservation: string },
): Promise<KeptFile> {
  const storage = storages[details.network]
  const cid = content.cid.toV1()
  const bounded = () => ({ signal: AbortSignal.timeout(NODE_MS) })
  crashPoint('after-add')
  const kept = await transaction(keepPool, async (client) => {
    await lockCid(client, cid)
    const { workspaceId, userId } = uploader
    const { network, name, keyvalues, groupId, expiresAt } = details
    // A file that expires sooner is not a duplicate: its content would disappear long before the client expects.
    const known = await findDuplicate.first(client, workspaceId, network, `${cid}`, expiresAt)
    if (!(await storage.isPinned(cid, bounded()))) {
      // The pin was released after the content was added: by the deletion of another file, or as a pin that no file
      // kept.
      await storage.pin(cid, { offline: true, stallMs: NODE_MS, ...bounded() })
    }
    if (known) {
      const isBetter = isBetterType(content.mimeType, known.mime_type)
      const file = isBetter ? await updateType.one(client, known.id, content.mimeType) : known
      return { file, isDuplicate: true }
    }
    // The limits come last: other uploads of the workspace wait for this check, and must not wait for a hanging node.
    await checkLimits(client, uploader, details, content, reservation)
    const file = await insertFile.one(
      client,
      id,
      workspaceId,
      network,
      `${content.cid}`,
      `${cid}`,
      name,
      JSON.stringify(keyvalues),
      groupId,
      userId,
      content.size,
      content.files,
      content.mimeType,
      expiresAt,
    )
    // The content has the replicas of other files, or the setting's: the plan may want more.
    if ((uploader.plan.replicas ?? 0) > (storage.minReplicas ?? Number.POSITIVE_INFINITY))
      await enqueue(client, 'pin.repair', { id, workspaceId })
    return { file, isDuplicate: false }
  }).catch(async (error) => {
    if (error instanceof ApiError && error.code === 'over_free_limit')
      await publishQuotaReached(keepPool, uploader.workspaceId)
    // The group was deleted between the check and the insert.
    if (isForeignKeyViolation(error, 'file_group_id_fkey')) throw groupNotFound()
    if (!isContention(error)) throw error
    throw new StorageError('unavailable', `Others wait for the node, before ${cid}`, { cause: error })
  })
  crashPoint('after-keep')
  return kept
}

/** @throws ApiError if the plan does not allow a new file, or its group does not exist. */
async function checkLimits(
  client: Pick<Pool, 'query'>,
  { workspaceId, plan }: Uploader,
  { network, groupId }: FileDetails,
  { size }: StoredContent,
  reservation: string,
): Promise<void> {
  if (groupId !== null && !(await findGroup.first(client, groupId, workspaceId, network)))
    throw groupNotFound()
  if (plan.maxFileBytes !== null && size > plan.maxFileBytes) throw overMaxSize(plan.maxFileBytes)
  if (plan.storageBytes === null) return
  // The uploads of a workspace are counted one at a time, as are the pins in `workers/handlers/pin.ts`.
  const { used } = await settleUpload.one(client, reservation, workspaceId)
  if (used + size > plan.storageBytes) throw overPlanStorage(plan.storageBytes)
}
