/** The blocks of a backup: a folder for each network, in the layout of the embedded IPFS node. */
import { basename } from 'node:path'
import { NextToLast } from 'blockstore-fs/sharding'
import { CID } from 'multiformats/cid'
import { forEachConcurrently } from '../lib/each-of.ts'
import { blockKey, inlineBytes, isLeafCodec, matches } from '../storage/dag/codecs.ts'
import { nameOf } from '../storage/dag/contents.ts'
import { Frontier } from '../storage/dag/frontier.ts'
import { distinctLinks } from '../storage/dag/links.ts'
import { exportCar, readBlock } from '../storage/dag/read.ts'
import { reachable, walkDag } from '../storage/dag/walk.ts'
import type { Network, Storage } from '../storage/port.ts'
import { BackupError, type BackupStore } from './store.ts'

/** Default number of blocks that are read at a time. */
const BLOCKS_AT_ONCE = 16
const REMOVED_AT_ONCE = 1000

export interface ArchiveOptions {
  /** Re-reads everything in the backup, and rewrites damaged and missing blocks. */
  recheck?: boolean
}

/** The result of one root: written blocks and bytes, and bytes that already existed. */
export interface Copied {
  writtenBlocks: number
  writtenBytes: number
  keptBytes: number
}

export class BlockArchive {
  readonly network: Network
  readonly #store: BackupStore
  readonly #dir: string
  readonly #recheck: boolean
  readonly #sharding = new NextToLast()

  constructor(store: BackupStore, network: Network, { recheck = false }: ArchiveOptions = {}) {
    this.network = network
    this.#store = store
    this.#dir = `ipfs/${network}`
    this.#recheck = recheck
  }

  /** The block's bytes, verified against its hash; null if it is missing or damaged. */
  async read(cid: CID): Promise<Uint8Array | null> {
    const inline = inlineBytes(cid)
    if (inline) return inline
    const bytes = await this.#store.read(this.#pathOf(cid))
    return bytes && (await matches(cid, bytes)) ? bytes : null
  }

  /** The block's size; null if it must be written because it is missing, or damaged in a recheck. */
  async use(cid: CID): Promise<number | null> {
    if (this.#recheck) return (await this.read(cid))?.length ?? null
    return inlineBytes(cid)?.length ?? this.#store.size(this.#pathOf(cid))
  }

  async write(cid: CID, bytes: Uint8Array): Promise<void> {
    if (!inlineBytes(cid)) await this.#store.write(this.#pathOf(cid), bytes)
  }

  #pathOf(cid: CID): string {
    const { dir, file } = this.#sharding.encode(cid)
    return `${this.#dir}/blocks/${dir}/${file}`
  }

  /** The multihash in a file's name, as a CID; null if the file is not a block. */
  #decode(path: string): CID | null {
    const file = basename(path)
    try {
      return file.endsWith(this.#sharding.extension) ? this.#sharding.decode(file) : null
    } catch {
      return null
    }
  }

  /**
   * The path of the empty file that marks a root as present with all of its blocks, as far as was known when it was
   * copied.
   */
  #markOf = (root: CID | string): string => `${this.#dir}/pins/${root}`

  /**
   * Copies the missing blocks of a root; does nothing if the root is already marked. A run after an interruption copies
   * the blocks that are still missing.
   * @throws StorageError from `storage`; BackupError if a block cannot be stored.
   */
  async copy(storage: Storage, root: CID, signal: AbortSignal): Promise<Copied> {
    const copied: Copied = { writtenBlocks: 0, writtenBytes: 0, keptBytes: 0 }
    if (!this.#recheck && (await this.#store.size(this.#markOf(root))) !== null) return copied
    const { bytes } = await walkDag(root, {
      blocks: this,
      signal,
      retrieve: async (cid, aborted) => {
        const block = await storage.block(cid, { signal: aborted })
        copied.writtenBlocks++
        copied.writtenBytes += block.length
        return block
      },
    })
    copied.keptBytes = bytes - copied.writtenBytes
    await this.#store.write(this.#markOf(root), new Uint8Array())
    return copied
  }

  /** A root with all of its blocks, as a CAR. @throws StorageError `not_found` if a block is missing or damaged. */
  exportCar(root: CID, signal: AbortSignal): AsyncIterable<Uint8Array> {
    return exportCar(root, (cid) => readBlock(cid, this), signal)
  }

  /**
   * Forgets all other roots, and removes the blocks that none of these roots needs. @returns the number of bytes freed.
   */
  async keepOnly(
    roots: ReadonlySet<string>,
    { signal, holdsTurn }: { signal: AbortSignal; holdsTurn: () => Promise<unknown> },
  ): Promise<number> {
    const marks = this.#store.list(`${this.#dir}/pins`)
    await this.#removeAll(marks, holdsTurn, (path) => !roots.has(basename(path)))
    // A removed root may be backed up again, so its mark must be gone for good before its blocks are removed.
    await this.#store.settle()
    const read = async (cid: CID) => {
      const bytes = await this.read(cid)
      if (bytes === null)
        throw new BackupError(
          `the block ${cid} is missing or damaged: nothing is removed, because the blocks below it are unknown. ` +
            'Run `berth backup --recheck`, which rewrites it if Berth still has it',
        )
      return bytes
    }
    const kept = await reachable(
      [...roots].map((root) => CID.parse(root)),
      { read },
      signal,
    )
    let freed = 0
    await this.#removeAll(this.#store.list(`${this.#dir}/blocks`), holdsTurn, async (path) => {
      signal.throwIfAborted()
      const cid = this.#decode(path)
      if (!cid || kept.has(blockKey(cid))) return false
      freed += (await this.#store.size(path)) ?? 0
      return true
    })
    return freed
  }

  async #removeAll(
    paths: AsyncIterable<string>,
    holdsTurn: () => Promise<unknown>,
    isOver: (path: string) => boolean | Promise<boolean>,
  ): Promise<void> {
    let some: string[] = []
    const remove = async () => {
      if (some.length === 0) return
      await holdsTurn()
      await this.#store.remove(some)
      some = []
    }
    for await (const path of paths) {
      if (await isOver(path)) some.push(path)
      if (some.length >= REMOVED_AT_ONCE) await remove()
    }
    await remove()
  }

  /**
   * Verifies every block against its hash, and checks that every block of `roots` exists.
   * @param onBlock called for each block that was read, with its size.
   */
  async verify(
    roots: AsyncIterable<CID>,
    signal: AbortSignal,
    onBlock: (bytes: number) => void,
  ): Promise<{ damaged: string[]; incomplete: { root: CID; block: CID }[] }> {
    const good = new Set<string>()
    const damaged: string[] = []
    await forEachConcurrently(this.#store.list(`${this.#dir}/blocks`), BLOCKS_AT_ONCE, async (path) => {
      signal.throwIfAborted()
      const cid = this.#decode(path)
      const bytes = (await this.#store.read(path)) ?? new Uint8Array()
      if (cid && (await matches(cid, bytes))) good.add(blockKey(cid))
      else damaged.push(path)
      onBlock(bytes.length)
    })
    const incomplete: { root: CID; block: CID }[] = []
    const complete = new Set<string>()
    const seen = new Set<string>()
    for await (const root of roots) {
      if (seen.has(`${root}`)) continue
      seen.add(`${root}`)
      const block = await this.#firstMissing(root, good, complete, signal)
      if (block) incomplete.push({ root, block })
    }
    return { damaged: damaged.sort(), incomplete }
  }

  /**
   * Returns a block of the root that is not among the good ones, or null.
   * @param complete nodes below which nothing is missing, over all roots so far; grows only with complete roots.
   */
  async #firstMissing(
    root: CID,
    good: ReadonlySet<string>,
    complete: Set<string>,
    signal: AbortSignal,
  ): Promise<CID | null> {
    const met = new Set<string>()
    const frontier = new Frontier(async (cid) => (await distinctLinks(cid, await readBlock(cid, this))).links)
    for (let cid: CID | null = root; cid; cid = await frontier.next()) {
      signal.throwIfAborted()
      if (!inlineBytes(cid) && !good.has(blockKey(cid))) return cid
      const name = nameOf(cid)
      if (isLeafCodec(cid) || met.has(name) || complete.has(name)) continue
      met.add(name)
      frontier.push(cid)
    }
    for (const name of met) complete.add(name)
    return null
  }
}

/** Parses a list of CIDs, one per line. */
export async function* cidsOf(lines: AsyncIterable<string>): AsyncGenerator<CID> {
  for await (const line of lines) if (line) yield CID.parse(line)
}
