/** Maximum number of names counted at a time: about 20 MB. */
const MAX_NAMES = 100_000

export interface WindowCount {
  count: number
  /** Milliseconds until the window ends. */
  msLeft: number
}

/**
 * Counts by name, in memory, in windows of fixed length; a window begins with the first count of its name. If there are
 * too many names, the one whose window began first is dropped. Strangers may choose the names, so no library is used:
 * rate limit libraries keep any number of names, with a timer for each.
 */
export class WindowCounts {
  readonly #windowMs: number
  readonly #mostNames: number
  /** In the order in which their windows begin, and therefore end. */
  readonly #counts = new Map<string, { count: number; until: number }>()

  constructor(windowMs: number, mostNames = MAX_NAMES) {
    this.#windowMs = windowMs
    this.#mostNames = mostNames
  }

  get size(): number {
    return this.#counts.size
  }

  add(name: string): WindowCount {
    const now = this.#now()
    this.#forgetEnded(now)
    let entry = this.#counts.get(name)
    if (!entry) {
      if (this.#counts.size >= this.#mostNames) this.#forgetFirst()
      entry = { count: 0, until: now + this.#windowMs }
      this.#counts.set(name, entry)
    }
    entry.count++
    return { count: entry.count, msLeft: entry.until - now }
  }

  /** The current count; 0 for a name that was not counted in this window. */
  read(name: string): WindowCount {
    const now = this.#now()
    this.#forgetEnded(now)
    const entry = this.#counts.get(name)
    return entry ? { count: entry.count, msLeft: entry.until - now } : { count: 0, msLeft: this.#windowMs }
  }

  /** In whole milliseconds: with fractions, the end of a window minus its beginning may slightly exceed its length. */
  #now(): number {
    return Math.floor(performance.now())
  }

  #forgetEnded(now: number): void {
    for (const [name, { until }] of this.#counts) {
      if (until > now) return
      this.#counts.delete(name)
    }
  }

  #forgetFirst(): void {
    const [first] = this.#counts.keys()
    if (first !== undefined) this.#counts.delete(first)
  }
}
