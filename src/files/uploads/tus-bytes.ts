/** The bytes of unfinished resumable uploads, which all web processes share: in a folder, or in a bucket (`tus-bucket.ts`). */
import { once } from 'node:events'
import { createReadStream, createWriteStream, mkdirSync } from 'node:fs'
import { readdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../../config.ts'
import type { Pool } from '../../db/pool.ts'
import { ApiError } from '../../errors.ts'
import { placeOfUploads } from '../../lib/disk.ts'
import { hasCode } from '../../lib/files.ts'
import { isUuid } from '../../lib/read.ts'

/** An upload, and the lease with which a request holds it. */
export interface HeldUpload {
  id: string
  lease: string
}

/** Only the request that holds an upload writes, cuts or imports its bytes. */
export interface UploadBytes {
  /** Whether they need room on a disk of this process. */
  readonly onDisk: boolean
  /** Makes room for a new upload. */
  create(id: string): Promise<void>
  /** The number of bytes that have arrived; null if they are lost. */
  count(id: string): Promise<number | null>
  /** Appends bytes behind `offset`, the number of those before. If `chunks` fails, what it has yielded is stored. */
  append(upload: HeldUpload, offset: number, chunks: AsyncIterable<Uint8Array>): Promise<void>
  /** Drops the bytes behind `offset`. */
  cut(upload: HeldUpload, offset: number): Promise<void>
  /** The first `length` bytes; all of them have arrived. */
  read(id: string, length: number): AsyncIterable<Uint8Array>
  remove(id: string): Promise<void>
  /** The ids of all uploads that have bytes, also of those that have no row. */
  list(): AsyncIterable<string[]>
  close(): void
}

/** The error for an upload whose bytes are gone: its client must begin again. */
export const bytesLost = (): ApiError =>
  new ApiError(410, 'expired', 'The bytes of the upload are not there any more')

/** Opens them where the settings say. */
export async function openBytes(config: Config, pool: Pool): Promise<UploadBytes> {
  const place = placeOfUploads(config)
  if ('dir' in place) return new BytesInFolder(place.dir)
  const { BytesInBucket } = await import('./tus-bucket.ts')
  return new BytesInBucket({ ...place, pathStyle: config.BERTH_S3_PATH_STYLE, pool })
}

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
