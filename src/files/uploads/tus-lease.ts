/**
 * A lease on an upload's row: across all web processes, one request at a time holds the upload and renews the lease. An
 * in-memory lock would not cover other processes, and a PostgreSQL lock would occupy a connection for as long as the
 * slowest client sends. The leases of a dead process expire.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Lock, Locker, RequestRelease } from '@tus/server'
import type { Pool } from '../../db/pool.ts'
import { askForUpload, claimUpload, releaseUploadLease, renewUpload } from '../../db/statements/uploads.ts'
import { ApiError } from '../../errors.ts'

/** Much longer than any delay of a busy process's renewals: two requests must not write at once. */
const LEASE_MS = 10_000
/** Interval of renewals, through which a request also learns that another one waits for it. */
const RENEW_MS = 500
const ASK_MS = 100
/** How long a request waits for another to yield: less than the minute after which proxies give up. */
export const WAIT_MS = 50_000

/** The error for a request that found the upload busy all the time; tus clients retry after it. */
export const uploadBusy = (): ApiError =>
  new ApiError(423, 'busy', 'The upload is being received or imported: ask again', {
    headers: { 'retry-after': '5' },
  })

/** Creates locks for one request. */
export class UploadLocker implements Locker {
  readonly #pool: Pool
  readonly #gone: AbortSignal

  /** @param gone fires when nobody waits for a lock any longer: waiting and requesting stop then. */
  constructor(pool: Pool, gone: AbortSignal) {
    this.#pool = pool
    this.#gone = gone
  }

  newLock(id: string): Lock {
    return new UploadLock(this.#pool, id, this.#gone)
  }

  /**
   * Runs `work` while no other request holds the upload; a request for it waits.
   * @throws ApiError 423 if the upload stays busy.
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
    await releaseUploadLease
      .run(this.#pool, this.#upload, this.#id)
      // The lease then expires by itself.
      .catch(() => {})
  }

  /** Also true if the upload no longer exists: the caller finds out when it reads it. */
  async #take(): Promise<boolean> {
    const row = await claimUpload.one(this.#pool, this.#upload, this.#id, LEASE_MS)
    return row.taken
  }

  #renewLater(onWanted: RequestRelease): void {
    const timer = setTimeout(async () => {
      const { rows } = await renewUpload
        .run(this.#pool, this.#upload, this.#id, LEASE_MS)
        // The database is unavailable: nobody else can take the lease either, and it is renewed once the database is
        // back.
        .catch(() => ({ rows: [{ lease_wanted: false }] }))
      if (this.#timer !== timer) return
      // A lost lease expired while this process was stopped; its new holder wants this request to end.
      if (!rows[0] || rows[0].lease_wanted) await onWanted()
      if (rows[0]) this.#renewLater(onWanted)
    }, RENEW_MS)
    this.#timer = timer
  }
}
