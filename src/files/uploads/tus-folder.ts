/** The bytes of unfinished resumable uploads in a folder. */
import { once } from 'node:events'
import { createReadStream, createWriteStream, mkdirSync } from 'node:fs'
import { readdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { hasCode } from '../../lib/files.ts'
import { isUuid } from '../../lib/read.ts'
import type { HeldUpload, UploadBytes } from './tus-bytes.ts'

const READ_BYTES = 262_144

/** A file for each upload, named after its id. */
export class BytesInFolder implements UploadBytes {
  readonly onDisk = true
  readonly #dir: string

  constructor(dir: string) {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    this.#dir = dir
  }

  create(id: string): Promise<void> {
    return writeFile(this.#path(id), '')
  }

  async count(id: string): Promise<number | null> {
    try {
      return (await stat(this.#path(id))).size
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return null
      throw error
    }
  }

  async append({ id }: HeldUpload, offset: number, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const file = createWriteStream(this.#path(id), { flags: 'r+', start: offset })
    // A pipeline that fails does not wait for the write under way, which must end before the lease does.
    await pipeline(chunks, file).finally(() => file.closed || once(file, 'close'))
  }

  cut({ id }: HeldUpload, offset: number): Promise<void> {
    return truncate(this.#path(id), offset)
  }

  read(id: string, length: number): AsyncIterable<Uint8Array> {
    // Reads only the announced length: a request whose lease expired may still be writing.
    return createReadStream(this.#path(id), { end: length - 1, highWaterMark: READ_BYTES })
  }

  remove(id: string): Promise<void> {
    return rm(this.#path(id), { force: true })
  }

  async *list(): AsyncGenerator<string[]> {
    yield (await readdir(this.#dir)).filter(isUuid)
  }

  close(): void {}

  #path(id: string): string {
    return join(this.#dir, id)
  }
}
