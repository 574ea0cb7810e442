/**
 * Everything random in the torture tests comes from one seed: `BERTH_TORTURE_SEED=<number>` replays the contents, the
 * requests and the schedule of faults of a run. How they interleave depends on the machine.
 */

export const seed = Number(process.env.BERTH_TORTURE_SEED ?? Math.floor(Math.random() * 2 ** 31))
if (!Number.isSafeInteger(seed)) throw new Error('BERTH_TORTURE_SEED must be a whole number')

/** For the name of every suite, so that each start and each failure shows how to replay it. */
export const replay = `BERTH_TORTURE_SEED=${seed}`

/** A separate stream of random numbers for each name (mulberry32). */
export class Random {
  #state: number

  constructor(name: string) {
    this.#state = seed
    for (const char of name) this.#state = Math.imul(this.#state ^ char.charCodeAt(0), 0x01000193)
  }

  /** From 0 up to 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number, including both ends. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  pick<T>(list: readonly T[]): T {
    return list[this.between(0, list.length - 1)] as T
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.between(0, 255))
  }
}

const share = Number(process.env.BERTH_TORTURE_SHARE ?? 1)
if (!(share >= 1)) throw new Error('BERTH_TORTURE_SHARE must be at least 1')

/**
 * The places of a list at which this run kills: all of them, or with `BERTH_TORTURE_SHARE=<n>` one in `n`, different
 * ones in each run, when there is no time for all.
 */
export function placesOf<T>(name: string, places: readonly T[]): T[] {
  const random = new Random(name)
  const ranked = places.map((place) => ({ place, rank: random.next() })).sort((a, b) => a.rank - b.rank)
  const chosen = new Set(ranked.slice(0, Math.ceil(places.length / share)).map(({ place }) => place))
  return places.filter((place) => chosen.has(place))
}
