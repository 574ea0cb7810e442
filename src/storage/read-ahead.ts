/** A consumer that takes longer than this for one piece is slow. */
const PATIENCE_MS = 1000

interface Item<T> {
  read: () => Promise<T>
  /** Undefined once it was forgotten. */
  value: Promise<T> | undefined
}

/**
 * Pieces that are read before their consumer, a generator's, comes for them. If it is slow, they are forgotten, and each is
 * read again in its turn: a slow download holds one piece in memory.
 */
export class ReadAhead<T> {
  readonly #items: Item<T>[] = []
  readonly #most: number
  /** The first piece waits for no other one. */
  #depth = 1
  #slow: NodeJS.Timeout | undefined

  /** @param most pieces that are read ahead of a quick consumer. */
  constructor(most: number) {
    this.#most = most
  }

  /** True if a piece is to be taken before the next one is pushed. */
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
    value.catch(() => {}) // it is awaited by next, or nobody reads on
    this.#items.push({ read, value })
  }

  /** The next piece, in the order in which they were pushed. @throws what reading it throws. */
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
