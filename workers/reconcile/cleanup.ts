/**
 * What is removed when its time is over: files that expire, blocks that nothing keeps, engines that nobody uses. Uploads
 * that nobody finished are removed by `web` (`removeAbandonedUploads`).
 */
import { withAdvisoryLock } from '../../src/db/advisory-locks.ts'
import type { Pool } from '../../src/db/pool.ts'
import { readExpiredFiles } from '../../src/db/statements/pins.ts'
import { readVersionsInUse } from '../../src/db/statements/worker-agents.ts'
import { removeFile } from '../../src/files/remove.ts'
import { judgeRoom, type Room, readRoom } from '../../src/lib/disk.ts'
import type { Logger } from '../../src/log.ts'
import type { Storage } from '../../src/storage/port.ts'
import type { AgentWorkerServices } from '../services.ts'

const BATCH = 500

/** Removes the files whose time has come, as if their owners had deleted them. Resolves to how many. */
export async function removeExpiredFiles(pool: Pool, signal: AbortSignal): Promise<number> {
  let removed = 0
  for (;;) {
    signal.throwIfAborted()
    const { rows } = await readExpiredFiles.run(pool, BATCH)
    for (const file of rows) if (await removeFile(pool, { ...file, only: 'expired' })) removed++
    if (rows.length < BATCH) return removed
  }
}

/** How often the disk is looked at between two collections. */
export const LOOK_MS = 300_000

/**
 * What the loop of garbage collection does at each turn: it collects when `intervalMs` have passed since it last did,
 * and earlier while the disk is short of room. What deletions and broken uploads leave counts for no workspace, so
 * the disk alone bounds it.
 * @param place where the blocks are, and the reserve of that disk.
 * @param read another way to look at the disk, for tests.
 */
export function collectInTurn(
  storage: Pick<Storage, 'gc'>,
  { folder, reserveBytes }: { folder: string; reserveBytes: number | undefined },
  intervalMs: number,
  read: (folder: string) => Promise<Room> = readRoom,
): (signal: AbortSignal) => Promise<void> {
  let startedAt = Number.NEGATIVE_INFINITY
  return async (signal) => {
    const isDue = performance.now() - startedAt >= intervalMs
    if (!isDue && judgeRoom(await read(folder), reserveBytes) === 'ok') return
    startedAt = performance.now()
    await storage.gc({ signal })
  }
}

/**
 * Marks the versions of the engine that are needed as used, and removes what no agent runs and no setting names for the
 * time of grace: each is half a gigabyte.
 */
export async function tidyEngines(
  { pool, containers, config }: Pick<AgentWorkerServices, 'pool' | 'containers' | 'config'>,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  await withAdvisoryLock(pool, 'engines', async () => {
    const { BERTH_ENGINE_VERSION, BERTH_ENGINE_VERSIONS, BERTH_ENGINE_GRACE_SECONDS: graceMs } = config
    const inUse = (await readVersionsInUse.run(pool)).rows.map(({ version }) => version)
    const keep = new Set([BERTH_ENGINE_VERSION, ...BERTH_ENGINE_VERSIONS, ...inUse])
    const removed = await containers.tidyEngines({ keep: [...keep], graceMs, signal })
    if (removed.length > 0) log.info({ removed }, 'removed engines that were out of use')
  })
}
