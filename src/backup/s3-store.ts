/** Stores files of backups as objects of a bucket, through the AWS SDK with its settings and retries. */
import { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  paginateListObjectsV2,
  type S3Client,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { hasCode } from '../lib/files.ts'
import { createS3Client, explainS3, removeObjects } from '../lib/s3.ts'
import { BackupError, type BackupStore } from './store.ts'

/**
 * Size of the parts in which files of unknown length are uploaded, so that the 10,000 parts that S3 allows hold 160 GB.
 */
const PART_BYTES = 16 * 1024 * 1024
const PARTS_AT_ONCE = 3
const IDLE_MS = 120_000
/** Folders of blocks and roots: each is listed once, and the listing is cached. */
const LISTED = /^ipfs\/[^/]+\//

export class S3Store implements BackupStore {
  readonly where: string
  readonly #bucket: string
  readonly #prefix: string
  readonly #client: S3Client
  readonly #sizes = new Map<string, Promise<Map<string, number>>>()

  /** @param options.prefix prefix of all objects, ending with `/`; empty for none. */
  constructor(options: { where: string; bucket: string; prefix: string; pathStyle: boolean }) {
    this.where = options.where
    this.#bucket = options.bucket
    this.#prefix = options.prefix
    this.#client = createS3Client({ pathStyle: options.pathStyle, idleMs: IDLE_MS })
  }

  /** Aborts interrupted uploads: their parts are invisible, but cost money. */
  async prepare(): Promise<void> {
    const Bucket = this.#bucket
    try {
      const listed = await this.#client.send(
        new ListMultipartUploadsCommand({ Bucket, Prefix: this.#prefix }),
      )
      for (const { Key, UploadId } of listed.Uploads ?? [])
        await this.#client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }))
    } catch (error) {
      const why = this.#explain(error)
      // This needs a separate permission, or the server may not support it. Operators without it use a lifecycle rule
      // for such parts.
      if (!(why instanceof NoRight)) throw why
    }
  }

  async names(folder: string): Promise<string[]> {
    const below = folder ? `${folder}/` : ''
    const names: string[] = []
    for await (const { Contents = [], CommonPrefixes = [] } of this.#list(below, '/'))
      for (const key of [...Contents.map(({ Key }) => Key), ...CommonPrefixes.map(({ Prefix }) => Prefix)])
        names.push(this.#pathOf(key).slice(below.length).replace(/\/$/, ''))
    return names.filter(Boolean)
  }

  async *list(folder: string): AsyncGenerator<string> {
    for await (const { Contents = [] } of this.#list(`${folder}/`))
      for (const { Key } of Contents) yield this.#pathOf(Key)
  }

  async size(path: string): Promise<number | null> {
    const [listed] = LISTED.exec(path) ?? []
    if (listed) return (await this.#sizesOf(listed)).get(path) ?? null
    for await (const { Contents = [] } of this.#list(path)) {
      // Keys are listed in order: the shortest key with this prefix comes first.
      const [first] = Contents
      return first && this.#pathOf(first.Key) === path ? (first.Size ?? 0) : null
    }
    return null
  }

  async read(path: string): Promise<Buffer | null> {
    try {
      const chunks: Buffer[] = []
      for await (const chunk of this.stream(path)) chunks.push(chunk)
      return Buffer.concat(chunks)
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return null
      throw error
    }
  }

  stream(path: string): Readable {
    return Readable.from(this.#content(path), { objectMode: false })
  }

  async *#content(path: string): AsyncGenerator<Uint8Array> {
    try {
      const { Body } = await this.#client.send(new GetObjectCommand(this.#at(path)))
      if (Body) yield* Body as AsyncIterable<Uint8Array>
    } catch (error) {
      throw this.#explain(error)
    }
  }

  async write(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    let bytes = 0
    let failure: unknown
    // Errors of the content's source stay unchanged.
    async function* given(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      try {
        for await (const chunk of source) {
          bytes += chunk.length
          yield chunk
        }
      } catch (error) {
        failure = error
        throw error
      }
    }
    try {
      if (content instanceof Uint8Array) {
        bytes = content.length
        await this.#client.send(new PutObjectCommand({ ...this.#at(path), Body: content }))
      } else {
        const Body = Readable.from(given(content), { objectMode: false })
        const parts = { partSize: PART_BYTES, queueSize: PARTS_AT_ONCE }
        await new Upload({ client: this.#client, params: { ...this.#at(path), Body }, ...parts }).done()
      }
    } catch (error) {
      throw failure ?? this.#explain(error)
    }
    const [listed] = LISTED.exec(path) ?? []
    if (listed) (await this.#sizesOf(listed)).set(path, bytes)
  }

  /** Does nothing: S3 has stored what it acknowledged. */
  async settle(): Promise<void> {}

  async remove(paths: string[]): Promise<void> {
    const keys = paths.map((path) => this.#prefix + path)
    await removeObjects(this.#client, this.#bucket, keys).catch((error) => {
      throw this.#explain(error)
    })
    for (const path of paths) {
      const [listed] = LISTED.exec(path) ?? []
      if (listed) (await this.#sizesOf(listed)).delete(path)
    }
  }

  close(): void {
    this.#client.destroy()
  }

  #at(path: string): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: this.#prefix + path }
  }

  #pathOf(key: string | undefined): string {
    return (key ?? '').slice(this.#prefix.length)
  }

  async *#list(below: string, delimiter?: string): AsyncGenerator<ListObjectsV2CommandOutput> {
    try {
      const asked = { Bucket: this.#bucket, Prefix: this.#prefix + below, Delimiter: delimiter }
      yield* paginateListObjectsV2({ client: this.#client }, asked)
    } catch (error) {
      throw this.#explain(error)
    }
  }

  #sizesOf(listed: string): Promise<Map<string, number>> {
    const known = this.#sizes.get(listed)
    if (known !== undefined) return known
    const reading = (async () => {
      const sizes = new Map<string, number>()
      for await (const { Contents = [] } of this.#list(listed))
        for (const { Key, Size } of Contents) sizes.set(this.#pathOf(Key), Size ?? 0)
      return sizes
    })()
    this.#sizes.set(listed, reading)
    return reading
  }

  /** Turns an S3 error into a BackupError with advice for a person; other errors stay unchanged. */
  #explain(error: unknown): unknown {
    const explained = error instanceof BackupError ? undefined : explainS3(error)
    if (!explained) return error
    const text = `s3://${this.#bucket}: ${explained.text}`
    if (explained.kind === 'right') return new NoRight(text, { cause: error })
    const failure = new BackupError(text, { cause: error })
    return explained.kind === 'missing' ? Object.assign(failure, { code: 'ENOENT' }) : failure
  }
}

class NoRight extends BackupError {}
