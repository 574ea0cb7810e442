/** Reading a stream by lines and by lengths, chunk by chunk, without ever holding more than one. */
import { AgentdError } from '../agentd-client.ts'

/** agentd is on the same machine or beside it: one that sends nothing for so long sends nothing any more. */
const IDLE_MS = 30_000

/**
 * The chunks of an answer. The time that the caller takes for each is not agentd's.
 * @throws AgentdError when the answer breaks off, or when nothing comes for `idleMs`.
 */
export async function* readWithin(
  response: AsyncIterable<Buffer> & { destroy(error?: Error): void },
  idleMs = IDLE_MS,
): AsyncGenerator<Buffer> {
  const chunks = response[Symbol.asyncIterator]()
  try {
    for (;;) {
      const late = new AgentdError('timeout', 'agentd did not go on with its answer')
      const timer = setTimeout(() => response.destroy(late), idleMs)
      const { done, value } = await chunks.next().finally(() => clearTimeout(timer))
      if (done) return
      yield value
    }
  } catch (error) {
    if (error instanceof AgentdError || (error as Error).name === 'AbortError') throw error
    const message = `agentd's answer broke off: ${(error as Error).message}`
    throw new AgentdError('bad_answer', message, 0, { cause: error })
  } finally {
    response.destroy()
  }
}

export class ByteReader {
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
