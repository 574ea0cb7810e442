/** A consumer that takes longer than this for one piece counts as slow. */
const PATIENCE_MS = 1000

interface Item<T> {
  read: () => Promise<T>
  /** Undefined once it was dropped. */
  value: Promise<T> | undefined
}

/**
 * Reads pieces ahead of their consumer, a generator's. If it is slow, they are dropped, and each is read again in its
 * turn, so a slow download holds one piece in memory.
 */
export class ReadAhead<T> {
  readonly #items: Item<T>[] = []
  readonly #most: number
  /** The first piece does not wait for others. */
  #depth = 1
  #slow: NodeJS.Timeout | undefined

  /** @param most number of pieces that are read ahead of a quick consumer. */
  constructor(most: number) {
    this.#most = most
  }

  /** True if a piece must be taken before the next one is pushed. */
  get isFull(): boolean {
    return this.#items.length >= this.#depth
  }

  get isEmpty(): boolean {
    return this.#items.length === 0
  }

  /** Begins to read a piece. */
  push(read: () => Promise<T>): void {
    clearTimeout(this.#slow)
    const value = read()
    value.catch(() => {}) // it is awaited by next, or nobody continues to read
    this.#items.push({ read, value })
  }

  /** The next piece, in the order of `push`. @throws errors of reading it. */
  async next(): Promise<T> {
    clearTimeout(this.#slow)
    const { read, value } = this.#items.shift() as Item<T>
    const piece = await (value ?? read())
    this.#depth = Math.min(this.#depth + 1, this.#most)
    this.#slow = setTimeout(() => this.#forget(), PATIENCE_MS).unref()
    return piece
  }

  #forget(): void {
    for (const item of this.#items) item.value = undefined
    this.#depth = 1
  }
}
