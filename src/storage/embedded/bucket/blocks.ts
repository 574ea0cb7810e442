import type { CID } from 'multiformats/cid'
import type { Pool } from '../../../db/pool.ts'
import { findBlocks, putBlocks, sizeBlocks, touchBlocks } from '../../../db/statements/node-blocks.ts'
import { inlineBytes, isLeafCodec, matches } from '../../dag/codecs.ts'
import { LARGE_BLOCK_BYTES, turn } from '../../dag/limits.ts'
import { distinctLinks } from '../../dag/links.ts'
import type { Network } from '../../port.ts'
import type { NodeBlocks } from '../place.ts'
import { Batches, nameOf } from './batches.ts'
import { type PartCache, partName } from './cache.ts'
import type { BucketObjects } from './objects.ts'
import { PACK_BYTES, storePack } from './packs.ts'
import { type NewBlock, WriteQueue } from './write-queue.ts'

/** Leaves of fewer bytes go into their rows, and into a pack later: a pack for each would be many requests. */
const FEW_BYTES = 256 * 1024
/** The largest block that stays in its row because it has links. */
const NODE_BYTES = 256 * 1024
/** Smaller blocks are read in parts of this size, because their neighbours were written, and are read, with them. */
const PART_BYTES = 256 * 1024
/** How often a block is looked up while collections move it. */
const TRIES = 4

type Place = {
  size: number
  pack_id: string | null
  at: number | null
  bytes: Buffer | null
  linkless: number | null
}

export interface BucketBlocksOptions {
  network: Network
  pool: Pool
  objects: BucketObjects
  /** A block met again after this long is marked as used, so that GC spares it. */
  touchAfterMs: number
  cache: PartCache
  /** Called when about a pack of leaves waits in rows. */
  onWaiting: () => void
}

/**
 * Blocks in packs, with a row for each in PostgreSQL, which any number of processes share. Blocks with links stay in
 * their rows: they are small, and each collection needs all of them.
 */
export class BucketBlocks implements NodeBlocks {
  readonly gathers = true
  readonly window = { blocks: 1024, bytes: 2 * PACK_BYTES }
  readonly #options: BucketBlocksOptions
  readonly #queue: WriteQueue
  readonly #places: Batches<Uint8Array, Place>
  readonly #sizes: Batches<Uint8Array, number>
  readonly #uses: Batches<Uint8Array, number>
  #waitingBytes = 0

  constructor(options: BucketBlocksOptions) {
    this.#options = options
    this.#queue = new WriteQueue((blocks) => this.#putMissing(blocks), PACK_BYTES)
    const { pool, network } = options
    this.#places = new Batches(
      async (keys) => {
        const { rows } = await findBlocks.run(pool, network, keys)
        return inOrder(keys, new Map(rows.map(({ hash, ...place }) => [nameOf(hash), place])))
      },
      { most: 64 },
    )
    this.#sizes = new Batches(async (keys) => {
      const { rows } = await sizeBlocks.run(pool, network, keys, 0)
      return inOrder(keys, new Map(rows.map(({ hash, size }) => [nameOf(hash), size])))
    })
    this.#uses = new Batches(async (keys) => inOrder(keys, await this.#touch(keys)))
  }

  async read(cid: CID): Promise<Uint8Array | null> {
    const inline = inlineBytes(cid)
    if (inline) return inline
    const queued = this.#queue.find(cid.multihash.bytes)
    // A copy: its writer may reuse the memory as soon as it is stored.
    if (queued) return Uint8Array.from(queued.bytes)
    return this.#readStored(cid, await this.#places.get(cid.multihash.bytes))
  }

  /** The bytes of a block for its links; null if it has none, or is missing or damaged. */
  async readNode(cid: CID): Promise<Uint8Array | null> {
    const inline = inlineBytes(cid)
    if (inline) return inline
    const place = await this.#places.get(cid.multihash.bytes)
    return place?.linkless === cid.code ? null : this.#readStored(cid, place)
  }

  async size(cid: CID): Promise<number | null> {
    const inline = inlineBytes(cid) ?? this.#queue.find(cid.multihash.bytes)?.bytes
    return inline?.length ?? (await this.#sizes.get(cid.multihash.bytes)) ?? null
  }

  /** A queued block does not count: it may never be stored. */
  async use(cid: CID): Promise<number | null> {
    return inlineBytes(cid)?.length ?? (await this.#uses.get(cid.multihash.bytes)) ?? null
  }

  write(cid: CID, bytes: Uint8Array): Promise<void> {
    return this.#put(cid, bytes, true)
  }

  store(cid: CID, bytes: Uint8Array): Promise<void> {
    return this.#put(cid, bytes, false)
  }

  flush(): void {
    this.#queue.flush()
  }

  async admit(): Promise<void> {}

  async #put(cid: CID, bytes: Uint8Array, replace: boolean): Promise<void> {
    if (inlineBytes(cid)) return
    const block = { hash: cid.multihash.bytes, bytes, replace }
    if (isLeafCodec(cid)) return this.#queue.putLeaf({ ...block, isNode: false, linkless: null })
    const hasLinks = await distinctLinks(cid, bytes).then(
      ({ links }) => links.length > 0,
      () => true, // unknown: collections look again
    )
    const isNode = hasLinks && bytes.length <= NODE_BYTES
    const known = { ...block, isNode, linkless: hasLinks ? null : cid.code }
    return isNode ? this.#queue.putNode(known) : this.#queue.putLeaf(known)
  }

  /** Stores those blocks that are not here. */
  async #putMissing(blocks: readonly NewBlock[]): Promise<void> {
    const known = await this.#touch(blocks.flatMap(({ hash, replace }) => (replace ? [] : [hash])))
    const missing = blocks.filter(({ hash, bytes }) => known.get(nameOf(hash)) !== bytes.length)
    const nodes = missing.filter(({ isNode }) => isNode)
    const leaves = missing.filter(({ isNode }) => !isNode)
    const bytes = leaves.reduce((sum, leaf) => sum + leaf.bytes.length, 0)
    const { pool, network, onWaiting } = this.#options
    if (bytes < FEW_BYTES) {
      if (missing.length > 0) await putBlocks.run(pool, network, ...rowsOf(missing, null))
      this.#waitingBytes += bytes
      if (this.#waitingBytes < PACK_BYTES) return
      this.#waitingBytes = 0
      onWaiting()
      return
    }
    await storePack(this.#options, leaves, async (tx, id, at) => {
      await putBlocks.run(tx, network, ...rowsOf(leaves, { id, at }))
      if (nodes.length > 0) await putBlocks.run(tx, network, ...rowsOf(nodes, null))
    })
  }

  /** The sizes of blocks, which count as used from now on. */
  async #touch(keys: Uint8Array[]): Promise<Map<string, number>> {
    const sizes = new Map<string, number>()
    if (keys.length === 0) return sizes
    const { pool, network, touchAfterMs } = this.#options
    const { rows } = await sizeBlocks.run(pool, network, keys, touchAfterMs)
    for (const { hash, size } of rows) sizes.set(nameOf(hash), size)
    const old = rows.filter((row) => row.old).map(({ hash }) => hash)
    if (old.length === 0) return sizes
    const touched = new Set((await touchBlocks.run(pool, network, old)).rows.map(({ hash }) => nameOf(hash)))
    for (const hash of old) if (!touched.has(nameOf(hash))) sizes.delete(nameOf(hash))
    return sizes
  }

  async #readStored(cid: CID, known: Place | undefined): Promise<Uint8Array | null> {
    let place = known
    let isFresh = false
    for (let tries = 0; place && tries < TRIES; tries++) {
      const bytes = await this.#load(place, isFresh)
      if (bytes && bytes.length > LARGE_BLOCK_BYTES) await turn()
      if (bytes && (await matches(cid, bytes))) return bytes
      // A collection may have moved it since.
      const { pack_id } = place
      place = await this.#places.get(cid.multihash.bytes)
      if (place?.pack_id !== pack_id) continue
      if (isFresh || pack_id === null) return null
      isFresh = true // a cached part may be damaged
    }
    return null
  }

  /**
   * The bytes at a place; null if the pack is gone or too short.
   * @param isFresh whether to read them from S3, and to replace what is cached.
   */
  async #load(place: Place, isFresh: boolean): Promise<Uint8Array | null> {
    const { size, pack_id: id, at, bytes } = place
    if (bytes || size === 0) return bytes ?? new Uint8Array()
    if (id === null || at === null) return null
    const { objects, cache } = this.#options
    const read = async (from: number, length: number) => {
      const part = partName(id, from, length)
      if (isFresh) await cache.remove(part)
      return cache.get(part, () => objects.readPack(id, from, length))
    }
    if (size >= PART_BYTES) {
      const whole = await read(at, size)
      return whole?.length === size ? whole : null
    }
    const first = Math.floor(at / PART_BYTES)
    const last = Math.floor((at + size - 1) / PART_BYTES)
    const parts = await Promise.all(
      Array.from({ length: last - first + 1 }, (_, i) => read((first + i) * PART_BYTES, PART_BYTES)),
    )
    if (parts.includes(null)) return null
    const [only] = parts
    const joined = parts.length === 1 && only ? only : Buffer.concat(parts as Uint8Array[])
    const from = at - first * PART_BYTES
    return joined.length < from + size ? null : joined.subarray(from, from + size)
  }
}

const inOrder = <V>(keys: Uint8Array[], values: ReadonlyMap<string, V>): (V | undefined)[] =>
  keys.map((key) => values.get(nameOf(key)))

/** The parameters of `putBlocks` for blocks in a pack, or in their rows. */
function rowsOf(
  blocks: readonly NewBlock[],
  pack: { id: string; at: number[] } | null,
): [
  hashes: Uint8Array[],
  sizes: number[],
  id: string | null,
  at: (number | null)[],
  bytes: (Uint8Array | null)[],
  isNode: boolean[],
  linkless: (number | null)[],
] {
  return [
    blocks.map(({ hash }) => hash),
    blocks.map(({ bytes }) => bytes.length),
    pack?.id ?? null,
    blocks.map((_, i) => pack?.at[i] ?? null),
    blocks.map(({ bytes }) => (pack ? null : bytes)),
    blocks.map(({ isNode }) => isNode),
    blocks.map(({ linkless }) => linkless),
  ]
}
