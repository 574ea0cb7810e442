import type { CID } from 'multiformats/cid'
import type { BlockFolder } from './blocks.ts'

/** Blocks that are written side by side. */
const WRITES = 16

/** Writes blocks side by side: one after the other, many small files would wait for the disk once each. */
export class WriteBehind {
  readonly #blocks: BlockFolder
  readonly #underWay = new Set<Promise<void>>()

  constructor(blocks: BlockFolder) {
    this.#blocks = blocks
  }

  /** Takes a block once there is room for it. @throws what an earlier write threw. */
  async put(cid: CID, bytes: Uint8Array): Promise<void> {
    // One write that ends wakes all who wait, and only one of them may go on.
    while (this.#underWay.size >= WRITES) await Promise.race(this.#underWay)
    const write = this.#write(cid, bytes)
    this.#underWay.add(write)
    write.then(
      () => this.#underWay.delete(write),
      () => {}, // stays, so that the next call throws it
    )
  }

  /** Waits until every block is on the disk. */
  async settle(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  async #write(cid: CID, bytes: Uint8Array): Promise<void> {
    // Another size than it should have: a disk that failed has cut the block off.
    if ((await this.#blocks.use(cid)) !== bytes.length) await this.#blocks.write(cid, bytes)
  }
}
