import type { CID } from 'multiformats/cid'
import { blockKey, inlineBytes, readLinks } from './codecs.ts'
import { LINKS_PER_TURN, turn } from './dag-limits.ts'

/** Blocks that are remembered of one DAG, at about 100 bytes each. */
export const BLOCKS_LIMIT = 1_000_000

/** Short name of a block. A codec is part of it, for what is a leaf under one has links under another. */
export const nameOf = (cid: CID): string => `${cid.code}:${blockKey(cid)}`

/** The blocks of a DAG that have come, and those that are still missing, as something links to them. */
export class Contents {
  readonly #here = new Set<string>()
  readonly #owed = new Set<string>()

  /** Blocks that have come or are owed. */
  get size(): number {
    return this.#here.size + this.#owed.size
  }

  /** Blocks that are linked and have not come. */
  get missing(): number {
    return this.#owed.size
  }

  has(cid: CID): boolean {
    return this.#here.has(nameOf(cid))
  }

  /** Takes a block that has come, with what it links to. */
  async add(cid: CID, links: CID[]): Promise<void> {
    const name = nameOf(cid)
    this.#here.add(name)
    this.#owed.delete(name)
    for (const [index, link] of links.entries()) {
      this.owe(link)
      if (index % LINKS_PER_TURN === LINKS_PER_TURN - 1) await turn()
    }
  }

  /** Something links to this block. */
  owe(cid: CID): void {
    const inline = inlineBytes(cid)
    if (inline) for (const link of readLinks(cid, inline).links) this.owe(link)
    else if (!this.#here.has(nameOf(cid))) this.#owed.add(nameOf(cid))
  }

  /** A block need not come, as it is known to be kept with all that is below it. True when it was owed. */
  settle(cid: CID): boolean {
    return this.#owed.delete(nameOf(cid))
  }
}
