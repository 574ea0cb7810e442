import { ApiError } from '../../errors.ts'
import { type Folders, judgeRoom, type Room, readRoom } from '../../lib/disk.ts'

/** How old the look at the disks may be on which bytes are let through. */
const FRESH_MS = 1000

/** Refuses uploads while a disk of theirs is nearly full: what is kept, and what collects garbage, needs the rest. */
export class DiskGuard {
  readonly #folders: string[]
  readonly #read: (folder: string) => Promise<Room>
  #rooms: Promise<Room[]> | undefined
  #readAt = 0

  /** @param read another way to look, for tests. */
  constructor(folders: Folders, read: (folder: string) => Promise<Room> = readRoom) {
    this.#folders = Object.values(folders)
    this.#read = read
  }

  /**
   * To be called before bytes are written.
   * @param bytes that are announced.
   * @throws ApiError 507 where they would leave too little room.
   */
  async admit(bytes = 0): Promise<void> {
    if (!this.#rooms || performance.now() - this.#readAt > FRESH_MS) {
      this.#readAt = performance.now()
      // A disk that cannot be looked at is the health check's to report, and the write's to fail.
      this.#rooms = Promise.all(this.#folders.map(this.#read)).catch(() => [])
    }
    const isFull = ({ free, size }: Room) => judgeRoom({ free: free - bytes, size }) === 'down'
    if ((await this.#rooms).some(isFull)) throw noSpace()
  }
}

/** The answer while the disk has no room for uploads. */
export const noSpace = (cause?: unknown): ApiError =>
  new ApiError(507, 'no_space', 'No space left for uploads', { cause, headers: { 'retry-after': '60' } })
