/** Contents of files, by git's ids, as `POST /v1/repository/blobs` streams them. */
import { createHash } from 'node:crypto'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { readWithin } from '../../src/agents/agentd-stream.ts'
import type { RepositoryAccess } from '../../src/agents/snapshots/repository.ts'

/** The bound of agentd on blobs in a request. */
const BATCH = 1000
const FIRST_BYTE_MS = 60_000
/** An id, a size and a blank. */
const HEADER_BYTES = 64

export interface Blob {
  blob: string
  /** To be read to its end before the next one is asked for. */
  content: AsyncIterable<Uint8Array>
}

/**
 * Reads blobs, in their order.
 * @param sizeOf what was announced of a blob, in bytes.
 * @throws AgentdError for a content of another size or another id, and for anything else than what was asked for.
 */
export async function* readBlobs(
  access: RepositoryAccess,
  blobs: string[],
  sizeOf: (blob: string) => number | undefined,
): AsyncGenerator<Blob> {
  for (let start = 0; start < blobs.length; start += BATCH)
    yield* readBatch(access, blobs.slice(start, start + BATCH), sizeOf)
}

async function* readBatch(
  { agentd, target, signal }: RepositoryAccess,
  blobs: string[],
  sizeOf: (blob: string) => number | undefined,
): AsyncGenerator<Blob> {
  const response = await agentd.stream(target, {
    method: 'POST',
    path: '/v1/repository/blobs',
    json: { blobs },
    timeoutMs: FIRST_BYTE_MS,
    signal,
  })
  const reader = new ByteReader(readWithin(response))
  try {
    for (const blob of blobs) {
      const size = sizeOf(blob)
      if ((await reader.line(HEADER_BYTES)) !== `${blob} ${size}`)
        throw new AgentdError('bad_answer', 'agentd sent another file than was asked for')
      const content = new Content(reader, blob, size ?? 0)
      yield { blob, content }
      await content.skip()
      if ((await reader.line(0)) !== '')
        throw new AgentdError('bad_answer', 'agentd sent a file without its end')
    }
    await reader.end()
  } finally {
    await reader.close()
  }
}

/** The bytes of one blob, which can be read once. */
class Content implements AsyncIterable<Uint8Array> {
  readonly #chunks: AsyncGenerator<Buffer>

  constructor(reader: ByteReader, blob: string, size: number) {
    this.#chunks = verified(reader, blob, size)
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    // Without `return`: one who stops early leaves the rest to be skipped.
    return { next: () => this.#chunks.next() }
  }

  /** Reads away what nobody has read. */
  async skip(): Promise<void> {
    for await (const _ of this.#chunks);
  }
}

async function* verified(reader: ByteReader, blob: string, size: number): AsyncGenerator<Buffer> {
  const hash = createHash('sha1').update(`blob ${size}\0`)
  for await (const chunk of reader.take(size)) {
    hash.update(chunk)
    yield chunk
  }
  if (hash.digest('hex') !== blob)
    throw new AgentdError('bad_answer', 'agentd sent a file that is another one')
}

/** Reads a stream by lines and by lengths, chunk by chunk, without ever holding more than one. */
class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** The text up to the next line break, which is read as well. @throws AgentdError where none is within `max` bytes. */
  async line(max: number): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf(10)
      if (end >= 0 && end <= max) {
        const line = this.#rest.toString('latin1', 0, end)
        this.#rest = this.#rest.subarray(end + 1)
        return line
      }
      if (end > max || this.#rest.length > max)
        throw new AgentdError('bad_answer', 'agentd sent too long a line')
      const more = await this.#next()
      if (!more) throw brokenOff()
      this.#rest = Buffer.concat([this.#rest, more])
    }
  }

  /** The next `size` bytes. @throws AgentdError where there are fewer. */
  async *take(size: number): AsyncGenerator<Buffer> {
    let left = size
    while (left > 0) {
      if (this.#rest.length === 0) {
        const more = await this.#next()
        if (!more) throw brokenOff()
        this.#rest = more
      }
      const chunk = this.#rest.subarray(0, left)
      this.#rest = this.#rest.subarray(chunk.length)
      left -= chunk.length
      yield chunk
    }
  }

  /** @throws AgentdError where something is left. */
  async end(): Promise<void> {
    if (this.#rest.length > 0 || (await this.#next()))
      throw new AgentdError('bad_answer', 'agentd sent more than was asked for')
  }

  /** Reads no more. */
  async close(): Promise<void> {
    await this.#chunks.return?.()
  }

  async #next(): Promise<Buffer | undefined> {
    for (;;) {
      const { done, value } = await this.#chunks.next()
      if (done) return undefined
      if (value.length > 0) return value
    }
  }
}

const brokenOff = () => new AgentdError('bad_answer', "agentd's answer ended too early")
