/** Creates the leaves of a file under `unixfs-v1-2025` while its bytes arrive. */
import { webcrypto } from 'node:crypto'
import type { BufferImporter } from 'ipfs-unixfs-importer'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { create as createDigest } from 'multiformats/hashes/digest'
import { sha256 } from 'multiformats/hashes/sha2'

const LEAF_BYTES = 1_048_576
/** From this size, computing a hash in another thread pays off. */
const WORTH_A_THREAD = 131_072

/**
 * Creates the leaves of one import, for the importer: its own chunker goes through a list for each leaf, and its own
 * hash occupies the thread that reads the upload. Here each byte is copied once, a leaf is hashed by another thread
 * while the next one arrives, and the memory of written leaves is reused.
 */
export class Leaves {
  readonly #free: Uint8Array[] = []
  readonly #taken = new WeakSet<Uint8Array>()

  /** Cuts incoming bytes into leaves; an empty file has one empty leaf. */
  readonly chunker = async function* (
    this: Leaves,
    source: AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array> {
    let leaf: Uint8Array | undefined
    let filled = 0
    let isEmpty = true
    for await (const chunk of source) {
      for (let done = 0; done < chunk.length; ) {
        leaf ??= this.#take()
        const part = chunk.subarray(done, done + LEAF_BYTES - filled)
        leaf.set(part, filled)
        done += part.length
        filled += part.length
        if (filled < LEAF_BYTES) continue
        yield leaf
        isEmpty = false
        leaf = undefined
        filled = 0
      }
    }
    if (!leaf) {
      if (isEmpty) yield new Uint8Array()
      return
    }
    // A copy, because small files would each keep the memory of a whole leaf until they are written.
    yield leaf.slice(0, filled)
    this.#free.push(leaf)
  }.bind(this)

  /** Names leaves by their hash, and stores them. */
  readonly bufferImporter: BufferImporter = async function* (file, store) {
    for await (const bytes of file.content) {
      const naming = nameLeaf(bytes)
      naming.catch(() => {}) // the importer awaits it later
      yield async () => {
        const cid = await naming
        await store.put(cid, bytes)
        return { cid, size: BigInt(bytes.length), block: bytes }
      }
    }
  }

  /** Call it once a block is written: if it is a whole leaf of this import, its memory is reused for the next leaf. */
  giveBack(bytes: Uint8Array): void {
    if (this.#taken.delete(bytes)) this.#free.push(bytes)
  }

  #take(): Uint8Array {
    const leaf = this.#free.pop() ?? new Uint8Array(Buffer.allocUnsafeSlow(LEAF_BYTES).buffer)
    this.#taken.add(leaf)
    return leaf
  }
}

async function nameLeaf(bytes: Uint8Array): Promise<CID> {
  if (bytes.length < WORTH_A_THREAD) return CID.createV1(raw.code, await sha256.digest(bytes))
  const digest = await webcrypto.subtle.digest('SHA-256', bytes)
  return CID.createV1(raw.code, createDigest(sha256.code, new Uint8Array(digest)))
}
