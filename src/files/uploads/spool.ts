import { randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { unavailable } from '../../errors.ts'

/** Where in the spool the bytes of one file are. */
export interface SpooledBytes {
  start: number
  /** Behind the last byte. */
  end: number
}

/** Bytes on the disk that are gone once it is closed, or its process has ended: the file has no name. */
export class Spool {
  readonly #file: FileHandle
  #size = 0

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /** @param dir is made where it is not there. */
  static async open(dir: string): Promise<Spool> {
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const path = join(dir, randomUUID())
    const file = await open(path, 'wx+', 0o600)
    await unlink(path)
    return new Spool(file)
  }

  /** Appends a file. @throws ApiError 503 when the disk is full, and what `content` throws. */
  async write(content: AsyncIterable<Uint8Array>): Promise<SpooledBytes> {
    const start = this.#size
    for await (const chunk of content) {
      for (let done = 0; done < chunk.length; ) done += await this.#append(chunk.subarray(done))
    }
    return { start, end: this.#size }
  }

  async #append(bytes: Uint8Array): Promise<number> {
    try {
      const { bytesWritten } = await this.#file.write(bytes, 0, bytes.length, this.#size)
      this.#size += bytesWritten
      return bytesWritten
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      throw unavailable('No space left for uploads', error)
    }
  }

  async *read({ start, end }: SpooledBytes): AsyncGenerator<Uint8Array> {
    if (start === end) return
    yield* this.#file.createReadStream({ start, end: end - 1, autoClose: false, highWaterMark: 256 * 1024 })
  }

  close(): Promise<void> {
    return this.#file.close()
  }
}
