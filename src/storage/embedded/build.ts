import type { CID } from 'multiformats/cid'
import { buildDag } from '../build.ts'
import type { PutBlock } from '../port.ts'
import type { BlockFolder } from './blocks.ts'
import { readBlock } from './read.ts'
import { WriteBehind } from './write-behind.ts'

/** Stores the blocks of a DAG that is built, see `Storage.build`; the pin is the caller's. @returns its root. */
export async function buildBlocks(
  make: (put: PutBlock) => Promise<CID>,
  base: CID | null,
  blocks: BlockFolder,
  signal: AbortSignal,
): Promise<CID> {
  const writes = new WriteBehind(blocks)
  const node = {
    read: (cid: CID) => readBlock(cid, blocks),
    write: ({ cid, bytes }: { cid: CID; bytes: Uint8Array }) => writes.put(cid, bytes),
  }
  const root = await buildDag(make, base, node, signal)
  await writes.settle()
  return root
}
