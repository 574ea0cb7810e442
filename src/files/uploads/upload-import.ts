import type { CID } from 'multiformats/cid'
import { transaction } from '../../db/pool.ts'
import { noteRelease } from '../../db/statements/garbage.ts'
import { badRequest } from '../../errors.ts'
import { within } from '../../lib/signals.ts'
import { type Network, StorageError } from '../../storage/port.ts'
import { isReferenced, lockCid } from '../held-content.ts'
import type { UploadServices } from './grant.ts'
import type { StoredContent } from './keep.ts'

/** Time limit for a step on content that is already stored. */
const STEP_MS = 60_000

export interface ImportTarget {
  services: Pick<UploadServices, 'keepPool' | 'storages' | 'bounds'>
  workspaceId: string
  network: Network
  signal: AbortSignal
}

/**
 * Imports a CAR, and pins its root.
 * @throws ApiError 400 if it is not a complete CAR with a single root, 429 while the maximum number of imports is
 *   running.
 */
export const importCar = (target: ImportTarget, bytes: AsyncIterable<Uint8Array>): Promise<StoredContent> =>
  target.services.bounds.run('carImports', target, () => storeCar(target, bytes))

async function storeCar(
  { services, network, signal }: ImportTarget,
  bytes: AsyncIterable<Uint8Array>,
): Promise<StoredContent> {
  const storage = services.storages[network]
  const { cid } = await invalidAsBadRequest(storage.importCar(bytes, { signal }))
  try {
    const bounded = { signal: within(STEP_MS, signal) }
    return { cid, ...(await invalidAsBadRequest(storage.stat(cid, bounded))) }
  } catch (error) {
    await release(services, network, cid)
    throw error
  }
}

/** Unreadable blocks of a CAR are the client's fault. @throws ApiError 400 for them */
async function invalidAsBadRequest<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof StorageError) || error.code !== 'invalid_object') throw error
    throw badRequest(`file: ${error.message}`)
  }
}

/**
 * Unpins added content, unless a file keeps it. If the node or the database does not respond, the worker's comparison
 * of pins with files does it later.
 */
export async function release(
  { keepPool, storages }: Pick<UploadServices, 'keepPool' | 'storages'>,
  network: Network,
  added: CID,
): Promise<void> {
  const cid = added.toV1()
  await transaction(keepPool, async (client) => {
    await lockCid(client, cid)
    if (await isReferenced(client, network, `${cid}`)) return
    await storages[network].unpin(cid, { signal: AbortSignal.timeout(STEP_MS) })
    await noteRelease.run(client, network)
  }).catch(() => {})
}
