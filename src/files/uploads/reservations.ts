/**
 * Bytes of uploads under way, on plans that limit what a workspace stores: they count from the first byte on, over
 * all requests and processes, until they are a file or gone. Each reservation is a row with a lease, which this
 * process renews for all of its own; those of a process that died run out.
 */
import { isHeldUp } from '../../db/database-errors.ts'
import type { Pool, Queryable } from '../../db/pool.ts'
import { noteQuotaReached } from '../../db/statements/events.ts'
import {
  endReservation,
  readUsed,
  removeReservations,
  renewReservations,
  reserveUpload,
  settleUpload,
} from '../../db/statements/uploads.ts'
import { unavailable } from '../../errors.ts'
import { WindowCounts } from '../../http/window-counts.ts'

const LEASE_MS = 20_000
/** Interval at which {@link Reservations.renew} is to be called. */
export const RENEW_MS = 5000

export class Reservations {
  readonly #pool: Pool
  readonly #held = new Set<string>()

  /** @param pool connections that may wait for others who count the same workspace. */
  constructor(pool: Pool) {
    this.#pool = pool
  }

  /**
   * Reserves bytes under an id, in place of what it had.
   * @param bytes `need` is what there is; up to `want` is reserved where there is room for it.
   * @param storageBytes what the plan stores.
   * @returns how many are reserved; null when `need` is more than what is left.
   * @throws ApiError 503 when other uploads of the workspace, which are counted first, take too long.
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
      throw isHeldUp(error) ? unavailable('Others are counted before this upload', error) : error
    }
  }

  /** Ends a reservation. An upload that became a file has ended its own before, see {@link settle}. */
  async release(id: string): Promise<void> {
    if (!this.#held.delete(id)) return
    // A reservation that cannot be deleted now runs out by itself.
    await endReservation.run(this.#pool, id).catch(() => {})
  }

  /** Renews the leases of this process, and removes those that ran out. */
  async renew(): Promise<void> {
    if (this.#held.size > 0) await renewReservations.run(this.#pool, [...this.#held], LEASE_MS)
    await removeReservations.run(this.#pool)
  }
}

/**
 * Ends what an upload holds, within the transaction that writes its file: at no moment both count, or neither.
 * @param id of its reservation, or of the resumable upload.
 * @returns what counts against the plan without it, until the transaction ends.
 */
export async function settle(db: Queryable, id: string, workspaceId: string): Promise<number> {
  return (await settleUpload.one(db, id, workspaceId)).used
}

/** Bytes that count against the plan of a workspace: its files, and those that its uploads hold. */
export async function readUsedBytes(db: Queryable, workspaceId: string): Promise<number> {
  return (await readUsed.one(db, workspaceId)).used
}

/** A workspace has one event in this time: clients that are refused try again. */
const QUIET_MS = 5 * 60_000
const published = new WindowCounts(QUIET_MS)

/** Publishes `quota.reached`, where the workspace has not had it lately. The upload is refused either way. */
export async function publishQuotaReached(db: Queryable, workspaceId: string): Promise<void> {
  if (published.add(workspaceId).count > 1) return
  await noteQuotaReached.run(db, workspaceId).catch(() => {})
}
