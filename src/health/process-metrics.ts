/** Metrics of the process itself, in addition to Node's: its components, disks and connections. */
import { Gauge, type Registry } from 'prom-client'
import type { Pool } from '../db/pool.ts'
import { BOUNDS, type BoundKind, type Bounds } from '../lib/bounds.ts'
import { type Disks, judgeRoom, type Room, readRoom, reserveOf } from '../lib/disk.ts'
import type { Readiness, Status } from '../lib/readiness.ts'

const VALUES: Record<Status, number> = { ok: 1, degraded: 0.5, down: 0 }

export function addPartMetrics(registry: Registry, readiness: Readiness): void {
  new Gauge({
    name: 'berth_part_up',
    help: 'Parts of this process as `/readyz` has them: 1 is ok, 0.5 degraded, 0 down.',
    labelNames: ['part'],
    registers: [registry],
    async collect() {
      const { parts } = await readiness.read()
      this.reset()
      for (const [part, { status }] of Object.entries(parts)) this.set({ part }, VALUES[status])
    },
  })
}

/** @param size BERTH_POOL. */
export function addSpareMetrics(registry: Registry, size: number): void {
  new Gauge({
    name: 'berth_pool_size',
    help: 'How many spare agents this process keeps ready: BERTH_POOL.',
    registers: [registry],
  }).set(size)
}

const DISK_FIGURES: Record<string, [help: string, of: (room: Room, reserveBytes?: number) => number]> = {
  berth_disk_free_bytes: [
    'Bytes that this process may still write on the disk of each of its folders.',
    ({ free }) => free,
  ],
  berth_disk_size_bytes: ['Bytes of the whole disk of each of its folders.', ({ size }) => size],
  berth_disk_reserve_bytes: [
    'Bytes that stay free on the disk of each of its folders: with less, new content is refused.',
    reserveOf,
  ],
  berth_disk_refusing: [
    '1 while less than the reserve is free on the disk of a folder, so that new content is refused; else 0.',
    (room, reserveBytes) => (judgeRoom(room, reserveBytes) === 'down' ? 1 : 0),
  ],
}

export function addDiskMetrics(registry: Registry, { folders, reserveBytes }: Disks): void {
  for (const [name, [help, figureOf]] of Object.entries(DISK_FIGURES))
    new Gauge({
      name,
      help,
      labelNames: ['folder'],
      registers: [registry],
      async collect() {
        this.reset()
        for (const [folder, path] of Object.entries(folders)) {
          // berth_part_up{part="disk"} reports a disk that cannot be read.
          const room = await readRoom(path).catch(() => undefined)
          if (room) this.set({ folder }, figureOf(room, reserveBytes))
        }
      },
    })
}

/** @param newest when the last valid backup was created, in ms; undefined if this Berth creates none by itself. */
export function addBackupMetrics(
  registry: Registry,
  newest: (() => Promise<number | undefined>) | undefined,
): void {
  const began = Date.now()
  new Gauge({
    name: 'berth_backup_age_seconds',
    help: 'Age of the newest backup in `BERTH_BACKUP_DIR`; where there is none yet, of this process. Without that setting it has no value.',
    registers: [registry],
    async collect() {
      this.reset()
      if (newest) this.set((Date.now() - ((await newest()) ?? began)) / 1000)
    },
  })
}

export function addBoundMetrics(registry: Registry, bounds: Bounds): void {
  new Gauge({
    name: 'berth_work_under_way',
    help: 'Work of each bounded kind that is under way in this process; `docs/settings.md` has the bounds.',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      for (const kind of Object.keys(BOUNDS) as BoundKind[]) this.set({ kind }, bounds.underWay(kind))
    },
  })
}

/**
 * Call this before anything that queries the database during a scrape, so that the figures exclude the scrape itself.
 */
export function addPoolMetrics(registry: Registry, pool: Pool): void {
  new Gauge({
    name: 'berth_database_connections',
    help: 'Connections of this process to the database, `total` and `idle`, and requests that are `waiting` for one.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      this.set({ state: 'total' }, pool.totalCount)
      this.set({ state: 'idle' }, pool.idleCount)
      this.set({ state: 'waiting' }, pool.waitingCount)
    },
  })
}
