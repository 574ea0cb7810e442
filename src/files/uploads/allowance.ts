import { uuidv7 } from 'uuidv7'
import type { Uploader } from '../../db/statements/uploads.ts'
import { ApiError } from '../../errors.ts'
import type { DiskReserve } from '../../lib/disk-reserve.ts'
import type { Reservations } from './reservations.ts'

const MIB = 1_048_576
/** An upload of unknown length reserves as many bytes ahead as have already arrived, within these bounds. */
const LEAST_STEP = MIB
const LARGEST_STEP = 64 * MIB

/** The uploader, and the file size limit of a signed URL. */
interface Limits {
  uploader: Uploader
  maxFileBytes?: number | undefined
}

/**
 * How many bytes an upload may have as they arrive: the plan's limit for one file, its remaining storage, and the URL's
 * limit. Storage is reserved before it is written. Whether the workspace already has the content is known only when the
 * upload is complete, so even a duplicate needs the room.
 */
export class Allowance {
  /** The id of the reservation. */
  readonly id = uuidv7()
  readonly #services: { reservations: Reservations; disk: DiskReserve }
  readonly #grant: Limits
  readonly #expectedBytes: number
  #reserved = 0

  /** @param expectedBytes the number of expected bytes, if known; otherwise Infinity. */
  constructor(
    services: { reservations: Reservations; disk: DiskReserve },
    grant: Limits,
    expectedBytes: number,
  ) {
    this.#services = services
    this.#grant = grant
    this.#expectedBytes = expectedBytes
  }

  /** @throws ApiError 413 `over_max_size` if a file of this size is too large. */
  checkSize(bytes: number): void {
    const { maxFileBytes, uploader } = this.#grant
    if (maxFileBytes !== undefined && bytes > maxFileBytes) throw overUrlSize(maxFileBytes)
    const { plan } = uploader
    if (plan.maxFileBytes !== null && bytes > plan.maxFileBytes) throw overMaxSize(plan.maxFileBytes)
  }

  /**
   * Ensures that the upload may have `totalBytes` in total, including the chunk that is about to be written.
   * @throws ApiError 413 `over_max_size`, 403 `over_free_limit`, 507 while a disk is down to its reserve.
   */
  async reserveUpTo(totalBytes: number): Promise<void> {
    this.checkSize(totalBytes)
    await this.#services.disk.admit()
    const { plan, workspaceId } = this.#grant.uploader
    if (plan.storageBytes === null || totalBytes <= this.#reserved) return
    const step = Math.min(Math.max(totalBytes, LEAST_STEP), LARGEST_STEP)
    const want = Math.max(
      totalBytes,
      Number.isFinite(this.#expectedBytes) ? this.#expectedBytes : totalBytes + step,
    )
    const granted = await this.#services.reservations.reserve(
      this.id,
      workspaceId,
      { need: totalBytes, want },
      plan.storageBytes,
    )
    if (granted === null) throw overPlanStorage(plan.storageBytes)
    this.#reserved = granted
  }

  /** Releases the bytes that did not become a file. */
  release(): Promise<void> {
    return this.#services.reservations.release(this.id)
  }
}

/** The error for a file above the plan's limit for one file. */
export const overMaxSize = (limit: number): ApiError =>
  new ApiError(413, 'over_max_size', `file: larger than the ${limit} bytes that the plan allows for one file`)

/** The error for a file above the plan's total storage. */
export const overPlanStorage = (limit: number): ApiError =>
  new ApiError(403, 'over_free_limit', `file: would exceed the ${limit} bytes that the plan stores`)

/** The error for a file above a signed URL's limit. */
export const overUrlSize = (limit: number): ApiError =>
  new ApiError(413, 'over_max_size', `file: larger than the ${limit} bytes that this URL allows`)
