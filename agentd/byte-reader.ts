/** Reads a stream by lines and by lengths, and never holds more than one chunk and a line. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>
  readonly #fail: (message: string) => Error
  #rest: Buffer = Buffer.alloc(0)

  /** @param fail makes the error for a stream that is not as expected. */
  constructor(chunks: AsyncIterable<Buffer>, fail: (message: string) => Error) {
    this.#chunks = chunks[Symbol.asyncIterator]()
    this.#fail = fail
  }

  /** The text up to the next line break, which is consumed as well, and comes after at most `max` bytes. */
  async line(max: number): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf(10)
      if (end > max || (end < 0 && this.#rest.length > max)) throw this.#fail('sent too long a line')
      if (end >= 0) {
        const line = this.#rest.toString('latin1', 0, end)
        this.#rest = this.#rest.subarray(end + 1)
        return line
      }
      this.#rest = Buffer.concat([this.#rest, await this.#more()])
    }
  }

  /** The next `size` bytes. */
  async *take(size: number): AsyncGenerator<Buffer> {
    for (let left = size; left > 0; ) {
      if (this.#rest.length === 0) this.#rest = await this.#more()
      const chunk = this.#rest.subarray(0, left)
      this.#rest = this.#rest.subarray(chunk.length)
      left -= chunk.length
      yield chunk
    }
  }

  /** Requires that nothing is left. */
  async end(): Promise<void> {
    if (this.#rest.length > 0 || (await this.#next())) throw this.#fail('sent more than was asked for')
  }

  /** Stops reading. */
  async close(): Promise<void> {
    await this.#chunks.return?.()
  }

  async #more(): Promise<Buffer> {
    const chunk = await this.#next()
    if (!chunk) throw this.#fail('ended too early')
    return chunk
  }

  async #next(): Promise<Buffer | undefined> {
    for (;;) {
      const { done, value } = await this.#chunks.next()
      if (done) return undefined
      if (value.length > 0) return value
    }
  }
}
