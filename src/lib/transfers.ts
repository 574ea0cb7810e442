/** Transfers in progress: those whose client is too slow are ended, and the slowest makes room for others. */
import { ApiError } from '../errors.ts'

/** Bytes that a client sends, or reads. */
export interface Transfer {
  /** The number of bytes so far. */
  bytes(): number
  /** True while the client has to send or read, false while it waits. */
  isClientsTurn(): boolean
  /** Ends it with an error response or, if the response has begun, by cutting the connection. */
  end(error: ApiError): void
}

interface Watched {
  kind: string
  /** Names under which its place is counted. */
  names: string[]
  transfer: Transfer
  /** Releases its place. */
  release(): void
}

interface Entry extends Watched {
  startedAt: number
  /** The time of the measurement, and the bytes at that time. */
  since: number
  bytes: number
}

const POLL_MS = 10_000
/** The minimum that a client has to send or read per window while it is its turn. */
const WINDOW_MS = 60_000
const MIN_BYTES = 30 * 1024
/** A transfer younger than this never makes room for another one. */
const YOUNG_MS = 10_000

const tooSlow = () =>
  new ApiError(
    408,
    'too_slow',
    `Fewer than ${MIN_BYTES / 1024} KiB came or went within ${WINDOW_MS / 1000} seconds`,
  )
const replaced = () =>
  new ApiError(
    429,
    'too_many_at_a_time',
    'Others needed the place of your slowest transfer: have fewer at a time',
    {
      headers: { 'retry-after': '5' },
    },
  )

export class TransferWatch {
  readonly #entries = new Set<Entry>()
  #looking: NodeJS.Timeout | undefined

  /** @returns a function that removes it. */
  add(watched: Watched): () => void {
    const now = performance.now()
    const entry = { ...watched, startedAt: now, since: now, bytes: watched.transfer.bytes() }
    this.#entries.add(entry)
    this.#looking ??= setInterval(() => this.#look(), POLL_MS).unref()
    return () => {
      this.#entries.delete(entry)
      if (this.#entries.size > 0) return
      clearInterval(this.#looking)
      this.#looking = undefined
    }
  }

  /** The names under which places of a kind are counted. */
  *holders(kind: string): Generator<string> {
    for (const entry of this.#entries) if (entry.kind === kind) yield* entry.names
  }

  /** Ends a holder's slowest transfer, and releases its place. @returns false if all of them are young. */
  endSlowest(kind: string, holder: string): boolean {
    const now = performance.now()
    let slowest: Entry | undefined
    let least = Number.POSITIVE_INFINITY
    for (const entry of this.#entries) {
      const age = now - entry.startedAt
      if (entry.kind !== kind || age < YOUNG_MS || !entry.names.includes(holder)) continue
      const rate = entry.transfer.bytes() / age
      if (rate >= least) continue
      least = rate
      slowest = entry
    }
    if (slowest) end(slowest, replaced())
    return slowest !== undefined
  }

  #look(): void {
    const now = performance.now()
    for (const entry of this.#entries) {
      const bytes = entry.transfer.bytes()
      const isSlow = entry.transfer.isClientsTurn() && bytes - entry.bytes < MIN_BYTES
      if (isSlow && now - entry.since < WINDOW_MS) continue
      if (isSlow) end(entry, tooSlow())
      else Object.assign(entry, { since: now, bytes })
    }
  }
}

function end({ transfer, release }: Entry, error: ApiError): void {
  release()
  transfer.end(error)
}
