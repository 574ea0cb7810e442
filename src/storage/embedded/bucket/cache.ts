import type { FolderCache } from '../../../lib/folder-cache.ts'

/** The name of a part in the cache. */
export const partName = (pack: string, from: number, length: number): string => `${pack}.${from}.${length}`

const NAME = /^([\da-f-]{36})\.\d+\.\d+$/

/** Approximate memory of an entry in addition to its bytes. */
const ENTRY_BYTES = 512

/**
 * Parts of packs in memory, up to a number of bytes, and behind it on disk; those that were read longest ago go first.
 * Packs never change. Callers look up the pack of a block each time, so what was removed or belongs to the other network
 * is never found here, and verify the block.
 */
export class PartCache {
  readonly #limit: number
  readonly #files: FolderCache | undefined
  readonly #kept = new Map<string, Uint8Array>()
  /** Reads under way: callers that miss the same part share one. */
  readonly #reads = new Map<string, Promise<Uint8Array | null>>()
  #size = 0

  /** @param limit bytes in memory. */
  constructor(limit: number, files?: FolderCache) {
    this.#limit = limit
    this.#files = files
  }

  /** A part, from memory, from the disk or from `load`, which returns null if there is none. */
  async get(key: string, load: () => Promise<Uint8Array | null>): Promise<Uint8Array | null> {
    const known = this.#kept.get(key)
    if (known) {
      this.#kept.delete(key)
      this.#kept.set(key, known)
      return known
    }
    const underWay = this.#reads.get(key)
    if (underWay !== undefined) return underWay
    const read = this.#read(key, load).finally(() => this.#reads.delete(key))
    this.#reads.set(key, read)
    const bytes = await read
    if (bytes) this.#keep(key, bytes)
    return bytes
  }

  /** Removes a part, because it is damaged. */
  async remove(key: string): Promise<void> {
    await this.#reads.get(key)?.catch(() => {})
    const known = this.#kept.get(key)
    if (known && this.#kept.delete(key)) this.#size -= known.length + ENTRY_BYTES
    await this.#files?.remove(key)
  }

  /**
   * Removes from the disk what nobody needs.
   * @param findPacks which of these packs exist.
   */
  async tidy(findPacks: (ids: string[]) => Promise<Set<string>>): Promise<void> {
    await this.#files?.tidy(async (parts) => {
      const packs = parts.map((part) => NAME.exec(part)?.[1])
      const found = await findPacks([...new Set(packs.filter((id) => id !== undefined))])
      return parts.filter((_, i) => !found.has(packs[i] ?? ''))
    })
  }

  async #read(key: string, load: () => Promise<Uint8Array | null>): Promise<Uint8Array | null> {
    const found = await this.#files?.read(key)
    if (found) return found
    const bytes = await load()
    if (bytes) void this.#files?.write(key, bytes)
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
