/** Reads file contents by git's ids, as `POST /v1/repository/blobs` streams them. */
import { createHash } from 'node:crypto'
import { ByteReader } from '../../../agentd/byte-reader.ts'
import { AgentdError } from '../../../src/agents/agentd-client.ts'
import { readWithin } from '../../../src/agents/agentd-stream.ts'
import type { RepositoryAccess } from '../../../src/agents/snapshots/index.ts'

/** agentd's limit on blobs per request. */
const BATCH = 1000
const FIRST_BYTE_MS = 60_000
/** An id, a size and a blank. */
const HEADER_BYTES = 64

export interface Blob {
  blob: string
  /** Read it to its end before asking for the next one. */
  content: AsyncIterable<Uint8Array>
}

/**
 * Reads blobs in order.
 * @param sizeOf the announced size of a blob, in bytes.
 * @throws AgentdError for content of another size or id, and for anything that was not requested.
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
  const reader = new ByteReader(
    readWithin(response),
    (message) => new AgentdError('bad_answer', `agentd ${message}`),
  )
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

/** The bytes of one blob, readable once. */
class Content implements AsyncIterable<Uint8Array> {
  readonly #chunks: AsyncGenerator<Buffer>

  constructor(reader: ByteReader, blob: string, size: number) {
    this.#chunks = verified(reader, blob, size)
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    // Without `return`: if a reader stops early, `skip` discards the rest.
    return { next: () => this.#chunks.next() }
  }

  /** Discards the unread rest. */
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
