/**
 * A lease on an upload's row: one request at a time has the upload, over all web processes, and renews the lease. A
 * lock in memory would not know of other processes, and one of PostgreSQL's own would take a connection for as
 * long as the slowest client sends. A process that dies lets its leases run out.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Lock, Locker, RequestRelease } from '@tus/server'
import type { Pool } from '../../db/pool.ts'
import { askForUpload, giveUploadBack, renewUpload, takeUpload } from '../../db/statements/uploads.ts'
import { ApiError } from '../../errors.ts'

/** Much longer than the renewals of a busy process are late: two requests must not write at once. */
const LEASE_MS = 10_000
/** Interval of renewals, by which a request also learns that another one waits for it. */
const RENEW_MS = 500
const ASK_MS = 100
/** How long a request waits for another to make way: less than the minute after which proxies give up. */
export const WAIT_MS = 50_000

/** The answer to a request that found an upload busy all the time; clients of tus ask again after it. */
export const uploadBusy = (): ApiError =>
  new ApiError(423, 'busy', 'The upload is being received or imported: ask again', {
    headers: { 'retry-after': '5' },
  })

/** Makes locks for one request. */
export class UploadLocker implements Locker {
  readonly #pool: Pool
  readonly #gone: AbortSignal

  /** @param gone fires when nobody waits for a lock any more: it is neither waited for nor asked for then. */
  constructor(pool: Pool, gone: AbortSignal) {
    this.#pool = pool
    this.#gone = gone
  }

  newLock(id: string): Lock {
    return new UploadLock(this.#pool, id, this.#gone)
  }

  /**
   * Runs `work` while no other request has the upload; one that asks for it waits.
   * @throws ApiError 423 when it is not to be had.
   */
  async hold<T>(id: string, work: () => Promise<T>): Promise<T> {
    const lock = this.newLock(id)
    await lock.lock(this.#gone, () => {})
    try {
      return await work()
    } finally {
      await lock.unlock()
    }
  }
}

class UploadLock implements Lock {
  readonly #pool: Pool
  readonly #upload: string
  readonly #gone: AbortSignal
  readonly #id = randomUUID()
  #timer: NodeJS.Timeout | undefined

  constructor(pool: Pool, upload: string, gone: AbortSignal) {
    this.#pool = pool
    this.#upload = upload
    this.#gone = gone
  }

  async lock(requestSignal: AbortSignal, onWanted: RequestRelease): Promise<void> {
    const signal = AbortSignal.any([requestSignal, this.#gone])
    const deadline = performance.now() + WAIT_MS
    while (!(await this.#take())) {
      if (signal.aborted || performance.now() > deadline) throw uploadBusy()
      await askForUpload.run(this.#pool, this.#upload)
      await delay(ASK_MS, undefined, { signal }).catch(() => {})
    }
    this.#renewLater(onWanted)
  }

  async unlock(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await giveUploadBack
      .run(this.#pool, this.#upload, this.#id)
      // The lease runs out by itself then.
      .catch(() => {})
  }

  /** Also true for an upload that is gone: whoever looks at it next will see. */
  async #take(): Promise<boolean> {
    const row = await takeUpload.one(this.#pool, this.#upload, this.#id, LEASE_MS)
    return row.taken
  }

  #renewLater(onWanted: RequestRelease): void {
    const timer = setTimeout(async () => {
      const { rows } = await renewUpload
        .run(this.#pool, this.#upload, this.#id, LEASE_MS)
        // The database is away: nobody else can take the lease either, and when it is back it is renewed.
        .catch(() => ({ rows: [{ lease_wanted: false }] }))
      if (this.#timer !== timer) return
      // A lease that was lost ran out while this process was stopped; who has it now wants this request gone.
      if (!rows[0] || rows[0].lease_wanted) await onWanted()
      if (rows[0]) this.#renewLater(onWanted)
    }, RENEW_MS)
    this.#timer = timer
  }
}
