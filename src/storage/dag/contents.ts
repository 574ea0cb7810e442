import type { CID } from 'multiformats/cid'
import { blockKey, inlineBytes, readLinks } from './codecs.ts'
import { LINKS_PER_TURN, turn } from './limits.ts'

/** Maximum blocks remembered for one DAG, at about 100 bytes each. */
export const BLOCKS_LIMIT = 1_000_000

/** Short name of a block. The codec is part of it, because a leaf under one codec has links under another. */
export const nameOf = (cid: CID): string => `${cid.code}:${blockKey(cid)}`

/** The received blocks of a DAG, and the missing ones that something links to. */
export class Contents {
  readonly #here = new Set<string>()
  readonly #owed = new Set<string>()

  /** The number of blocks that have arrived or are missing. */
  get size(): number {
    return this.#here.size + this.#owed.size
  }

  /** The number of linked blocks that have not arrived. */
  get missing(): number {
    return this.#owed.size
  }

  has(cid: CID): boolean {
    return this.#here.has(nameOf(cid))
  }

  /** Adds a received block, with its links. */
  async add(cid: CID, links: CID[]): Promise<void> {
    const name = nameOf(cid)
    this.#here.add(name)
    this.#owed.delete(name)
    for (const [index, link] of links.entries()) {
      this.owe(link)
      if (index % LINKS_PER_TURN === LINKS_PER_TURN - 1) await turn()
    }
  }

  /** Notes that something links to this block. */
  owe(cid: CID): void {
    const inline = inlineBytes(cid)
    if (inline) for (const link of readLinks(cid, inline).links) this.owe(link)
    else if (!this.#here.has(nameOf(cid))) this.#owed.add(nameOf(cid))
  }

  /** Marks a block as not needed, because it is known to be kept with everything below it. True if it was missing. */
  settle(cid: CID): boolean {
    return this.#owed.delete(nameOf(cid))
  }
}
