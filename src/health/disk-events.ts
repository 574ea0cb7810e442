/** Notifies the admins of the instance when a disk fills up, by an event in the workspaces that they own. */
import { stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { withAdvisoryLock } from '../db/advisory-locks.ts'
import type { Pool } from '../db/pool.ts'
import { noteLowDisk } from '../db/statements/events.ts'
import { type Disks, judgeRoom, readRoom } from '../lib/disk.ts'
import { type Loop, startLoop } from '../lib/loop.ts'
import type { Logger } from '../log.ts'

const POLL_MS = 60_000

/** Checks the disks of a process once a minute. */
export const startDiskWatch = (pool: Pool, disks: Disks, log: Logger): Loop =>
  startLoop('low disks', POLL_MS, log, () => publishLowDisks(pool, disks))

/** Records each low disk once a day, and again when it reaches its reserve. */
export async function publishLowDisks(pool: Pool, { folders, reserveBytes }: Disks): Promise<void> {
  const low: { id: string; state: string; data: object }[] = []
  const devices = new Set<number>()
  for (const [name, folder] of Object.entries(folders)) {
    const device = await stat(folder).catch(() => undefined)
    // The health of the process reports unreadable folders.
    if (!device || devices.has(device.dev)) continue
    devices.add(device.dev)
    const room = await readRoom(folder)
    const state = judgeRoom(room, reserveBytes)
    if (state === 'ok') continue
    const data = { host: hostname(), disk: name, state, freeBytes: room.free, sizeBytes: room.size }
    low.push({ id: `${hostname()}/${name}`, state, data })
  }
  if (low.length === 0) return
  // Other processes of this machine see the same disks, so only one process at a time writes.
  await withAdvisoryLock(pool, 'disks', async () => {
    for (const { id, state, data } of low) await noteLowDisk.run(pool, id, state, JSON.stringify(data))
  })
}
