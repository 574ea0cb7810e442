import type { Pool } from '../../db/pool.ts'
import { ApiError } from '../../errors.ts'
import { readUsage } from '../usage/service.ts'
import type { UploadGrant } from './grant.ts'
import { overFreeLimit, overMaxSize } from './keep.ts'

/**
 * How many bytes an upload may have as it comes: what the plan allows for one file and has left, and what
 * the URL allows. Whether the workspace has the content already shows only when all of it is there, so a
 * duplicate needs the room as well.
 * @returns a check of how many bytes there are: it throws ApiError 413 `over_max_size` or 403 `over_free_limit`.
 */
export async function openAllowance(
  pool: Pool,
  { uploader, maxFileBytes }: Pick<UploadGrant, 'uploader' | 'maxFileBytes'>,
): Promise<(bytes: number) => void> {
  const { plan, workspaceId } = uploader
  const used = plan.storageBytes === null ? 0 : (await readUsage(pool, workspaceId)).bytes
  return (bytes) => {
    if (maxFileBytes !== undefined && bytes > maxFileBytes) throw overUrlSize(maxFileBytes)
    if (plan.maxFileBytes !== null && bytes > plan.maxFileBytes) throw overMaxSize(plan.maxFileBytes)
    if (plan.storageBytes !== null && used + bytes > plan.storageBytes) throw overFreeLimit(plan.storageBytes)
  }
}

/** The answer to a file above what a signed URL allows. */
export const overUrlSize = (limit: number): ApiError =>
  new ApiError(413, 'over_max_size', `file: larger than the ${limit} bytes that this URL allows`)
