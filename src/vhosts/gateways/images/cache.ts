/**
 * Caches converted images on disk, in a folder that several web processes may share. Its content may be deleted at any
 * time.
 */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { DiskReserve } from '../../../lib/disk-reserve.ts'
import { replaceFile } from '../../../lib/files.ts'
import type { Logger } from '../../../log.ts'

/** Largest image that is cached; images being read at the same time are all in memory. */
const MAX_IMAGE_BYTES = 1_048_576

export interface ImageCacheOptions {
  folder: string
  /**
   * Maximum bytes of all files together; each process that shares the folder may temporarily add a tenth. 0 disables
   * the cache.
   */
  maxBytes: number
  disk: DiskReserve
  log: Logger
}

export class ImageCache {
  readonly #options: ImageCacheOptions
  /** Bytes that this process has written since it last checked the folder; it has not checked yet. */
  #unchecked = Number.POSITIVE_INFINITY

  constructor(options: ImageCacheOptions) {
    this.#options = options
  }

  /** The image with a key; undefined if it is not cached. */
  async read(key: string): Promise<Uint8Array | undefined> {
    const path = this.#pathOf(key)
    const bytes = await readFile(path).catch(() => undefined)
    // The file's time is that of its last read: the least recently read files are removed first.
    if (bytes) void utimes(path, new Date(), new Date()).catch(() => {})
    return bytes
  }

  /** Writes an image, unless the disk is down to its reserve. A failure is logged. */
  async write(key: string, bytes: Uint8Array): Promise<void> {
    const { folder, maxBytes, disk, log } = this.#options
    if (bytes.length > Math.min(MAX_IMAGE_BYTES, maxBytes / 10) || (await disk.take(bytes.length))) return
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await replaceFile(this.#pathOf(key), bytes, 0o600)
      this.#unchecked += bytes.length
      if (this.#unchecked > maxBytes / 10) await this.#removeOldest()
    } catch (error) {
      log.warn({ err: error }, 'a converted image was not kept')
    } finally {
      disk.written(bytes.length)
    }
  }

  /** Shrinks the folder to the allowed size, including leftovers of killed processes. */
  async #removeOldest(): Promise<void> {
    const { folder, maxBytes } = this.#options
    this.#unchecked = 0
    const names = await readdir(folder)
    const files = await Promise.all(
      names.map(async (name) => {
        const path = join(folder, name)
        const { size, mtimeMs } = await stat(path).catch(() => ({ size: 0, mtimeMs: 0 }))
        return { path, size, mtimeMs }
      }),
    )
    files.sort((a, b) => b.mtimeMs - a.mtimeMs)
    let total = 0
    for (const { path, size } of files) {
      total += size
      // Another process may have removed it.
      if (total > maxBytes) await rm(path, { force: true })
    }
  }

  #pathOf(key: string): string {
    return join(this.#options.folder, createHash('sha256').update(key).digest('hex'))
  }
}
