/** The end of every upload: content that is in the store, and pinned, becomes a file. */
import type { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import { z } from 'zod'
import { isForeignKeyViolation, isHeldUp } from '../../db/database-errors.ts'
import { type Pool, transaction } from '../../db/pool.ts'
import { findDuplicate, insertFile, updateType } from '../../db/statements/files.ts'
import { findGroup } from '../../db/statements/groups.ts'
import type { Uploader } from '../../db/statements/uploads.ts'
import { ApiError } from '../../errors.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import type { Storages } from '../../storage/open.ts'
import { type Network, StorageError } from '../../storage/port.ts'
import { lockCid } from '../held-content.ts'
import { groupNotFound } from '../pins/pin-inserts.ts'
import { overMaxSize, overPlanStorage } from './allowance.ts'
import { isBetterType } from './content-type.ts'
import { publishQuotaReached, settle } from './reservations.ts'

/** A file as clients read it. */
export const fileRecord = z.object({
  id: z.string(),
  name: z.string().nullable(),
  cid: z.string(),
  size: z.number().describe('Bytes of the content.'),
  number_of_files: z.number(),
  mime_type: z.string(),
  keyvalues: z.record(z.string(), z.string()),
  group_id: z.string().nullable(),
  created_at: z.string(),
  expires_at: z
    .number()
    .nullable()
    .describe('When it is to be deleted, a Unix time in seconds; null for never.'),
})
export type FileRecord = z.output<typeof fileRecord>

/** A file as the client describes it. */
export interface FileDetails {
  network: Network
  name: string | null
  keyvalues: Record<string, string>
  groupId: string | null
  /** When the file is to be removed; null for never. */
  expiresAt: Date | null
}

/** The content of a file, as the store measured it. */
export interface StoredContent {
  cid: CID
  size: number
  files: number
  mimeType: string
}

export interface KeptFile {
  file: FileRecord
  /** The workspace had this content on this network already, for as long: `file` is that older file, at most with a better type. */
  isDuplicate: boolean
}

const NODE_MS = 10_000

/**
 * Writes the file of content that `Storage.add` or `importCar` has just pinned. Under the CID's lock nobody
 * can release the pin between the check that it is there and the row that keeps it.
 * @param id the new file's id, where the client knows it already.
 * @param reservation what the upload holds of the plan, see {@link settle}.
 * @throws ApiError 404 for a group that is not there, 413 `over_max_size` and 403 `over_free_limit` above the
 *   plan's limits; then the pin is the caller's to release. StorageError when the node does not answer, or others
 *   that wait for it hold this up: what was pinned without a file is released by the worker's comparison.
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
    // A file that ends sooner is no duplicate: the content would go with it, long before the client expects.
    const known = await findDuplicate.first(client, workspaceId, network, `${cid}`, expiresAt)
    if (!(await storage.isPinned(cid, bounded()))) {
      // The pin was released since the content was added: by the deletion of another file, or as a pin that no file kept.
      await storage.pin(cid, { offline: true, stallMs: NODE_MS, ...bounded() })
    }
    if (known) {
      const isBetter = isBetterType(content.mimeType, known.mime_type)
      const file = isBetter ? await updateType.one(client, known.id, content.mimeType) : known
      return { file, isDuplicate: true }
    }
    // The limits come last: other uploads of the workspace wait for this check, and must not wait for a node that hangs.
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
    return { file, isDuplicate: false }
  }).catch(async (error) => {
    if (error instanceof ApiError && error.code === 'over_free_limit')
      await publishQuotaReached(keepPool, uploader.workspaceId)
    // The group was deleted between the look at it and the insert.
    if (isForeignKeyViolation(error, 'file_group_id_fkey')) throw groupNotFound()
    if (!isHeldUp(error)) throw error
    throw new StorageError('unavailable', `Others wait for the node, before ${cid}`, { cause: error })
  })
  crashPoint('after-keep')
  return kept
}

/** @throws ApiError where the plan, or a group that is not there, forbids a new file. */
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
  // The uploads of a workspace are counted one at a time, as are the pins of `workers/handlers/pin.ts`.
  const used = await settle(client, reservation, workspaceId)
  if (used + size > plan.storageBytes) throw overPlanStorage(plan.storageBytes)
}
