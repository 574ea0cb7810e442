import type { CID } from 'multiformats/cid'
import { isLeafCodec } from './codecs.ts'
import { nameOf } from './contents.ts'
import { LINKS_PER_TURN, turn } from './limits.ts'

/** Maximum links in memory at a time, over all open blocks. A CID takes about 200 bytes. */
const LINK_LIMIT = 200_000

interface Frame {
  cid: CID
  /** Index of the next link. */
  next: number
  /** Null until the block is opened, and again after its links had to make room. */
  links: CID[] | null
}

/**
 * The blocks of a DAG that are still to be visited, depth first. It remembers parents and the position in each, and
 * reads their links again if they had to make room, so that its memory is independent of both the size of the DAG and
 * the fan-out of its blocks.
 */
export class Frontier {
  readonly #frames: Frame[] = []
  readonly #open: (cid: CID) => Promise<CID[]>
  readonly #limit: number
  #held = 0
  #passed = 0

  /** @param open Reads the links of a pushed block. */
  constructor(open: (cid: CID) => Promise<CID[]>, limit = LINK_LIMIT) {
    this.#open = open
    this.#limit = limit
  }

  get isEmpty(): boolean {
    return this.#frames.length === 0
  }

  /** Adds a block whose links will be visited before the existing ones. */
  push(cid: CID): void {
    this.#frames.push({ cid, next: 0, links: null })
  }

  /** The next link to visit, or null if there is none left. Must not be called while another call is running. */
  async next(): Promise<CID | null> {
    for (;;) {
      const top = this.#frames.at(-1)
      if (!top) return null
      if (!top.links) {
        const links = await this.#open(top.cid)
        this.#makeRoom(links.length)
        top.links = links
        this.#held += links.length
        continue // blocks may have been pushed above it in the meantime
      }
      const link = top.links[top.next++]
      if (top.next >= top.links.length) {
        this.#held -= top.links.length
        this.#frames.pop()
      }
      // Without this, a series of known links would be skipped without a pause.
      if (++this.#passed % LINKS_PER_TURN === 0) await turn()
      if (link) return link
    }
  }

  /** Closes the blocks that come last, until `count` more links fit. */
  #makeRoom(count: number): void {
    for (const frame of this.#frames) {
      if (this.#held + count <= this.#limit) return
      if (!frame.links) continue
      this.#held -= frame.links.length
      frame.links = null
    }
  }
}

/** Maximum leaves remembered. All nodes are: a few of them can have more paths than anyone can walk. */
const LEAF_MEMORY = 250_000

/** The blocks that a walk has met. Beyond the leaves that it remembers, one that is linked twice is met twice. */
export class Visited {
  readonly #nodes = new Set<string>()
  readonly #leaves = new Set<string>()

  /**
   * Adds a block, and returns whether it is met for the first time. The same bytes under two codecs are two blocks: a
   * leaf under one and a node under the other, each with its own place in a CAR.
   */
  add(cid: CID): boolean {
    const isLeaf = isLeafCodec(cid)
    const known = isLeaf ? this.#leaves : this.#nodes
    const key = nameOf(cid)
    if (known.has(key)) return false
    if (!isLeaf || known.size < LEAF_MEMORY) known.add(key)
    return true
  }

  /** True for a node that the walk has met. */
  hasNode(cid: CID): boolean {
    return this.#nodes.has(nameOf(cid))
  }
}
