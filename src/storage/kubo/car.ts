import type { CID } from 'multiformats/cid'
import { carHeader, carSection, openCar } from '../car.ts'
import { type Block, StorageError } from '../port.ts'
import { untilAborted } from '../until-aborted.ts'
import { asStorageError } from './errors.ts'
import { multipart, single } from './multipart.ts'
import type { KuboRpc } from './rpc.ts'

/** Most time that Kubo takes to store the blocks, once it has them all. */
const IMPORT_IDLE_MS = 60_000
const EXPORT_IDLE_MS = 30_000

interface ImportRow {
  Stats?: { BlockCount: number }
}

/**
 * Stores the blocks of a CAR, see `Storage.importCar`; the pin is the caller's. Kubo gets them as a CAR that
 * is written anew, so that it sees nothing that was not checked. @returns its root.
 */
export async function importCar(
  rpc: KuboRpc,
  stream: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<CID> {
  const car = await openCar(untilAborted(stream, signal))
  await storeBlocks(rpc, car.root, car.blocks, signal)
  return car.root
}

/**
 * Has Kubo store blocks, in one call, as they come.
 * @param root What the CAR on the way names as its root; Kubo does nothing with it.
 * @throws StorageError, or what `blocks` throws.
 */
export async function storeBlocks(
  rpc: KuboRpc,
  root: CID,
  blocks: AsyncIterable<Block>,
  signal: AbortSignal,
): Promise<void> {
  let sent = 0
  let stored: number | undefined
  async function* car(): AsyncGenerator<Uint8Array> {
    yield carHeader(root)
    for await (const block of blocks) {
      sent++
      yield* carSection(block)
    }
  }
  const params = { 'pin-roots': false, stats: true, offline: true }
  const call = { signal, idleMs: IMPORT_IDLE_MS, body: multipart(single('car', car())) }
  try {
    for await (const row of rpc.rows<ImportRow>('dag/import', params, call)) {
      stored = row.Stats?.BlockCount ?? stored
    }
  } catch (error) {
    throw asStorageError(error)
  }
  if (stored !== sent) throw new StorageError('unavailable', `Kubo stored ${stored} of ${sent} blocks`)
}

/** A DAG as a CAR, see `Storage.exportCar`. */
export async function* exportCar(rpc: KuboRpc, root: CID, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const params = { arg: `${root}`, progress: false, offline: true }
  try {
    yield* rpc.bytes('dag/export', params, { signal, idleMs: EXPORT_IDLE_MS })
  } catch (error) {
    throw asStorageError(error)
  }
}
