/** The objects of one node in a bucket: packs, and the marker that names their index. */
import { GetObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3'
import { createS3Client, explainS3, removeObjects } from '../../../lib/s3.ts'
import { StorageError } from '../../port.ts'

/** A server that is away must be noticed while a client still waits. */
const LIMITS = { connectMs: 4_000, idleMs: 12_000, attempts: 2 }
const MARKER = 'berth-blocks.json'

export interface BucketOptions {
  bucket: string
  /** Prefix of all objects; empty, or ends with `/`. */
  prefix: string
  pathStyle: boolean
  /** Shorter limits, for tests. */
  limits?: Partial<typeof LIMITS> | undefined
}

export class BucketObjects {
  readonly where: string
  readonly #options: BucketOptions
  readonly #client: S3Client

  constructor(options: BucketOptions) {
    this.#options = options
    this.where = `s3://${options.bucket}/${options.prefix}`
    this.#client = createS3Client({ ...LIMITS, ...options.limits, pathStyle: options.pathStyle })
  }

  /** A new pack. It has a new id, so that nothing is overwritten and no condition is needed. */
  async putPack(id: string, bytes: Uint8Array): Promise<void> {
    await this.#ask(() => this.#client.send(new PutObjectCommand({ ...this.#pack(id), Body: bytes })))
  }

  /** A part of a pack; null if there is no such pack. */
  async readPack(id: string, at: number, length: number): Promise<Uint8Array | null> {
    const found = await this.#get({ ...this.#pack(id), Range: `bytes=${at}-${at + length - 1}` })
    if (!found || found.length <= length) return found
    // A server that ignores the range.
    return found.length >= at + length ? found.subarray(at, at + length) : null
  }

  /** Removes packs; those that do not exist are skipped. */
  async removePacks(ids: readonly string[]): Promise<void> {
    const keys = ids.map((id) => this.#pack(id).Key)
    await this.#ask(() => removeObjects(this.#client, this.#options.bucket, keys))
  }

  /** The id of the index that these objects belong to; null if there is none yet. */
  async readMarker(): Promise<string | null> {
    const text = await this.#get(this.#at(MARKER))
    return text && String((JSON.parse(Buffer.from(text).toString()) as { index?: unknown }).index)
  }

  /** Writes the marker unless there is one. A server without conditional writes replaces it: read it again. */
  async writeMarker(index: string): Promise<void> {
    const marker = { ...this.#at(MARKER), Body: `${JSON.stringify({ index })}\n` }
    const put = (condition: { IfNoneMatch?: '*' }) =>
      this.#client.send(new PutObjectCommand({ ...marker, ...condition }))
    await this.#ask(async () => {
      try {
        await put({ IfNoneMatch: '*' })
      } catch (error) {
        if ((error as Error).name === 'NotImplemented') await put({})
        else if ((error as Error).name !== 'PreconditionFailed') throw error
      }
    })
  }

  close(): void {
    this.#client.destroy()
  }

  #pack = (id: string) => this.#at(`${id}.car`)

  #at(name: string): { Bucket: string; Key: string } {
    return { Bucket: this.#options.bucket, Key: this.#options.prefix + name }
  }

  async #get(command: { Bucket: string; Key: string; Range?: string }): Promise<Uint8Array | null> {
    return this.#ask(async () => {
      try {
        const { Body } = await this.#client.send(new GetObjectCommand(command))
        return (await Body?.transformToByteArray()) ?? new Uint8Array()
      } catch (error) {
        if (explainS3(error)?.kind === 'missing') return null
        throw error
      }
    })
  }

  async #ask<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      throw this.#explain(error)
    }
  }

  #explain(error: unknown): StorageError {
    const text = explainS3(error)?.text ?? (error as Error).message
    return new StorageError(
      'unavailable',
      `The bucket of the IPFS blocks failed: s3://${this.#options.bucket}: ${text}`,
      {
        cause: error,
      },
    )
  }
}
