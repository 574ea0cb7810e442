/** Collects garbage: blocks that no pin leads to. Sums up removed blocks and bytes for metrics. */
import { withAdvisoryLock } from '../../src/db/advisory-locks.ts'
import type { Pool } from '../../src/db/pool.ts'
import { addCollection, readDue } from '../../src/db/statements/garbage.ts'
import { judgeRoom, type Room, readRoom } from '../../src/lib/disk.ts'
import type { Logger } from '../../src/log.ts'
import type { Storage } from '../../src/storage/port.ts'

/** Interval of the check whether a collection is due. */
export const POLL_MS = 300_000

const LOCKS = { public: 'collectPublic', private: 'collectPrivate' } as const

interface Services {
  pool: Pool
  intervalMs: number
  log: Logger
}

type Collected = Pick<Storage, 'gc' | 'network'>

/**
 * A turn of an embedded node's loop: collects when `intervalMs` have passed since the last collection, and earlier
 * while the disk is short of space. Garbage of deletions and broken uploads counts towards no workspace, so only the
 * disk bounds it. Any number of processes may collect at once.
 * @param place the folder of the blocks, and the reserve of its disk.
 * @param read another way to read the disk's free space, for tests.
 */
export function collectInTurn(
  services: Services,
  storage: Collected,
  { folder, reserveBytes }: { folder: string; reserveBytes: number | undefined },
  read: (folder: string) => Promise<Room> = readRoom,
): (signal: AbortSignal) => Promise<void> {
  let startedAt = Number.NEGATIVE_INFINITY
  return async (signal) => {
    const isDue = performance.now() - startedAt >= services.intervalMs
    if (!isDue && judgeRoom(await read(folder), reserveBytes) === 'ok') return
    startedAt = performance.now()
    await collect(services, storage, new Date(), signal)
  }
}

/**
 * A turn of the loop for what all processes share: Berth's own Kubo, all of whose pins wait while it collects, or blocks
 * in S3. One process starts a collection at most once in `intervalMs`, if something was released or nothing was collected for 24 times as long.
 */
export function collectReleased(
  services: Services,
  storage: Collected,
): (signal: AbortSignal) => Promise<void> {
  const { pool, intervalMs } = services
  return (signal) =>
    withAdvisoryLock(pool, LOCKS[storage.network], async () => {
      const { now, due } = await readDue.one(pool, storage.network, intervalMs / 1000)
      if (due) await collect(services, storage, now, signal)
    })
}

/** A process that dies in between leaves the collection due. */
async function collect(
  { pool, log }: Pick<Services, 'pool' | 'log'>,
  storage: Collected,
  startedAt: Date,
  signal: AbortSignal,
): Promise<void> {
  const { removedBlocks, removedBytes } = await storage.gc({ signal })
  await addCollection.run(pool, storage.network, startedAt, removedBlocks, removedBytes)
  if (removedBlocks > 0)
    log.info({ network: storage.network, removedBlocks, removedBytes }, 'collected garbage')
}
