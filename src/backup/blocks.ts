/** The blocks of a backup: a folder for each network, laid out as that of the embedded IPFS node. */
import { basename } from 'node:path'
import { NextToLast } from 'blockstore-fs/sharding'
import { CID } from 'multiformats/cid'
import { eachOf } from '../lib/each-of.ts'
import { blockKey, inlineBytes, isLeafCodec, matches } from '../storage/codecs.ts'
import { Frontier } from '../storage/embedded/frontier.ts'
import { reachable } from '../storage/embedded/gc.ts'
import { exportCar, readBlock } from '../storage/embedded/read.ts'
import { walkDag } from '../storage/embedded/walk.ts'
import { distinctLinks } from '../storage/links.ts'
import type { Network, Storage } from '../storage/port.ts'
import { BackupError, type BackupStore } from './store.ts'

/** Blocks that are read side by side where nothing else says. */
const BLOCKS_AT_ONCE = 16
const REMOVED_AT_ONCE = 1000

export interface ArchiveOptions {
  /** Reads everything that is there once more, and writes again what is damaged or missing. */
  recheck?: boolean
}

/** The result of one root: blocks and bytes that were written, and bytes that were there. */
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

  /** The block's bytes, checked against its hash; null when it is missing or damaged. */
  async read(cid: CID): Promise<Uint8Array | null> {
    const inline = inlineBytes(cid)
    if (inline) return inline
    const bytes = await this.#store.read(this.#pathOf(cid))
    return bytes && (await matches(cid, bytes)) ? bytes : null
  }

  /** The block's size, null where it is to be written: it is not there, or damaged where that is looked for. */
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

  /** The multihash that a file stands for, as a CID, or null when the file is not a block. */
  #decode(path: string): CID | null {
    const file = basename(path)
    try {
      return file.endsWith(this.#sharding.extension) ? this.#sharding.decode(file) : null
    } catch {
      return null
    }
  }

  /** The empty file that says that a root is here with all of its blocks, as far as was seen when it came. */
  #markOf = (root: CID | string): string => `${this.#dir}/pins/${root}`

  /**
   * Copies what is missing of a root; nothing where it is here already. Interrupted, it goes on with the blocks that
   * are missing then.
   * @throws StorageError of `storage`; BackupError where a block is not taken.
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

  /** A root with all of its blocks, as a CAR. @throws StorageError `not_found` for a block that is missing or damaged. */
  exportCar(root: CID, signal: AbortSignal): AsyncIterable<Uint8Array> {
    return exportCar(root, (cid) => readBlock(cid, this), signal)
  }

  /** Forgets all other roots, and removes the blocks that none of these has. @returns bytes that were freed. */
  async keepOnly(
    roots: ReadonlySet<string>,
    { signal, holdsTurn }: { signal: AbortSignal; holdsTurn: () => Promise<unknown> },
  ): Promise<number> {
    const marks = this.#store.list(`${this.#dir}/pins`)
    await this.#removeAll(marks, holdsTurn, (path) => !roots.has(basename(path)))
    // A root that is gone may come again: that it is not here has to be seen before its blocks go.
    await this.#store.settle()
    const read = async (cid: CID) => {
      const bytes = await this.read(cid)
      if (bytes === null)
        throw new BackupError(
          `the block ${cid} is missing or damaged: nothing is removed, since what is below it cannot be told from the rest. ` +
            'Run `berth backup --recheck`, which writes it again where Berth has it',
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
   * Compares every block with its hash, and looks for every block of `roots`.
   * @param onBlock called for each block that was read, with its size.
   */
  async verify(
    roots: AsyncIterable<CID>,
    signal: AbortSignal,
    onBlock: (bytes: number) => void,
  ): Promise<{ damaged: string[]; incomplete: { root: CID; block: CID }[] }> {
    const good = new Set<string>()
    const damaged: string[] = []
    await eachOf(this.#store.list(`${this.#dir}/blocks`), BLOCKS_AT_ONCE, async (path) => {
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
   * A block of the root's that is not among the good ones, or null.
   * @param complete nodes below which nothing is missing, over all roots so far; grows only with a root that is complete.
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
      const name = `${cid.code}:${blockKey(cid)}`
      if (isLeafCodec(cid) || met.has(name) || complete.has(name)) continue
      met.add(name)
      frontier.push(cid)
    }
    for (const name of met) complete.add(name)
    return null
  }
}

/** The CIDs of a list, one in each line. */
export async function* cidsOf(lines: AsyncIterable<string>): AsyncGenerator<CID> {
  for await (const line of lines) if (line) yield CID.parse(line)
}
