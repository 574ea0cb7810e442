/**
 * Counts of requests that gateways serve. Each web process holds them in memory and adds them to the rows every minute.
 * Serving never waits for that: while the database is unavailable, counts stay in memory, up to a limit. A killed
 * process loses the last minute's counts. If a connection breaks right after a commit, up to a thousand rows may be
 * counted twice.
 */
import { isTransient } from '../../db/database-errors.ts'
import type { Pool } from '../../db/pool.ts'
import { addRequestCounts, forgetRequestCounts, OTHER } from '../../db/statements/analytics.ts'
import type { Logger } from '../../log.ts'

/** Maximum number of different counts in one process; each is less than a kilobyte. */
const MAX_COUNTS = 10_000
/** Rows per gateway and day. Clients can make up any names, and these must not fill the disk. */
const MAX_ROWS = 2000
/** Rows per statement. */
const BATCH = 1000
const MAX_NAME = 128
const MAX_USER_AGENT = 160
const MAX_ORIGIN = 128

/** A response of a gateway. It does not include who sent the request. */
export interface Answered {
  gatewayId: string
  /** The requested CID, in canonical form. */
  cid: string
  /** Empty if nothing was served. */
  fileName: string
  userAgent: string | undefined
  referrer: string | undefined
  /** The HTTP status; 499 if the response was cut short. */
  status: number
  /** Bytes sent, including headers. */
  bytes: number
}

/** A row of `gateway_request_count`. */
interface Count {
  gateway_id: string
  day: string
  cid: string
  file_name: string
  user_agent: string
  referrer: string
  status: number
  requests: number
  bytes: number
}

export class RequestCounts {
  readonly #pool: Pool
  readonly #log: Logger
  readonly #maxCounts: number
  #counts = new Map<string, Count>()

  constructor(pool: Pool, log: Logger, maxCounts = MAX_COUNTS) {
    this.#pool = pool
    this.#log = log
    this.#maxCounts = maxCounts
  }

  /** Number of different counts in memory. */
  get size(): number {
    return this.#counts.size
  }

  /** Counts a response for the day on which it ended, in UTC. */
  add({ gatewayId, cid, fileName, userAgent, referrer, status, bytes }: Answered): void {
    this.#add({
      gateway_id: gatewayId,
      day: new Date().toISOString().slice(0, 10),
      cid,
      file_name: cut(fileName, MAX_NAME),
      user_agent: countedUserAgent(userAgent),
      referrer: countedReferrer(referrer),
      status,
      requests: 1,
      bytes,
    })
  }

  #add(count: Count): void {
    const key = keyOf(count)
    const known = this.#counts.get(key)
    if (known) {
      known.requests += count.requests
      known.bytes += count.bytes
    } else if (this.#counts.size < this.#maxCounts || count.cid === OTHER) {
      this.#counts.set(key, count)
    } else {
      // When memory is full, there is one count for each gateway, day and status.
      this.#add({ ...count, cid: OTHER, file_name: OTHER, user_agent: OTHER, referrer: OTHER })
    }
  }

  /** Adds the counts to the rows. Counts that the database does not accept now are kept for the next call. */
  async flush(): Promise<void> {
    const counts = [...this.#counts.values()]
    this.#counts = new Map()
    for (let from = 0; from < counts.length; from += BATCH) {
      const batch = counts.slice(from, from + BATCH)
      try {
        await addRequestCounts.run(this.#pool, JSON.stringify(batch), MAX_ROWS)
      } catch (error) {
        // A batch that the database never accepts must not hold up all others.
        const isLater = isTransient(error)
        for (const count of counts.slice(isLater ? from : from + BATCH)) this.#add(count)
        this.#log.warn({ err: error, rows: batch.length, isLater }, 'requests of gateways are not written')
        return
      }
    }
  }
}

const keyOf = ({ gateway_id, day, cid, file_name, user_agent, referrer, status }: Count) =>
  `${gateway_id}\0${day}\0${cid}\0${file_name}\0${user_agent}\0${referrer}\0${status}`

/** Replaces half a surrogate pair, which PostgreSQL would reject, with the replacement character. */
const cut = (text: string, most: number) => text.slice(0, most).toWellFormed()

/** The counted form of a User-Agent header. */
export const countedUserAgent = (header = ''): string => cut(header, MAX_USER_AGENT)

/**
 * The counted form of a Referer header: only the origin, because paths and queries reveal more than where a page is.
 */
export function countedReferrer(header = ''): string {
  const { protocol, origin } = URL.canParse(header) ? new URL(header) : { protocol: '', origin: '' }
  return /^https?:$/.test(protocol) ? cut(origin, MAX_ORIGIN) : ''
}

/** Deletes the counts of days more than this many days ago. */
export async function forgetOldCounts(pool: Pool, days: number, signal: AbortSignal): Promise<void> {
  let forgotten: number | null = BATCH
  while (forgotten === BATCH && !signal.aborted)
    forgotten = (await forgetRequestCounts.run(pool, BATCH, days)).rowCount
}
