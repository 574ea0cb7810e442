/**
 * Storage for a resumable upload: bytes that its requests may add are reserved, and bytes that have arrived stay
 * counted.
 */
import { uuidv7 } from 'uuidv7'
import type { Pool } from '../../db/pool.ts'
import { countReceived, type Uploader } from '../../db/statements/uploads.ts'
import { overPlanStorage } from './allowance.ts'
import type { Reservations } from './reservations.ts'

interface GrowingUpload {
  id: string
  uploader: Uploader
  /** Bytes that already count for it. */
  counted: number
}

/**
 * Runs `work`, which lets an upload grow.
 * @param bytes its maximum size afterwards.
 * @param readReceived returns its actual size afterwards.
 * @throws ApiError 403 `over_free_limit`, and whatever `work` throws.
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
  // The reservation belongs to the request, not to the upload: a rejected request must not end another one's.
  const room = uuidv7()
  try {
    const granted = await reservations.reserve(room, workspaceId, { need, want: need }, plan.storageBytes)
    if (granted === null) throw overPlanStorage(plan.storageBytes)
    return await work()
  } finally {
    const received = await readReceived().catch(() => counted)
    // The bytes briefly count twice, but are never left out.
    await countReceived.run(pool, id, received).catch(() => {})
    await reservations.release(room)
  }
}
