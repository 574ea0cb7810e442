import type { CID } from 'multiformats/cid'
import { inlineBytes } from './dag/codecs.ts'
import { type FilePart, partsOfRange } from './dag/unixfs.ts'
import type { FileRange, Storage } from './port.ts'

/** The largest block that is cached: a small file, the root of a large file, a directory. */
const BLOCK_BYTES = 128 * 1024
/** Maximum bytes that are cached for one storage. */
const CACHE_BYTES = 16 * 1024 * 1024
/** Maximum parts of a file that are requested one by one: a range of a megabyte is in two blocks of the profile. */
const PARTS = 3
/** Approximate memory of a block in addition to its bytes. */
const ENTRY_BYTES = 512

/**
 * A storage that caches its most recently requested small blocks in memory. The bytes of a CID never change, so nothing
 * invalidates them; the caller has to check each time whether it may read them.
 */
export function cachingBlocks(storage: Storage, cacheBytes = CACHE_BYTES): Storage {
  /** Blocks by multihash, in the order of their last use. */
  const kept = new Map<string, Uint8Array>()
  let size = 0
  const keep = (key: string, bytes: Uint8Array): void => {
    if (bytes.length > BLOCK_BYTES || kept.has(key)) return
    // A copy: a small view would keep the whole buffer in memory.
    kept.set(key, Uint8Array.from(bytes))
    size += bytes.length + ENTRY_BYTES
    for (const [oldest, { length }] of kept) {
      if (size <= cacheBytes) return
      kept.delete(oldest)
      size -= length + ENTRY_BYTES
    }
  }
  /**
   * For a range in a file, Kubo reads ten blocks from its beginning before it sends the first; a single block it sends
   * at once.
   */
  const partsOf = (cid: CID, { path, offset = 0, length }: FileRange): FilePart[] | undefined => {
    if (storage.driver === 'embedded' || path || length === undefined) return undefined
    const root = kept.get(keyOf(cid))
    try {
      return root && partsOfRange({ cid, offset, length }, root, PARTS)
    } catch {
      return undefined // Kubo reports what is wrong with the root
    }
  }
  return {
    ...storage,
    async *cat(cid, range) {
      const parts = partsOf(cid, range)
      if (!parts) return yield* storage.cat(cid, range)
      for (const part of parts) {
        yield* storage.cat(part.cid, { offset: part.offset, length: part.length, signal: range.signal })
      }
    },
    async block(cid, options) {
      if (inlineBytes(cid)) return storage.block(cid, options)
      const key = keyOf(cid)
      const known = kept.get(key)
      if (!known) {
        const bytes = await storage.block(cid, options)
        keep(key, bytes)
        return bytes
      }
      kept.delete(key)
      kept.set(key, known)
      return known
    },
  }
}

const keyOf = ({ multihash: { bytes } }: CID): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
