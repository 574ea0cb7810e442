import { ApiError } from '../errors.ts'
import { type Disks, describeShortage, type FolderName, judgeRoom, type Room, readRoom } from './disk.ts'

/** Maximum age of the disk reading that decides whether bytes are accepted. */
const FRESH_MS = 1000

/**
 * Keeps new content off disks that are down to their reserve: existing content, and garbage collection, need the rest.
 */
export class DiskReserve {
  readonly #disks: Disks
  readonly #read: (folder: string) => Promise<Room>
  #rooms: Promise<[FolderName, Room][]> | undefined
  #readAt = 0
  /** Bytes that `take` has accepted since the reading, or that were being written then. */
  #taken = 0
  /** The accepted bytes that are still being written. */
  #underWay = 0

  /** @param read a replacement for reading the disk, for tests. */
  constructor(disks: Disks, read: (folder: string) => Promise<Room> = readRoom) {
    this.#disks = disks
    this.#read = read
  }

  /** The folder whose disk would fall below its reserve after this many more bytes; undefined if none would. */
  async findShort(bytes = 0): Promise<FolderName | undefined> {
    if (!this.#rooms || performance.now() - this.#readAt > FRESH_MS) {
      this.#readAt = performance.now()
      this.#taken = this.#underWay
      // If a disk cannot be read, the health check reports it, and writes to it fail.
      this.#rooms = this.#look().catch(() => [])
    }
    const { reserveBytes } = this.#disks
    const isShort = ({ free, size }: Room) =>
      judgeRoom({ free: free - this.#taken - bytes, size }, reserveBytes) === 'down'
    return (await this.#rooms).find(([, room]) => isShort(room))?.[0]
  }

  /**
   * Like `findShort`, for bytes that are written immediately: they count until the first disk reading after `written`.
   */
  async take(bytes: number): Promise<FolderName | undefined> {
    const short = await this.findShort(bytes)
    if (short) return short
    this.#taken += bytes
    this.#underWay += bytes
    return undefined
  }

  /** Declares that accepted bytes are on disk, or will not be written. */
  written(bytes: number): void {
    this.#underWay -= bytes
  }

  /**
   * Call it before bytes are written.
   * @param bytes the announced number of bytes.
   * @throws ApiError 507 if they would leave a disk with less than its reserve.
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

/** The error for new content while a disk has no room for it. @param message names the disk; see `describeShortage`. */
export const noSpace = (message: string, cause?: unknown): ApiError =>
  new ApiError(507, 'no_space', message, { cause, headers: { 'retry-after': '60' } })
