/** Stores the files of backups in a folder. */
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { hasCode } from '../lib/files.ts'
import { BackupError, type BackupStore } from './store.ts'

/** The folder for files that are being written. */
const DRAFTS = '.tmp'

export class FolderStore implements BackupStore {
  readonly where: string
  /** Folders that are known to exist. */
  readonly #made = new Set<string>()
  /** Folders whose new entries may not be on disk yet. */
  readonly #unsettled = new Set<string>()

  constructor(where: string) {
    this.where = where
  }

  prepare(): Promise<void> {
    return this.#onDisk(async () => {
      await rm(join(this.where, DRAFTS), { recursive: true, force: true })
      await mkdir(join(this.where, DRAFTS), { recursive: true, mode: 0o700 })
    })
  }

  async names(folder: string): Promise<string[]> {
    return (await this.#nullIfMissing(() => readdir(join(this.where, folder)))) ?? []
  }

  async *list(folder: string): AsyncGenerator<string> {
    const entries = await this.#nullIfMissing(() =>
      readdir(join(this.where, folder), { withFileTypes: true }),
    )
    for (const entry of entries ?? []) {
      const path = `${folder}/${entry.name}`
      if (entry.isDirectory()) yield* this.list(path)
      else yield path
    }
  }

  async size(path: string): Promise<number | null> {
    return (await this.#nullIfMissing(() => stat(join(this.where, path))))?.size ?? null
  }

  read(path: string): Promise<Buffer | null> {
    return this.#nullIfMissing(() => readFile(join(this.where, path)))
  }

  stream(path: string): Readable {
    return createReadStream(join(this.where, path))
  }

  write(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    return this.#onDisk(async () => {
      const draft = join(this.where, DRAFTS, randomUUID())
      try {
        const file = await open(draft, 'wx', 0o600)
        try {
          await file.writeFile(content)
          await file.datasync()
        } finally {
          await file.close()
        }
        const full = join(this.where, path)
        await this.#makeFolder(dirname(full))
        await rename(draft, full)
        this.#unsettled.add(dirname(full))
      } catch (error) {
        await rm(draft, { force: true }).catch(() => {})
        throw error
      }
    })
  }

  async #makeFolder(folder: string): Promise<void> {
    if (this.#made.has(folder)) return
    const first = await mkdir(folder, { recursive: true, mode: 0o700 })
    this.#made.add(folder)
    // Each created folder is a new entry in its parent.
    for (let path = folder; first && path.length >= first.length; path = dirname(path))
      this.#unsettled.add(dirname(path))
  }

  settle(): Promise<void> {
    return this.#onDisk(async () => {
      for (const path of this.#unsettled) {
        const folder = await open(path, 'r')
        await folder.sync().finally(() => folder.close())
        this.#unsettled.delete(path)
      }
    })
  }

  /** Also removes folders that become empty. */
  remove(paths: string[]): Promise<void> {
    return this.#onDisk(async () => {
      for (const path of paths) await rm(join(this.where, path), { force: true })
      for (const folder of new Set(paths.map(dirname))) await this.#removeEmpty(folder)
    })
  }

  async #removeEmpty(folder: string): Promise<void> {
    const full = join(this.where, folder)
    try {
      if (folder !== '.') await rmdir(full)
    } catch (error) {
      if (!hasCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT')) throw error
      if (!hasCode(error, 'ENOENT')) this.#unsettled.add(full)
      return
    }
    if (folder === '.') return void this.#unsettled.add(full)
    this.#made.clear()
    this.#unsettled.delete(full)
    await this.#removeEmpty(dirname(folder))
  }

  close(): void {}

  #nullIfMissing<T>(call: () => Promise<T>): Promise<T | null> {
    return this.#onDisk(() =>
      call().catch((error) => {
        if (hasCode(error, 'ENOENT')) return null
        throw error
      }),
    )
  }

  /** Adds the folder's name to disk errors; errors of the content's source stay unchanged. */
  async #onDisk<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error
      throw new BackupError(`${this.where} cannot be used: ${error.message}`, { cause: error })
    }
  }
}
