import type { CID } from 'multiformats/cid'
import { blockKey, isLeafCodec } from '../codecs.ts'

/** Leaves that are remembered. Nodes are remembered all: a few of them can have more paths than anybody can walk. */
const LEAF_MEMORY = 250_000

/** The blocks that a walk has met. Of more leaves than it remembers, one that is linked twice is met twice. */
export class Visited {
  readonly #nodes = new Set<string>()
  readonly #leaves = new Set<string>()

  /** Whether the block is met for the first time. The same bytes may be a leaf here and a node there. */
  add(cid: CID): boolean {
    const isLeaf = isLeafCodec(cid)
    const known = isLeaf ? this.#leaves : this.#nodes
    const key = isLeaf ? blockKey(cid) : `${cid.code}:${blockKey(cid)}`
    if (known.has(key)) return false
    if (!isLeaf || known.size < LEAF_MEMORY) known.add(key)
    return true
  }
}
