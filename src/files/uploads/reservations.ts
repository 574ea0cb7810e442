/**
 * Bytes of uploads in progress, on plans that limit a workspace's storage. They count from the first byte, across all
 * requests and processes, until they become a file or are gone. Each reservation is a row with a lease, which this
 * process renews for all of its reservations; those of a dead process expire.
 */
import { isContention } from '../../db/database-errors.ts'
import type { Pool, Queryable } from '../../db/pool.ts'
import { noteQuotaReached } from '../../db/statements/events.ts'
import {
  endReservation,
  removeReservations,
  renewReservations,
  reserveUpload,
} from '../../db/statements/uploads.ts'
import { unavailable } from '../../errors.ts'
import { WindowCounts } from '../../http/window-counts.ts'

const LEASE_MS = 20_000
/** Interval at which to call {@link Reservations.renew}. */
export const RENEW_MS = 5000

export class Reservations {
  readonly #pool: Pool
  readonly #held = new Set<string>()

  /** @param pool connections that may wait for other counts of the same workspace. */
  constructor(pool: Pool) {
    this.#pool = pool
  }

  /**
   * Reserves bytes under an id, replacing its previous reservation.
   * @param bytes `need` is the required amount; up to `want` is reserved if there is room.
   * @param storageBytes the plan's storage limit.
   * @returns the reserved amount; null if `need` exceeds what is left.
   * @throws ApiError 503 if other uploads of the workspace, which are counted first, take too long.
   */
  async reserve(
    id: string,
    workspaceId: string,
    { need, want }: { need: number; want: number },
    storageBytes: number,
  ): Promise<number | null> {
    this.#held.add(id)
    try {
      const { granted } = await reserveUpload.one(
        this.#pool,
        id,
        workspaceId,
        need,
        want,
        storageBytes,
        LEASE_MS,
      )
      if (granted === null) await publishQuotaReached(this.#pool, workspaceId)
      return granted
    } catch (error) {
      throw isContention(error) ? unavailable('Others are counted before this upload', error) : error
    }
  }

  /** Ends a reservation. An upload that became a file has already ended its reservation; see `settleUpload`. */
  async release(id: string): Promise<void> {
    if (!this.#held.delete(id)) return
    // A reservation that cannot be deleted now expires by itself.
    await endReservation.run(this.#pool, id).catch(() => {})
  }

  /** Renews the leases of this process, and removes expired ones. */
  async renew(): Promise<void> {
    if (this.#held.size > 0) await renewReservations.run(this.#pool, [...this.#held], LEASE_MS)
    await removeReservations.run(this.#pool)
  }
}

/** A workspace gets one event per this period, because rejected clients try again. */
const QUIET_MS = 5 * 60_000
const published = new WindowCounts(QUIET_MS)

/** Publishes `quota.reached`, unless the workspace got it recently. The upload is rejected either way. */
export async function publishQuotaReached(db: Queryable, workspaceId: string): Promise<void> {
  if (published.add(workspaceId).count > 1) return
  await noteQuotaReached.run(db, workspaceId).catch(() => {})
}
