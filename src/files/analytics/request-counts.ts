/**
 * Counts of requests that gateways serve, in the memory of each web process, added to the rows by the minute. Serving
 * never waits for that: while the database is away, counts stay in memory, as many as it has room for. A process that is
 * killed loses the last minute's, and a connection that breaks just behind a commit may have its thousand rows counted
 * twice.
 */
import { isTransient } from '../../db/database-errors.ts'
import type { Pool } from '../../db/pool.ts'
import { addRequestCounts, forgetRequestCounts, OTHER } from '../../db/statements/analytics.ts'
import type { Logger } from '../../log.ts'

/** Different counts that one process has at a time; each is less than a kilobyte. */
const MAX_COUNTS = 10_000
/** Rows of one day of one gateway. Names of clients are made up at will, and must not fill the disk. */
const MAX_ROWS = 2000
/** Rows of one statement. */
const BATCH = 1000
const MAX_NAME = 128
const MAX_USER_AGENT = 160
const MAX_ORIGIN = 128

/** An answer of a gateway. Who asked for it is not in it. */
export interface Answered {
  gatewayId: string
  /** The CID that was asked for, in canonical form. */
  cid: string
  /** Empty where nothing was served. */
  fileName: string
  userAgent: string | undefined
  referrer: string | undefined
  /** The status of HTTP; 499 where the answer was cut short. */
  status: number
  /** Sent, headers included. */
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

  /** Different counts in memory. */
  get size(): number {
    return this.#counts.size
  }

  /** Counts an answer for the day on which it ended, in UTC. */
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
      // A full memory has one count for each gateway, day and status.
      this.#add({ ...count, cid: OTHER, file_name: OTHER, user_agent: OTHER, referrer: OTHER })
    }
  }

  /** Adds what has been counted to the rows. What the database does not take now stays for the next time. */
  async flush(): Promise<void> {
    const counts = [...this.#counts.values()]
    this.#counts = new Map()
    for (let from = 0; from < counts.length; from += BATCH) {
      const batch = counts.slice(from, from + BATCH)
      try {
        await addRequestCounts.run(this.#pool, JSON.stringify(batch), MAX_ROWS)
      } catch (error) {
        // A batch that the database never takes must not hold up all others.
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

/** Half a character, which PostgreSQL would not take, becomes one that says so. */
const cut = (text: string, most: number) => text.slice(0, most).toWellFormed()

/** A User-Agent header as it is counted. */
export const countedUserAgent = (header = ''): string => cut(header, MAX_USER_AGENT)

/** A Referer header as it is counted: the origin alone, since paths and queries say more than where a page is. */
export function countedReferrer(header = ''): string {
  const { protocol, origin } = URL.canParse(header) ? new URL(header) : { protocol: '', origin: '' }
  return /^https?:$/.test(protocol) ? cut(origin, MAX_ORIGIN) : ''
}

/** Forgets the counts of days that are more than so many days past. */
export async function forgetOldCounts(pool: Pool, days: number, signal: AbortSignal): Promise<void> {
  let forgotten: number | null = BATCH
  while (forgotten === BATCH && !signal.aborted)
    forgotten = (await forgetRequestCounts.run(pool, BATCH, days)).rowCount
}
