/** The blocks of a backup: a folder for each network, laid out as that of the embedded IPFS node. */
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CID } from 'multiformats/cid'
import { blockKey, inlineBytes, isLeafCodec, matches } from '../storage/codecs.ts'
import { BlockFolder, ifThere } from '../storage/embedded/blocks.ts'
import { Frontier } from '../storage/embedded/frontier.ts'
import { collectGarbage } from '../storage/embedded/gc.ts'
import { PinFolder } from '../storage/embedded/pins.ts'
import { exportCar, readBlock } from '../storage/embedded/read.ts'
import { walkDag } from '../storage/embedded/walk.ts'
import { distinctLinks } from '../storage/links.ts'
import type { Network, Storage } from '../storage/port.ts'
import { syncFolder } from './folder.ts'

/** No time of use matters here: whoever writes or removes holds the lock of the folder. */
const NEVER_MS = Number.MAX_SAFE_INTEGER

/** Leaves, too, are read before they count as being there. */
class DistrustedBlocks extends BlockFolder {
  override async use(cid: CID): Promise<number | null> {
    return (await this.read(cid))?.length ?? null
  }
}

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
  readonly #dir: string
  readonly #blocks: BlockFolder
  readonly #roots: PinFolder
  readonly #recheck: boolean

  /** @param dir The folder of backups. */
  constructor(dir: string, network: Network, { recheck = false }: ArchiveOptions = {}) {
    this.network = network
    this.#dir = join(dir, 'ipfs', network)
    this.#blocks = new (recheck ? DistrustedBlocks : BlockFolder)(this.#dir, { touchAfterMs: NEVER_MS })
    this.#roots = new PinFolder(this.#dir, { markExpiryMs: NEVER_MS })
    this.#recheck = recheck
  }

  async open(): Promise<void> {
    for (const path of [this.#blocks.dir, this.#blocks.tempDir, this.#roots.dir, this.#trash])
      await mkdir(path, { recursive: true, mode: 0o700 })
  }

  get #trash(): string {
    return join(this.#dir, 'trash')
  }

  /** Whether a root is here with all of its blocks, as far as was seen when it came. */
  has(root: CID): Promise<boolean> {
    return this.#roots.has(root)
  }

  /**
   * Copies what is missing of a root; nothing where it is here already. Interrupted, it goes on with the blocks that
   * are missing then.
   * @throws StorageError of `storage`, or where the disk does not take a block.
   */
  async copy(storage: Storage, root: CID, signal: AbortSignal): Promise<Copied> {
    const copied: Copied = { writtenBlocks: 0, writtenBytes: 0, keptBytes: 0 }
    if (!this.#recheck && (await this.has(root))) return copied
    const { bytes } = await walkDag(root, {
      blocks: this.#blocks,
      signal,
      retrieve: async (cid, aborted) => {
        const block = await storage.block(cid, { signal: aborted })
        copied.writtenBlocks++
        copied.writtenBytes += block.length
        return block
      },
    })
    copied.keptBytes = bytes - copied.writtenBytes
    await this.#roots.add(root)
    return copied
  }

  /** Waits until the names of all blocks are on the disk. */
  async settle(): Promise<void> {
    const shards = await readdir(this.#blocks.dir)
    for (const shard of shards) await syncFolder(join(this.#blocks.dir, shard))
    await syncFolder(this.#blocks.dir)
    await syncFolder(this.#roots.dir)
  }

  /** A root with all of its blocks, as a CAR. @throws StorageError `not_found` for a block that is missing or damaged. */
  exportCar(root: CID, signal: AbortSignal): AsyncIterable<Uint8Array> {
    return exportCar(root, (cid) => readBlock(cid, this.#blocks), signal)
  }

  /** Forgets all other roots, and removes the blocks that none of these has. @returns bytes that were freed. */
  async keepOnly(roots: ReadonlySet<string>, signal: AbortSignal): Promise<number> {
    for await (const root of this.#roots.list()) if (!roots.has(`${root}`)) await this.#roots.remove(root)
    const { removedBytes } = await collectGarbage({
      blocks: this.#blocks,
      pins: this.#roots,
      trashDir: this.#trash,
      graceMs: 0,
      dryRun: false,
      signal,
    })
    return removedBytes ?? 0
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
    for await (const { path, cid, bytes } of this.#files()) {
      signal.throwIfAborted()
      if (cid && (await matches(cid, bytes))) good.add(blockKey(cid))
      else damaged.push(path)
      onBlock(bytes.length)
    }
    const incomplete: { root: CID; block: CID }[] = []
    const complete = new Set<string>()
    const seen = new Set<string>()
    for await (const root of roots) {
      if (seen.has(`${root}`)) continue
      seen.add(`${root}`)
      const block = await this.#firstMissing(root, good, complete, signal)
      if (block) incomplete.push({ root, block })
    }
    return { damaged, incomplete }
  }

  /** Every file of the blocks with its content; `cid` is null where its name is no block's. */
  async *#files(): AsyncGenerator<{ path: string; cid: CID | null; bytes: Uint8Array }> {
    for (const shard of ((await ifThere(() => readdir(this.#blocks.dir))) ?? []).sort())
      for (const file of (await readdir(join(this.#blocks.dir, shard))).sort()) {
        const path = join(this.#blocks.dir, shard, file)
        yield { path, cid: this.#blocks.decode(file), bytes: await readFile(path) }
      }
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
    const frontier = new Frontier(async (cid) => {
      const bytes = inlineBytes(cid) ?? (await readBlock(cid, this.#blocks))
      return (await distinctLinks(cid, bytes)).links
    })
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
