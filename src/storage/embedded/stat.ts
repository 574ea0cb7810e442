import type { CID } from 'multiformats/cid'
import { describeDag, type LocalBlocks, MIME_SAMPLE } from '../dag/measure.ts'
import { missingBlock, readBlock, readFile } from '../dag/read.ts'
import { walkDag } from '../dag/walk.ts'
import type { DagStat } from '../port.ts'
import type { Pieces } from './pieces.ts'
import type { NodeBlocks } from './place.ts'

/** Describes a DAG; see `Storage.stat`. */
export function statDag(
  cid: CID,
  { blocks, pieces }: { blocks: NodeBlocks; pieces: Pieces },
  signal: AbortSignal,
): Promise<DagStat> {
  const read = (block: CID) => readBlock(block, blocks)
  const local: LocalBlocks = {
    read,
    sizes: (leaves) =>
      Promise.all(
        leaves.map(async (leaf) => {
          const size = await blocks.size(leaf)
          if (size === null) throw missingBlock(leaf)
          return size
        }),
      ),
    pieceSize: async (node) => {
      const size = pieces.size(node)
      return size === undefined || (await blocks.size(node)) === null ? undefined : size
    },
    totalSize: async (root) => (await walkDag(root, { blocks, retrieve: null, signal })).bytes,
    sample: async (file) => {
      const sample: Uint8Array[] = []
      for await (const chunk of readFile(file, read, { length: MIME_SAMPLE, signal })) sample.push(chunk)
      return Buffer.concat(sample)
    },
  }
  return describeDag(cid, local, signal)
}
