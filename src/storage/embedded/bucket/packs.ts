/**
 * Packs: objects with many blocks, each written once and never changed. A pack is a CAR, so that any IPFS tool can read it
 * without the index.
 */
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { decode as decodeDigest } from 'multiformats/hashes/digest'
import { uuidv7 } from 'uuidv7'
import { type Connection, type Pool, transaction } from '../../../db/pool.ts'
import { beginPack, endPack } from '../../../db/statements/node-blocks.ts'
import { crashPoint } from '../../../lib/crash-point.ts'
import { carHeader, carSection } from '../../dag/car.ts'
import { type Network, StorageError } from '../../port.ts'
import type { BucketObjects } from './objects.ts'

/** A pack is closed at this size; its last block may exceed it. */
export const PACK_BYTES = 4 * 1024 * 1024

/** The index has the multihash of a block, whatever the codecs of the CIDs that lead to it. */
export const cidOf = (hash: Uint8Array): CID => CID.createV1(raw.code, decodeDigest(hash))

export interface PackDeps {
  network: Network
  pool: Pool
  objects: BucketObjects
}

/** The blocks as a CAR, and the first byte of each in it. */
function pack(blocks: readonly { hash: Uint8Array; bytes: Uint8Array }[]): { bytes: Buffer; at: number[] } {
  const parts = [carHeader(cidOf(blocks[0]?.hash as Uint8Array))]
  let length = parts[0]?.length ?? 0
  const at = blocks.map(({ hash, bytes }) => {
    const [head, body] = carSection({ cid: cidOf(hash), bytes })
    parts.push(head, body)
    length += head.length + body.length
    return length - body.length
  })
  return { bytes: Buffer.concat(parts, length), at }
}

/**
 * Stores blocks in a new pack. Its row exists before its object, and `commit` runs in the transaction that declares it
 * stored: a process that dies in between leaves a pack that a collection removes.
 * @param commit writes where the blocks are: in the pack `id`, each from the byte in `at`.
 * @throws StorageError `unavailable`, also if a collection has given it up because it took so long.
 */
export async function storePack(
  { network, pool, objects }: PackDeps,
  blocks: readonly { hash: Uint8Array; bytes: Uint8Array }[],
  commit: (tx: Connection, id: string, at: number[]) => Promise<unknown>,
): Promise<void> {
  const { bytes, at } = pack(blocks)
  const id = uuidv7()
  await beginPack.run(pool, id, network, bytes.length)
  crashPoint('pack-before-put')
  await objects.putPack(id, bytes)
  crashPoint('pack-after-put')
  await transaction(pool, async (tx) => {
    if (!(await endPack.run(tx, id)).rowCount)
      throw new StorageError('unavailable', 'Storing blocks in S3 took too long')
    await commit(tx, id, at)
  })
  crashPoint('pack-after-commit')
}
