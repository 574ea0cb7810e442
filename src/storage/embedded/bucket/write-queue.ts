import { nameOf } from './batches.ts'

/** A leaf that nobody waits for more of is stored after this time. */
const LINGER_MS = 100
/** Batches that are stored at a time. */
const AT_ONCE = 4
const BATCH_BLOCKS = 512

export interface NewBlock {
  /** The multihash. */
  hash: Uint8Array
  bytes: Uint8Array
  /** Whether to store it even if it is here: that copy may be damaged. */
  replace: boolean
  isNode: boolean
  linkless: number | null
}

interface Queued extends NewBlock {
  stored: PromiseWithResolvers<void>
}

/**
 * Blocks that are stored together. Nodes are stored at once, leaves when there are enough of them, or soon. All callers of
 * a process share it, so small uploads share a batch, and its outcome.
 */
export class WriteQueue {
  readonly #store: (blocks: readonly NewBlock[]) => Promise<void>
  readonly #batchBytes: number
  /** Everything that is not stored yet, by multihash. */
  readonly #queued = new Map<string, Queued>()
  #leaves = new Batch()
  #nodes = new Batch()
  /** Complete batches that wait for their turn. */
  readonly #ready: Queued[][] = []
  #underWay = 0
  #timer: NodeJS.Timeout | undefined

  /** @param store stores blocks completely when it resolves. @param batchBytes size of a batch. */
  constructor(store: (blocks: readonly NewBlock[]) => Promise<void>, batchBytes: number) {
    this.#store = store
    this.#batchBytes = batchBytes
  }

  /** A block that is not stored yet. */
  find(hash: Uint8Array): NewBlock | undefined {
    return this.#queued.get(nameOf(hash))
  }

  /** Stores a block in which others may be interested before this returns. */
  putNode(block: NewBlock): Promise<void> {
    return this.#put(block, this.#nodes, () => {
      if (this.#nodes.blocks.length === 1) setImmediate(() => this.#close('nodes'))
    })
  }

  putLeaf(block: NewBlock): Promise<void> {
    return this.#put(block, this.#leaves, () => {
      this.#timer ??= setTimeout(() => this.flush(), LINGER_MS)
    })
  }

  /** Stores everything that waits. */
  flush(): void {
    this.#close('leaves')
    this.#close('nodes')
  }

  async #put(block: NewBlock, batch: Batch, onWait: () => void): Promise<void> {
    const name = nameOf(block.hash)
    const same = this.#queued.get(name)
    if (same) {
      if (same.replace || !block.replace) return same.stored.promise
      await same.stored.promise
      return this.#put(block, block.isNode ? this.#nodes : this.#leaves, onWait)
    }
    const queued = { ...block, stored: Promise.withResolvers<void>() }
    this.#queued.set(name, queued)
    batch.add(queued)
    if (batch.bytes >= this.#batchBytes || batch.blocks.length >= BATCH_BLOCKS)
      this.#close(batch === this.#nodes ? 'nodes' : 'leaves')
    else onWait()
    return queued.stored.promise
  }

  #close(which: 'leaves' | 'nodes'): void {
    const { blocks } = which === 'nodes' ? this.#nodes : this.#leaves
    if (which === 'leaves') {
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
    if (blocks.length === 0) return
    if (which === 'nodes') this.#nodes = new Batch()
    else this.#leaves = new Batch()
    this.#ready.push(blocks)
    this.#next()
  }

  #next(): void {
    while (this.#underWay < AT_ONCE) {
      const batch = this.#ready.shift()
      if (!batch) return
      this.#underWay++
      void this.#run(batch)
    }
  }

  async #run(batch: Queued[]): Promise<void> {
    const end = (settle: (queued: Queued) => void) => {
      for (const queued of batch) {
        this.#queued.delete(nameOf(queued.hash))
        settle(queued)
      }
    }
    try {
      await this.#store(batch)
      end(({ stored }) => stored.resolve())
    } catch (error) {
      end(({ stored }) => stored.reject(error))
    }
    this.#underWay--
    this.#next()
  }
}

class Batch {
  readonly blocks: Queued[] = []
  bytes = 0

  add(block: Queued): void {
    this.blocks.push(block)
    this.bytes += block.bytes.length
  }
}
