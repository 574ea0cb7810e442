import { ApiError } from '../errors.ts'
import { type Disks, describeShortage, type FolderName, judgeRoom, type Room, readRoom } from './disk.ts'

/** How old the look at the disks may be on which bytes are let through. */
const FRESH_MS = 1000

/** Keeps new content off disks that are down to their reserve: what is kept, and what collects garbage, needs the rest. */
export class DiskReserve {
  readonly #disks: Disks
  readonly #read: (folder: string) => Promise<Room>
  #rooms: Promise<[FolderName, Room][]> | undefined
  #readAt = 0
  /** Bytes that `take` has let through and of which that look may not know. */
  #taken = 0
  /** Those of them that are being written. */
  #underWay = 0

  /** @param read another way to look, for tests. */
  constructor(disks: Disks, read: (folder: string) => Promise<Room> = readRoom) {
    this.#disks = disks
    this.#read = read
  }

  /** The folder whose disk would have less than its reserve free after so many bytes more; undefined where none would. */
  async findShort(bytes = 0): Promise<FolderName | undefined> {
    if (!this.#rooms || performance.now() - this.#readAt > FRESH_MS) {
      this.#readAt = performance.now()
      this.#taken = this.#underWay
      // A disk that cannot be looked at is the health check's to report, and the write's to fail.
      this.#rooms = this.#look().catch(() => [])
    }
    const { reserveBytes } = this.#disks
    const isShort = ({ free, size }: Room) =>
      judgeRoom({ free: free - this.#taken - bytes, size }, reserveBytes) === 'down'
    return (await this.#rooms).find(([, room]) => isShort(room))?.[0]
  }

  /** Like `findShort`, for bytes that are written at once: they count until the first look at the disk after `written`. */
  async take(bytes: number): Promise<FolderName | undefined> {
    const short = await this.findShort(bytes)
    if (short) return short
    this.#taken += bytes
    this.#underWay += bytes
    return undefined
  }

  /** Says that bytes which were taken are on the disk, or come no more. */
  written(bytes: number): void {
    this.#underWay -= bytes
  }

  /**
   * To be called before bytes are written.
   * @param bytes that are announced.
   * @throws ApiError 507 where they would leave a disk with less than its reserve.
   */
  async admit(bytes = 0): Promise<void> {
    const short = await this.findShort(bytes)
    if (short) throw noSpace(describeShortage(short))
  }

  #look(): Promise<[FolderName, Room][]> {
    const folders = Object.entries(this.#disks.folders) as [FolderName, string][]
    return Promise.all(folders.map(async ([name, path]) => [name, await this.#read(path)]))
  }
}

/** The answer to new content while a disk has no room for it. @param message which disk, see `describeShortage`. */
export const noSpace = (message: string, cause?: unknown): ApiError =>
  new ApiError(507, 'no_space', message, { cause, headers: { 'retry-after': '60' } })
