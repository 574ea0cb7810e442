import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { link, mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { NextToLast } from 'blockstore-fs/sharding'
import type { CID } from 'multiformats/cid'
import { describeShortage } from '../../lib/disk.ts'
import type { DiskReserve } from '../../lib/disk-reserve.ts'
import { hasCode } from '../../lib/files.ts'
import { inlineBytes, matches } from '../dag/codecs.ts'
import { LARGE_BLOCK_BYTES, turn } from '../dag/limits.ts'
import { StorageError } from '../port.ts'
import type { NodeBlocks } from './place.ts'

/**
 * Blocks as files, in the layout of `blockstore-fs` (`blocks/<shard>/<multihash>.data`).
 *
 * The file access is our own because several processes share the folder. In `blockstore-fs`, they all use the same
 * temporary file name for a block, so one can publish what another has half written. It also reports every read failure
 * as a missing block.
 */
export class BlockFolder implements NodeBlocks {
  readonly gathers = false
  readonly window = { blocks: 16, bytes: Number.POSITIVE_INFINITY }
  readonly dir: string
  readonly tempDir: string
  /** Blocks that a GC has moved aside, as `<random>.<file name>`, until it removes them or puts them back. */
  readonly trashDir: string
  readonly #touchAfterMs: number
  readonly #reserve: DiskReserve | undefined
  readonly #sharding = new NextToLast()
  readonly #shards = new Set<string>()

  /**
   * @param options.touchAfterMs A block met again after this long is marked as used, so that GC spares it.
   * @param options.reserve the disk's reserve: while the disk is down to it, no block is written.
   */
  constructor(dir: string, options: { touchAfterMs: number; reserve?: DiskReserve | undefined }) {
    this.dir = join(dir, 'blocks')
    this.tempDir = join(dir, 'tmp')
    this.trashDir = join(dir, 'trash')
    this.#touchAfterMs = options.touchAfterMs
    this.#reserve = options.reserve
  }

  /** The path of a block's file, whether it exists or not. */
  path(cid: CID): string {
    const { dir, file } = this.#sharding.encode(cid)
    return join(this.dir, dir, file)
  }

  /** The multihash in the name of a block's file, as a CID, or null if the file is not a block. */
  decode(file: string): CID | null {
    try {
      return file.endsWith(this.#sharding.extension) ? this.#sharding.decode(file) : null
    } catch {
      return null
    }
  }

  /** The block's bytes, verified against its hash; null if it is missing or damaged. */
  async read(cid: CID): Promise<Uint8Array | null> {
    const inline = inlineBytes(cid)
    if (inline) return inline
    const bytes = await this.#find(cid, readFile)
    if (bytes && bytes.length > LARGE_BLOCK_BYTES) await turn()
    return bytes && (await matches(cid, bytes)) ? bytes : null
  }

  /** The block's size in bytes, or null if it is missing. */
  async size(cid: CID): Promise<number | null> {
    const inline = inlineBytes(cid)
    return inline ? inline.length : this.#find(cid, async (path) => (await stat(path)).size)
  }

  /**
   * Like `size`, but a block that has not been used for a while counts as used from now on: a GC in any process then
   * leaves it alone.
   * @param options.findAside False for a caller that writes missing blocks: writing costs less than searching the trash.
   */
  async use(cid: CID, { findAside = true } = {}): Promise<number | null> {
    const inline = inlineBytes(cid)
    if (inline) return inline.length
    const call = async (path: string): Promise<number> => {
      const { size, mtimeMs } = await stat(path)
      const now = new Date()
      if (now.getTime() - mtimeMs > this.#touchAfterMs) await utimes(path, now, now)
      return size
    }
    return findAside ? this.#find(cid, call) : nullIfMissing(() => call(this.path(cid)))
  }

  /**
   * Restores a block that a GC moved to the trash, unless the GC has removed it by now. The block counts as used from
   * now on. A newer copy in its place stays: a copy with an older time would let a GC remove it.
   * @param name its name in `trashDir`.
   */
  async putBack(name: string): Promise<void> {
    const cid = this.decode(name.slice(name.indexOf('.') + 1))
    if (!cid) return
    const aside = join(this.trashDir, name)
    const path = this.path(cid)
    if (!(await touch(aside))) return
    try {
      await link(aside, path)
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return
      if (hasCode(error, 'EEXIST')) {
        if (!(await touch(path))) return this.putBack(name) // another GC has moved that copy aside
      } else await nullIfMissing(() => rename(aside, path)) // a file system without hard links
    }
    await onDisk(() => rm(aside, { force: true }))
  }

  /**
   * Runs a call on a block's file; null if the block is missing. Restores the file first if a GC has moved it to the
   * trash. Otherwise a pinned block could be missing for as long as that GC is suspended.
   */
  async #find<T>(cid: CID, call: (path: string) => Promise<T>): Promise<T | null> {
    const path = this.path(cid)
    const found = await nullIfMissing(() => call(path))
    if (found !== null) return found
    for (const name of (await nullIfMissing(() => readdir(this.trashDir))) ?? []) {
      if (name.endsWith(`.${basename(path)}`)) await this.putBack(name)
    }
    // The GC may have restored it between the call and the search.
    return nullIfMissing(() => call(path))
  }

  /** Searches no trash for the block: writing costs less. One of the wrong size was truncated by a failing disk. */
  async store(cid: CID, bytes: Uint8Array): Promise<void> {
    const size = await this.use(cid, { findAside: false })
    if (size !== bytes.length) await this.write(cid, bytes)
  }

  /** Does nothing: no block waits for others. */
  flush(): void {}

  /** Call it before the effort of fetching blocks. @throws StorageError `no_space`. */
  async admit(): Promise<void> {
    const short = await this.#reserve?.findShort()
    if (short) throw new StorageError('no_space', describeShortage(short))
  }

  /**
   * Stores a block: completely or not at all, and on disk when this returns. Its hash is not verified.
   * @throws StorageError `no_space` while the disk is down to its reserve or full, `unavailable` if it fails.
   */
  async write(cid: CID, bytes: Uint8Array): Promise<void> {
    if (inlineBytes(cid)) return
    const short = await this.#reserve?.take(bytes.length)
    if (short) throw new StorageError('no_space', describeShortage(short))
    const { dir, file } = this.#sharding.encode(cid)
    const shard = join(this.dir, dir)
    const temp = join(this.tempDir, randomUUID())
    await onDisk(async () => {
      try {
        const handle = await open(temp, 'wx')
        try {
          await handle.writeFile(bytes)
          await handle.datasync()
        } finally {
          await handle.close()
        }
        if (!this.#shards.has(shard)) {
          await mkdir(shard, { recursive: true })
          this.#shards.add(shard)
        }
        await rename(temp, join(shard, file))
      } catch (error) {
        await rm(temp, { force: true }).catch(() => {})
        throw error
      } finally {
        this.#reserve?.written(bytes.length)
      }
    })
  }
}

/** Sets the time of a file to now; false when it is not there. */
async function touch(path: string): Promise<boolean> {
  const now = new Date()
  const done = await nullIfMissing(() => utimes(path, now, now).then(() => true))
  return done ?? false
}

const openFile = promisify(fs.open)
const readPart = promisify(fs.read)

/**
 * Reads a file. Calls that do not wait for the disk once the file is open are made on this thread: another thread costs
 * more than all of a small file, and without it a block takes half the time.
 */
async function readFile(path: string): Promise<Uint8Array> {
  const file = await openFile(path, 'r')
  try {
    const bytes = Buffer.allocUnsafeSlow(fs.fstatSync(file).size)
    for (let at = 0; at < bytes.length; ) {
      const { bytesRead } = await readPart(file, bytes, at, bytes.length - at, at)
      if (bytesRead === 0) return bytes.subarray(0, at) // it was truncated in the meantime
      at += bytesRead
    }
    return bytes
  } finally {
    fs.closeSync(file)
  }
}

/** Runs a file operation; every failure becomes `unavailable`. */
export async function onDisk<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw error instanceof StorageError ? error : diskError(error)
  }
}

/**
 * Runs a file operation: null if the file does not exist; any other failure is `unavailable`. A name that is too long,
 * as for a long CID, counts as not existing.
 */
export async function nullIfMissing<T>(call: () => Promise<T>): Promise<T | null> {
  try {
    return await call()
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENAMETOOLONG')) return null
    throw error instanceof StorageError ? error : diskError(error)
  }
}

function diskError(error: unknown): StorageError {
  if (hasCode(error, 'ENOSPC', 'EDQUOT'))
    return new StorageError('no_space', describeShortage('blocks'), { cause: error })
  const { message } = error as Error
  return new StorageError('unavailable', `The disk of the IPFS blocks failed: ${message}`, { cause: error })
}
