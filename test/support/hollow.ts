/** Small CARs whose DAGs have more paths than can be walked: each node links one child many times. */
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import type { CID } from 'multiformats/cid'
import type { Block } from '../../src/storage/port.ts'
import { block } from '../integration/storage/cases/blocks.ts'

export interface MadeDag {
  root: CID
  blocks: Block[]
}

/** A file of `depth` levels of nodes that link the same child `width` times, down to one leaf, with correct sizes. */
export async function hollowFile(
  width: number,
  depth: number,
  content: Uint8Array = Buffer.from('x'),
): Promise<MadeDag> {
  const leaf = await block(content)
  const blocks = [leaf]
  let root = leaf.cid
  let size = BigInt(content.length)
  for (let level = 0; level < depth; level++) {
    const data = new UnixFS({ type: 'file', blockSizes: Array(width).fill(size) }).marshal()
    const link = { Name: '', Hash: root, Tsize: 1 }
    const node = await block(dagPb.encode({ Data: data, Links: Array(width).fill(link) }), dagPb.code)
    blocks.unshift(node)
    root = node.cid
    // The largest size that a node may declare: 2^64 - 1.
    size = BigInt.asUintN(63, size * BigInt(width))
  }
  return { root, blocks }
}

/** Directories of `width` names each, all for the same directory, `depth` levels down to one file. */
export async function hollowDirectory(width: number, depth: number): Promise<MadeDag> {
  const leaf = await block(Buffer.from('x'))
  const blocks = [leaf]
  let root = leaf.cid
  for (let level = 0; level < depth; level++) {
    const Links = Array.from({ length: width }, (_, n) => ({
      Name: `n${String(n).padStart(6, '0')}`,
      Hash: root,
      Tsize: 2 ** 50,
    }))
    const node = await block(
      dagPb.encode({ Data: new UnixFS({ type: 'directory' }).marshal(), Links }),
      dagPb.code,
    )
    blocks.unshift(node)
    root = node.cid
  }
  return { root, blocks }
}
