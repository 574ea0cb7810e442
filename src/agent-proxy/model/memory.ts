/** Bounds the memory of bodies, of all agents together and of each. */

const MiB = 1024 * 1024

export class Memory {
  readonly #limits: { all: number; one: number }
  readonly #used = new Map<string, number>()
  #all = 0

  constructor(limits = { all: 256 * MiB, one: 96 * MiB }) {
    this.#limits = limits
  }

  /** A body of the agent with this key. Disposing of it releases its memory. */
  open(key: string): HeldBody {
    return new HeldBody((bytes) => this.#take(key, bytes))
  }

  /** @param bytes negative to return them. @returns false if there is not so much left. */
  #take(key: string, bytes: number): boolean {
    const own = (this.#used.get(key) ?? 0) + bytes
    if (bytes > 0 && (own > this.#limits.one || this.#all + bytes > this.#limits.all)) return false
    this.#all += bytes
    if (own === 0) this.#used.delete(key)
    else this.#used.set(key, own)
    return true
  }
}

export class HeldBody {
  chunks: Buffer[] = []
  readonly #take: (bytes: number) => boolean
  #bytes = 0

  constructor(take: (bytes: number) => boolean) {
    this.#take = take
  }

  /** Counts bytes that are about to be kept; false if the agent or all of them have no more left. */
  take(bytes: number): boolean {
    if (!this.#take(bytes)) return false
    this.#bytes += bytes
    return true
  }

  release(): void {
    this.#take(-this.#bytes)
    this.#bytes = 0
    this.chunks = []
  }

  [Symbol.dispose](): void {
    this.release()
  }
}
