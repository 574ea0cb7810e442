import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import { carHeader, carSection } from '../../../../src/storage/dag/car.ts'
import type { Block } from '../../../../src/storage/port.ts'

/** A block of these bytes. */
export async function block(bytes: Uint8Array, code: number = raw.code): Promise<Block> {
  return { cid: CID.createV1(code, await sha256.digest(bytes)), bytes }
}

/** A directory with these entries. */
export function node(links: CID[]): Promise<Block> {
  const Links = links.map((Hash, i) => ({ Name: `${i}`, Hash, Tsize: 1 }))
  const Data = new UnixFS({ type: 'directory' }).marshal()
  return block(dagPb.encode(dagPb.prepare({ Data, Links })), dagPb.code)
}

/** A CAR of these blocks, unchanged. */
export function carOf(root: CID, blocks: Block[]): Buffer {
  return Buffer.concat([carHeader(root), ...blocks.flatMap(carSection)])
}

/** Bytes as a stream of pieces of this size. */
export async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** The CIDs of blocks, in order. */
export async function namesOf(blocks: AsyncIterable<Block>): Promise<string[]> {
  const names: string[] = []
  for await (const { cid } of blocks) names.push(`${cid}`)
  return names
}
