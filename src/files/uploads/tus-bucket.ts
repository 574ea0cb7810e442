/**
 * The bytes of unfinished resumable uploads in a bucket of S3. Load it only if it is used.
 *
 * Each part is an object of its own, written once and never changed. A row of `upload_part` says that it counts, and only
 * the request with the lease can write that row. So a process that dies between object and row, or writes after it lost
 * its lease, leaves only an object that does not count. It goes with its upload: objects are below `<upload id>/`.
 */
import {
  GetObjectCommand,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  paginateListObjectsV2,
  type S3Client,
} from '@aws-sdk/client-s3'
import { uuidv7 } from 'uuidv7'
import type { Pool } from '../../db/pool.ts'
import { addPart, cutParts, dropParts, endOfParts, pageParts } from '../../db/statements/uploads.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { isUuid } from '../../lib/read.ts'
import { createS3Client, explainS3, removeObjects } from '../../lib/s3.ts'
import { StorageError } from '../../storage/port.ts'
import { bytesLost, type HeldUpload, type UploadBytes } from './tus-bytes.ts'
import { uploadBusy } from './tus-lease.ts'

/** A server that is away must be noticed while a client still waits. */
const LIMITS = { connectMs: 4_000, idleMs: 12_000, attempts: 2 }
const PART_BYTES = 4 * 1024 * 1024
/** Bytes of parts that are arriving. If all requests together would exceed it, they write smaller parts. */
const MEMORY_BYTES = 64 * 1024 * 1024
const PAGE = 1000

export interface BucketOptions {
  bucket: string
  /** Prefix of all objects; empty, or ends with `/`. */
  prefix: string
  pathStyle: boolean
  pool: Pool
}

export class BytesInBucket implements UploadBytes {
  readonly onDisk = false
  readonly #options: BucketOptions
  readonly #client: S3Client
  /** Requests whose bytes are arriving. */
  #arriving = 0

  constructor(options: BucketOptions) {
    this.#options = options
    this.#client = createS3Client({ ...LIMITS, pathStyle: options.pathStyle })
  }

  async create(): Promise<void> {}

  async count(id: string): Promise<number> {
    return (await endOfParts.first(this.#options.pool, id))?.end ?? 0
  }

  async append(upload: HeldUpload, offset: number, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    let at = offset
    let part = Buffer.alloc(0)
    let bytes = 0
    const take = (chunk: Uint8Array) => {
      if (part.length < bytes + chunk.length) {
        const larger = Buffer.allocUnsafe(Math.max(bytes + chunk.length, part.length * 2))
        part.copy(larger, 0, 0, bytes)
        part = larger
      }
      part.set(chunk, bytes)
      bytes += chunk.length
    }
    const store = async () => {
      const whole = part.subarray(0, bytes)
      bytes = 0
      if (whole.length > 0) await this.#store(upload, at, whole)
      at += whole.length
    }
    this.#arriving++
    try {
      for await (const chunk of chunks) {
        take(chunk)
        if (bytes >= Math.min(PART_BYTES, MEMORY_BYTES / this.#arriving)) await store()
      }
    } finally {
      this.#arriving--
      await store()
    }
  }

  async cut({ id, lease }: HeldUpload, offset: number): Promise<void> {
    await cutParts.run(this.#options.pool, id, lease, offset)
  }

  async *read(id: string, length: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < length; ) {
      const { rows } = await pageParts.run(this.#options.pool, id, at, PAGE)
      for (const part of rows) {
        const content = await this.#get(`${id}/${part.object}`)
        // A part that was cut is longer than its row says.
        if (part.at !== at || content.length < part.bytes) throw bytesLost()
        yield content.subarray(0, part.bytes)
        at += part.bytes
      }
      if (rows.length === 0) throw bytesLost()
    }
  }

  async remove(id: string): Promise<void> {
    await dropParts.run(this.#options.pool, id)
    for await (const { Contents = [] } of this.#list(`${id}/`)) {
      const keys = Contents.map(({ Key = '' }) => Key)
      await this.#ask(() => removeObjects(this.#client, this.#options.bucket, keys))
    }
  }

  async *list(): AsyncGenerator<string[]> {
    const { prefix } = this.#options
    for await (const { CommonPrefixes = [] } of this.#list('', '/'))
      yield CommonPrefixes.map(({ Prefix = '' }) => Prefix.slice(prefix.length, -1)).filter(isUuid)
  }

  close(): void {
    this.#client.destroy()
  }

  async #store({ id, lease }: HeldUpload, at: number, part: Buffer): Promise<void> {
    const object = uuidv7()
    const command = new PutObjectCommand({ ...this.#at(`${id}/${object}`), Body: part })
    await this.#ask(() => this.#client.send(command))
    crashPoint('upload-part-before-row')
    const { rowCount } = await addPart.run(this.#options.pool, id, lease, at, part.length, object)
    if (rowCount === 0) throw uploadBusy()
  }

  #get(name: string): Promise<Uint8Array> {
    return this.#ask(async () => {
      const { Body } = await this.#client.send(new GetObjectCommand(this.#at(name)))
      return (await Body?.transformToByteArray()) ?? new Uint8Array()
    })
  }

  async *#list(below: string, delimiter?: string): AsyncGenerator<ListObjectsV2CommandOutput> {
    const { bucket, prefix } = this.#options
    const asked = { Bucket: bucket, Prefix: prefix + below, Delimiter: delimiter }
    const pages = paginateListObjectsV2({ client: this.#client }, asked)
    for (;;) {
      const page = await this.#ask(() => pages.next())
      if (page.done) return
      yield page.value
    }
  }

  /** @throws ApiError 410 for a missing object, StorageError `unavailable` for everything else. */
  async #ask<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      const explained = explainS3(error)
      if (explained?.kind === 'missing') throw bytesLost()
      const text = `s3://${this.#options.bucket}: ${explained?.text ?? (error as Error).message}`
      throw new StorageError('unavailable', `The bucket of unfinished uploads failed: ${text}`, {
        cause: error,
      })
    }
  }

  #at(name: string): { Bucket: string; Key: string } {
    return { Bucket: this.#options.bucket, Key: this.#options.prefix + name }
  }
}
