import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { mkdir, open, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { NextToLast } from 'blockstore-fs/sharding'
import type { CID } from 'multiformats/cid'
import { describeShortage } from '../../lib/disk.ts'
import type { DiskReserve } from '../../lib/disk-reserve.ts'
import { hasCode } from '../../lib/files.ts'
import { inlineBytes, matches } from '../codecs.ts'
import { LARGE_BLOCK_BYTES, turn } from '../dag-limits.ts'
import { StorageError } from '../port.ts'

/**
 * Blocks as files, in the layout of `blockstore-fs` (`blocks/<shard>/<multihash>.data`).
 *
 * The file access is our own because several processes share the folder: `blockstore-fs` gives the
 * temporary file of a block the same name in each of them, so that one can publish what the other
 * has half written, and it reports every failure to read as a block that is not there.
 */
export class BlockFolder {
  readonly dir: string
  readonly tempDir: string
  readonly #touchAfterMs: number
  readonly #reserve: DiskReserve | undefined
  readonly #sharding = new NextToLast()
  readonly #shards = new Set<string>()

  /**
   * @param options.touchAfterMs A block met again after this long is marked as used, so that GC spares it.
   * @param options.reserve of the disk: while it is down to that, no block is written.
   */
  constructor(dir: string, options: { touchAfterMs: number; reserve?: DiskReserve | undefined }) {
    this.dir = join(dir, 'blocks')
    this.tempDir = join(dir, 'tmp')
    this.#touchAfterMs = options.touchAfterMs
    this.#reserve = options.reserve
  }

  /** The path of a block's file, present or not. */
  path(cid: CID): string {
    const { dir, file } = this.#sharding.encode(cid)
    return join(this.dir, dir, file)
  }

  /** The multihash that a block's file stands for, as a CID, or null when the file is not a block. */
  decode(file: string): CID | null {
    try {
      return file.endsWith(this.#sharding.extension) ? this.#sharding.decode(file) : null
    } catch {
      return null
    }
  }

  /** The block's bytes, checked against its hash; null when it is missing or damaged. */
  async read(cid: CID): Promise<Uint8Array | null> {
    const inline = inlineBytes(cid)
    if (inline) return inline
    const bytes = await ifThere(() => readFile(this.path(cid)))
    if (bytes && bytes.length > LARGE_BLOCK_BYTES) await turn()
    return bytes && (await matches(cid, bytes)) ? bytes : null
  }

  /** The block's size in bytes, or null when it is not there. */
  async size(cid: CID): Promise<number | null> {
    const inline = inlineBytes(cid)
    return inline ? inline.length : ifThere(async () => (await stat(this.path(cid))).size)
  }

  /**
   * Like `size`, and a block that has not been used for a while counts as used from now on: a GC in
   * any process then leaves it alone.
   */
  async use(cid: CID): Promise<number | null> {
    const inline = inlineBytes(cid)
    if (inline) return inline.length
    return ifThere(async () => {
      const path = this.path(cid)
      const { size, mtimeMs } = await stat(path)
      const now = new Date()
      if (now.getTime() - mtimeMs > this.#touchAfterMs) await utimes(path, now, now)
      return size
    })
  }

  /** To be called before anybody goes to the trouble of getting blocks. @throws StorageError `no_space`. */
  async admit(): Promise<void> {
    const short = await this.#reserve?.findShort()
    if (short) throw new StorageError('no_space', describeShortage(short))
  }

  /**
   * Stores a block: whole or not at all, and on the disk when this returns. Not checked against its hash.
   * @throws StorageError `no_space` while the disk is down to its reserve or full, `unavailable` when it fails.
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
      if (bytesRead === 0) return bytes.subarray(0, at) // it was cut meanwhile
      at += bytesRead
    }
    return bytes
  } finally {
    fs.closeSync(file)
  }
}

/** Runs a file operation; whatever goes wrong is `unavailable`. */
export async function onDisk<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw error instanceof StorageError ? error : diskError(error)
  }
}

/**
 * Runs a file operation: null when the file is not there, any other failure is `unavailable`. No file has a name that is
 * too long, as that of a long CID would be.
 */
export async function ifThere<T>(call: () => Promise<T>): Promise<T | null> {
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
