/** Names that are counted at a time: some 20 MB. */
const MOST_NAMES = 100_000

export interface WindowCount {
  count: number
  /** Milliseconds until the window starts again. */
  msLeft: number
}

/**
 * Counts by name, in memory, in windows of one length; a window begins with the first count of its name. Where there
 * are too many names, the one whose window began first is forgotten. The names may be a stranger's choice, so no
 * library: those for rate limits keep any number of names, with a timer for each.
 */
export class WindowCounts {
  readonly #windowMs: number
  readonly #mostNames: number
  /** In the order in which their windows began, and so end. */
  readonly #counts = new Map<string, { count: number; until: number }>()

  constructor(windowMs: number, mostNames = MOST_NAMES) {
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

  /** The count as it is; 0 for a name that was not counted in this window. */
  read(name: string): WindowCount {
    const now = this.#now()
    this.#forgetEnded(now)
    const entry = this.#counts.get(name)
    return entry ? { count: entry.count, msLeft: entry.until - now } : { count: 0, msLeft: this.#windowMs }
  }

  /** In whole milliseconds: of fractions, a window's end less its beginning may be a little more than its length. */
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
