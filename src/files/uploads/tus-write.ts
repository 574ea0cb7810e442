/** The bytes of a resumable upload: written into its file, within the plan's storage and the room on the disks. */

import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { Request } from 'express'
import { uuidv7 } from 'uuidv7'
import { countReceived } from '../../db/statements/uploads.ts'
import { ApiError, unavailable } from '../../errors.ts'
import type { DiskReserve } from '../../lib/disk-reserve.ts'
import { untilAborted } from '../../lib/signals.ts'
import { overPlanStorage } from './allowance.ts'
import type { UploadServices } from './grant.ts'
import { announcedBytes, boundIdle } from './tus-http.ts'
import { mayNotUpload, type Upload } from './tus-rows.ts'

export type GrowingUpload = Pick<Upload, 'id' | 'length' | 'uploader' | 'counted'>

type Services = Pick<UploadServices, 'pool' | 'reservations' | 'disk'>

/**
 * Writes the body into the file of an upload. Resolves to the number of received bytes of the upload.
 * @param offset the number before.
 * @param stops signals that end it: the client has disconnected, or another request wants the upload.
 * @throws ApiError 413 beyond the upload's length, 403 `over_free_limit`, the error of {@link stored}, and the reasons
 *   of `stops`.
 */
export async function writePiece(
  services: Services,
  req: Request,
  upload: GrowingUpload & { path: string },
  offset: number,
  stops: AbortSignal[],
): Promise<number> {
  const { length, path } = upload
  const { disk } = services
  const announced = announcedBytes(req)
  if (Number.isFinite(announced) && offset + announced > length) throw overLength()
  const bytes = Math.min(offset + announced, length)
  await disk.admit(bytes - offset)
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
  const write = async () => {
    const file = createWriteStream(path, { flags: 'r+', start: offset })
    // A pipeline that fails does not wait for the write under way, which must end before the lease does.
    await pipeline(admitted, file).finally(() => file.closed || once(file, 'close'))
  }
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
 * @param bytes its maximum size afterwards.
 * @throws ApiError 403 `over_free_limit`, and whatever `work` throws.
 */
async function withRoom(
  { pool, reservations }: Services,
  { id, uploader, counted, path }: GrowingUpload & { path: string },
  bytes: number,
  work: () => Promise<void>,
): Promise<void> {
  if (!uploader) throw mayNotUpload()
  const { workspaceId, plan } = uploader
  const need = bytes - counted
  if (plan.storageBytes === null || need <= 0) return work()
  // The reservation belongs to the request, not to the upload: a rejected request must not end another one's.
  const room = uuidv7()
  try {
    const granted = await reservations.reserve(room, workspaceId, { need, want: need }, plan.storageBytes)
    if (granted === null) throw overPlanStorage(plan.storageBytes)
    await work()
  } finally {
    const received = await stat(path).then(
      ({ size }) => size,
      () => counted,
    )
    // The bytes briefly count twice, but are never left out.
    await countReceived.run(pool, id, received).catch(() => {})
    await reservations.release(room)
  }
}
