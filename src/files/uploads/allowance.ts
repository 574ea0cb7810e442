import { uuidv7 } from 'uuidv7'
import { ApiError } from '../../errors.ts'
import type { DiskReserve } from '../../lib/disk-reserve.ts'
import type { UploadGrant } from './grant.ts'
import { overFreeLimit, overMaxSize } from './keep.ts'
import type { Reservations } from './reservations.ts'

const MIB = 1_048_576
/** Bytes that an upload of unknown length reserves beyond those that came: as many again, between these. */
const LEAST_STEP = MIB
const LARGEST_STEP = 64 * MIB

/**
 * How many bytes an upload may have as it comes: what the plan allows for one file and has left, and what the URL
 * allows. What it takes of the rest of the plan is reserved before it is written. Whether the workspace has the
 * content already shows only when all of it is there, so a duplicate needs the room as well.
 */
export class Allowance {
  /** The id of the reservation. */
  readonly id = uuidv7()
  readonly #services: { reservations: Reservations; disk: DiskReserve }
  readonly #grant: Pick<UploadGrant, 'uploader' | 'maxFileBytes'>
  readonly #atMost: number
  #reserved = 0

  /** @param atMost bytes that can come, where that is known; otherwise Infinity. */
  constructor(
    services: { reservations: Reservations; disk: DiskReserve },
    grant: Pick<UploadGrant, 'uploader' | 'maxFileBytes'>,
    atMost: number,
  ) {
    this.#services = services
    this.#grant = grant
    this.#atMost = atMost
  }

  /** @throws ApiError 413 `over_max_size` for a file of so many bytes. */
  checkSize(bytes: number): void {
    const { maxFileBytes, uploader } = this.#grant
    if (maxFileBytes !== undefined && bytes > maxFileBytes) throw overUrlSize(maxFileBytes)
    const { plan } = uploader
    if (plan.maxFileBytes !== null && bytes > plan.maxFileBytes) throw overMaxSize(plan.maxFileBytes)
  }

  /**
   * To be called before so many bytes, in all, are written anywhere.
   * @throws ApiError 413 `over_max_size`, 403 `over_free_limit`, 507 while a disk is down to its reserve.
   */
  async take(bytes: number): Promise<void> {
    this.checkSize(bytes)
    await this.#services.disk.admit()
    const { plan, workspaceId } = this.#grant.uploader
    if (plan.storageBytes === null || bytes <= this.#reserved) return
    const step = Math.min(Math.max(bytes, LEAST_STEP), LARGEST_STEP)
    const want = Math.max(bytes, Number.isFinite(this.#atMost) ? this.#atMost : bytes + step)
    const granted = await this.#services.reservations.reserve(
      this.id,
      workspaceId,
      { need: bytes, want },
      plan.storageBytes,
    )
    if (granted === null) throw overFreeLimit(plan.storageBytes)
    this.#reserved = granted
  }

  /** Gives back what did not become a file. */
  release(): Promise<void> {
    return this.#services.reservations.release(this.id)
  }
}

/** The answer to a file above what a signed URL allows. */
export const overUrlSize = (limit: number): ApiError =>
  new ApiError(413, 'over_max_size', `file: larger than the ${limit} bytes that this URL allows`)
