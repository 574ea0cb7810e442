/**
 * A cache on disk, in a folder that several processes may share. Its content may be deleted at any time, and no error of
 * its disk reaches a caller.
 */
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '../log.ts'
import type { DiskReserve } from './disk-reserve.ts'
import { hasCode, replaceFile, temporaryName } from './files.ts'

/** Writes under way in a process; an entry beyond them is not kept, so that a slow disk does not fill the memory. */
const WRITES = 8
/** Files whose times are read together. */
const STATS = 256
/** A temporary file that has not changed for this long is a dead writer's. */
const LEFTOVER_MS = 600_000
const TEMPORARY = /\.new-[0-9a-f]+$/

export interface FolderCacheOptions {
  folder: string
  /**
   * Maximum bytes of all files together; each process that shares the folder may temporarily add a tenth. 0 disables
   * the cache.
   */
  maxBytes: number
  /** Largest entry: those that are read at the same time are all in memory. */
  maxEntryBytes: number
  /** Whether a reader notices a file that a power cut has damaged, so that none has to be on disk before it has its name. */
  isVerified: boolean
  disk: DiskReserve
  log: Logger
}

export class FolderCache {
  readonly #options: FolderCacheOptions
  /** Bytes that this process has written since it last checked the folder; it has not checked yet. */
  #unchecked = Number.POSITIVE_INFINITY
  #writes = 0
  #isFailing = false

  constructor(options: FolderCacheOptions) {
    this.#options = options
  }

  /** The entry of this name; undefined if it is not cached. @param name can be the name of a file. */
  async read(name: string): Promise<Uint8Array | undefined> {
    if (this.#options.maxBytes === 0) return undefined
    const path = join(this.#options.folder, name)
    const bytes = await readFile(path).catch((error) => {
      if (!hasCode(error, 'ENOENT')) this.#report(error)
      return undefined
    })
    // The file's time is when it was last read: the least recently read files are removed first.
    if (bytes) void utimes(path, new Date(), new Date()).catch(() => {})
    return bytes
  }

  /** Keeps an entry, unless the disk is down to its reserve or busy. A failure is logged, the following ones are not. */
  async write(name: string, bytes: Uint8Array): Promise<void> {
    const { folder, maxBytes, maxEntryBytes, isVerified, disk } = this.#options
    if (bytes.length > Math.min(maxEntryBytes, maxBytes / 10) || this.#writes >= WRITES) return
    this.#writes++
    try {
      if (await disk.take(bytes.length)) return
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 })
        await (isVerified ? replaceQuickly : replaceFile)(join(folder, name), bytes, 0o600)
        this.#isFailing = false
        this.#unchecked += bytes.length
      } finally {
        disk.written(bytes.length)
      }
      if (this.#unchecked > maxBytes / 10) await this.tidy()
    } catch (error) {
      this.#report(error)
    } finally {
      this.#writes--
    }
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.#options.folder, name), { force: true }).catch((error) => this.#report(error))
  }

  /**
   * Shrinks the folder to the allowed size, and removes what killed processes left.
   * @param findStale names of entries, in groups, that nobody needs.
   */
  async tidy(findStale: (names: string[]) => Promise<string[]> = async () => []): Promise<void> {
    const { folder, maxBytes } = this.#options
    this.#unchecked = 0
    try {
      const files: { path: string; size: number; mtimeMs: number }[] = []
      const names = await readdir(folder)
      for (let from = 0; from < names.length; from += STATS) {
        const some = names.slice(from, from + STATS)
        const stale = new Set(await findStale(some.filter((name) => !TEMPORARY.test(name))))
        const found = await Promise.all(
          some.map(async (name) => {
            const path = join(folder, name)
            const { size, mtimeMs } = await stat(path).catch(() => ({ size: 0, mtimeMs: Date.now() }))
            const isLeftover = TEMPORARY.test(name) && mtimeMs < Date.now() - LEFTOVER_MS
            return { path, size, mtimeMs: isLeftover || stale.has(name) ? 0 : mtimeMs }
          }),
        )
        files.push(...found)
      }
      files.sort((a, b) => b.mtimeMs - a.mtimeMs)
      let total = 0
      for (const { path, size, mtimeMs } of files) {
        total += size
        // Another process may have removed it.
        if (total > maxBytes || mtimeMs === 0) await rm(path, { force: true })
      }
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) this.#report(error)
    }
  }

  #report(error: unknown): void {
    const { folder, log } = this.#options
    if (!this.#isFailing) log.warn({ err: error, folder }, 'a cache on disk fails; work continues without it')
    this.#isFailing = true
  }
}

/** Like `replaceFile`, but a power cut may damage the new file. */
async function replaceQuickly(path: string, bytes: Uint8Array, mode: number): Promise<void> {
  const temporary = temporaryName(path)
  try {
    await writeFile(temporary, bytes, { mode, flag: 'wx' })
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw error
  }
}
