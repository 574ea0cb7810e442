/**
 * A lease on an upload's row: across all web processes, one request at a time holds the upload and renews the lease. An
 * in-memory lock would not cover other processes, and a PostgreSQL lock would occupy a connection for as long as the
 * slowest client sends. The leases of a dead process expire.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from '../../db/pool.ts'
import { askForUpload, claimUpload, releaseUploadLease, renewUpload } from '../../db/statements/uploads.ts'
import { ApiError } from '../../errors.ts'

/** Much longer than any delay of a busy process's renewals: two requests must not write at once. */
const LEASE_MS = 10_000
/** Interval of renewals, through which a request also learns that another one waits for it. */
const RENEW_MS = 500
const ASK_MS = 100
/** How long a request that was told to yield may take. */
const DRAIN_MS = 1000
/** How long a request waits for another to yield: less than the minute after which proxies give up. */
export const WAIT_MS = 50_000

/** The error for a request that found the upload busy all the time; tus clients retry after it. */
export const uploadBusy = (): ApiError =>
  new ApiError(423, 'busy', 'The upload is being received or imported: ask again', {
    headers: { 'retry-after': '5' },
  })

/**
 * Runs `work` while no other request holds the upload; a request for it waits.
 * @param gone fires when nobody waits for the upload any longer.
 * @param work gets the id of the lease, and a signal that tells it to yield: another request wants the upload. Its
 *   reason is a 423.
 * @throws ApiError 423 if the upload stays busy.
 */
export async function holdUpload<T>(
  pool: Pool,
  upload: string,
  gone: AbortSignal,
  work: (lease: string, wanted: AbortSignal) => Promise<T>,
): Promise<T> {
  const lease = randomUUID()
  const deadline = performance.now() + WAIT_MS
  // Also taken if the upload no longer exists: the caller finds out when it reads it.
  while (!(await claimUpload.one(pool, upload, lease, LEASE_MS)).taken) {
    if (gone.aborted || performance.now() > deadline) throw uploadBusy()
    await askForUpload.run(pool, upload)
    await delay(ASK_MS, undefined, { signal: gone }).catch(() => {})
  }
  const renewal = renewLease(pool, upload, lease)
  try {
    return await work(lease, renewal.wanted)
  } finally {
    renewal.stop()
    // If this fails, the lease expires by itself.
    await releaseUploadLease.run(pool, upload, lease).catch(() => {})
  }
}

function renewLease(pool: Pool, upload: string, lease: string): { wanted: AbortSignal; stop(): void } {
  const wanted = new AbortController()
  let isOver = false
  let drain: NodeJS.Timeout | undefined
  const renew = async () => {
    const { rows } = await renewUpload
      .run(pool, upload, lease, LEASE_MS)
      // The database is unavailable: nobody else can take the lease either, and it is renewed once the database is
      // back.
      .catch(() => ({ rows: [{ lease_wanted: false }] }))
    if (isOver) return
    // A lost lease expired while this process was stopped; its new holder wants this request to end.
    if (!rows[0] || rows[0].lease_wanted) drain ??= setTimeout(() => wanted.abort(uploadBusy()), DRAIN_MS)
    if (rows[0]) timer = setTimeout(renew, RENEW_MS)
  }
  let timer = setTimeout(renew, RENEW_MS)
  const stop = () => {
    isOver = true
    clearTimeout(timer)
    clearTimeout(drain)
  }
  return { wanted: wanted.signal, stop }
}
