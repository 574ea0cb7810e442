/** The bytes of a resumable upload as they arrive: within the plan's storage and the room on the disks. */

import type { Request } from 'express'
import { uuidv7 } from 'uuidv7'
import { countReceived } from '../../db/statements/uploads.ts'
import { ApiError, unavailable } from '../../errors.ts'
import type { DiskReserve } from '../../lib/disk-reserve.ts'
import { untilAborted } from '../../lib/signals.ts'
import { overPlanStorage } from './allowance.ts'
import type { UploadServices } from './grant.ts'
import type { HeldUpload, UploadBytes } from './tus-bytes.ts'
import { announcedBytes, boundIdle } from './tus-http.ts'
import { mayNotUpload, type Upload } from './tus-rows.ts'

export type GrowingUpload = Pick<Upload, 'id' | 'length' | 'uploader' | 'counted'>

type Services = Pick<UploadServices, 'pool' | 'reservations' | 'disk'> & { bytes: UploadBytes }

/**
 * Adds the body to the bytes of an upload. Resolves to the number of received bytes of the upload.
 * @param offset the number before.
 * @param stops signals that end it: the client has disconnected, or another request wants the upload.
 * @throws ApiError 413 beyond the upload's length, 403 `over_free_limit`, the error of {@link stored}, and the reasons
 *   of `stops`.
 */
export async function writePiece(
  services: Services,
  req: Request,
  upload: GrowingUpload & HeldUpload,
  offset: number,
  stops: AbortSignal[],
): Promise<number> {
  const { length } = upload
  const { disk } = services
  const announced = announcedBytes(req)
  if (Number.isFinite(announced) && offset + announced > length) throw overLength()
  const bytes = Math.min(offset + announced, length)
  await disk.admit(services.bytes.onDisk ? bytes - offset : 0)
  let received = offset
  async function* admitted() {
    // A rejected client should read its response, so its connection stays open.
    const chunks: AsyncIterable<Uint8Array> = req.iterator({ destroyOnReturn: false })
    for await (const chunk of untilAborted(chunks, AbortSignal.any(stops))) {
      received += chunk.length
      if (received > length) throw overLength()
      // Other uploads may write to the same disk at the same time.
      await disk.admit()
      yield chunk
    }
  }
  const write = () => services.bytes.append(upload, offset, admitted())
  await withRoom(services, upload, bytes, () => boundIdle(req, () => stored(disk, write())))
  return received
}

const overLength = () => new ApiError(413, 'bad_request', "upload's size exceeded")

/** @throws ApiError 507 while a disk is down to its reserve, 503 if the bytes cannot be stored for another reason. */
export async function stored(disk: DiskReserve, written: Promise<void>): Promise<void> {
  try {
    await written
  } catch (error) {
    if (error instanceof ApiError) throw error
    await disk.admit()
    throw unavailable('The upload cannot be stored now', error)
  }
}

/**
 * Runs `work`, which lets an upload grow: bytes that it may add are reserved, and bytes that have arrived stay counted.
 * @param size its maximum size afterwards.
 * @throws ApiError 403 `over_free_limit`, and whatever `work` throws.
 */
async function withRoom(
  { pool, reservations, bytes }: Services,
  { id, uploader, counted }: GrowingUpload,
  size: number,
  work: () => Promise<void>,
): Promise<void> {
  if (!uploader) throw mayNotUpload()
  const { workspaceId, plan } = uploader
  const need = size - counted
  if (plan.storageBytes === null || need <= 0) return work()
  // The reservation belongs to the request, not to the upload: a rejected request must not end another one's.
  const room = uuidv7()
  try {
    const granted = await reservations.reserve(room, workspaceId, { need, want: need }, plan.storageBytes)
    if (granted === null) throw overPlanStorage(plan.storageBytes)
    await work()
  } finally {
    const received = (await bytes.count(id).catch(() => null)) ?? counted
    // The bytes briefly count twice, but are never left out.
    await countReceived.run(pool, id, received).catch(() => {})
    await reservations.release(room)
  }
}
