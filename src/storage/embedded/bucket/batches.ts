/**
 * Asks about many keys at once, or writes them: while a question is under way, further keys gather for the next one. So a
 * single key waits for nobody, and a thousand concurrent ones cost a few questions.
 */
export class Batches<K, V> {
  readonly #ask: (keys: K[]) => Promise<(V | undefined)[]>
  readonly #most: number
  readonly #atOnce: number
  #waiting: { key: K; resolve: (value: V | undefined) => void; reject: (error: unknown) => void }[] = []
  #underWay = 0

  /**
   * @param ask returns what it knows, in the order of the keys.
   * @param options.most keys of one question. @param options.atOnce questions under way.
   */
  constructor(ask: (keys: K[]) => Promise<(V | undefined)[]>, { most = 500, atOnce = 2 } = {}) {
    this.#ask = ask
    this.#most = most
    this.#atOnce = atOnce
  }

  /** The answer for a key; undefined if there is none. */
  get(key: K): Promise<V | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, resolve, reject })
      // Not at once: calls that are made together are asked together.
      if (this.#waiting.length === 1) setImmediate(() => void this.#next())
    })
  }

  async #next(): Promise<void> {
    if (this.#underWay >= this.#atOnce || this.#waiting.length === 0) return
    const batch = this.#waiting.splice(0, this.#most)
    this.#underWay++
    if (this.#waiting.length > 0) void this.#next()
    try {
      const found = await this.#ask(batch.map(({ key }) => key))
      for (const [i, { resolve }] of batch.entries()) resolve(found[i])
    } catch (error) {
      for (const { reject } of batch) reject(error)
    } finally {
      this.#underWay--
      void this.#next()
    }
  }
}

/** A key as text, for maps. */
export const nameOf = (key: Uint8Array): string =>
  Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1')
