/** The room of a resumable upload: what its requests may add is reserved, and what has arrived stays counted. */
import { uuidv7 } from 'uuidv7'
import type { Pool } from '../../db/pool.ts'
import { countReceived, type Uploader } from '../../db/statements/uploads.ts'
import { overPlanStorage } from './allowance.ts'
import type { Reservations } from './reservations.ts'

interface GrowingUpload {
  id: string
  uploader: Uploader
  /** Bytes that are counted for it already. */
  counted: number
}

/**
 * Runs `work`, which lets an upload grow.
 * @param bytes that it may have afterwards.
 * @param readReceived tells how many it has then.
 * @throws ApiError 403 `over_free_limit`, and what `work` throws.
 */
export async function withRoom<T>(
  { pool, reservations }: { pool: Pool; reservations: Reservations },
  { id, uploader, counted }: GrowingUpload,
  bytes: number,
  readReceived: () => Promise<number>,
  work: () => Promise<T>,
): Promise<T> {
  const { workspaceId, plan } = uploader
  const need = bytes - counted
  if (plan.storageBytes === null || need <= 0) return work()
  // The reservation belongs to the request, not to the upload: a request that is refused must not end another one's.
  const room = uuidv7()
  try {
    const granted = await reservations.reserve(room, workspaceId, { need, want: need }, plan.storageBytes)
    if (granted === null) throw overPlanStorage(plan.storageBytes)
    return await work()
  } finally {
    const received = await readReceived().catch(() => counted)
    // The bytes are counted twice for a moment, and never left out.
    await countReceived.run(pool, id, received).catch(() => {})
    await reservations.release(room)
  }
}
