/** Approximate memory of an entry in addition to its bytes. */
const ENTRY_BYTES = 512

/** Parts of packs in memory, up to a number of bytes; those that were read longest ago go first. Packs never change. */
export class PartCache {
  readonly #limit: number
  readonly #kept = new Map<string, Uint8Array>()
  /** Reads under way: callers that miss the same part share one. */
  readonly #reads = new Map<string, Promise<Uint8Array | null>>()
  #size = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** A part, from memory or from `load`, which returns null if there is none. */
  async get(key: string, load: () => Promise<Uint8Array | null>): Promise<Uint8Array | null> {
    const known = this.#kept.get(key)
    if (known) {
      this.#kept.delete(key)
      this.#kept.set(key, known)
      return known
    }
    const underWay = this.#reads.get(key)
    if (underWay !== undefined) return underWay
    const read = load().finally(() => this.#reads.delete(key))
    this.#reads.set(key, read)
    const bytes = await read
    if (bytes) this.#keep(key, bytes)
    return bytes
  }

  #keep(key: string, bytes: Uint8Array): void {
    if (bytes.length + ENTRY_BYTES > this.#limit || this.#kept.has(key)) return
    this.#kept.set(key, bytes)
    this.#size += bytes.length + ENTRY_BYTES
    for (const [oldest, { length }] of this.#kept) {
      if (this.#size <= this.#limit) return
      this.#kept.delete(oldest)
      this.#size -= length + ENTRY_BYTES
    }
  }
}
