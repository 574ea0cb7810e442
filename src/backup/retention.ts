/** Chooses the backups to keep, and removes the others with the blocks that only they need. */
import type { Keep } from '../lib/keep.ts'
import { BlockArchive } from './blocks.ts'
import { listBackups, type Manifest, NETWORKS, readManifest, removeBackup, timeOf } from './layout.ts'
import type { BackupStore } from './store.ts'
import { rootsOf } from './verify.ts'

const DAY_MS = 86_400_000

/** Returns a name for the day, the week (from Monday) or the month of a time, in UTC. */
const PERIODS = {
  d: (at: Date) => at.toISOString().slice(0, 10),
  w: (at: Date) => String(Math.floor((at.getTime() / DAY_MS + 3) / 7)),
  m: (at: Date) => at.toISOString().slice(0, 7),
} satisfies Record<keyof Keep, (at: Date) => string>

/** The backups to keep: the newest one, and the last one of each of the newest days, weeks and months that have any. */
export function keptOf(names: string[], keep: Keep): Set<string> {
  const newestFirst = [...names].sort().reverse()
  const kept = new Set(newestFirst.slice(0, 1))
  for (const [unit, periodOf] of Object.entries(PERIODS)) {
    const seen = new Set<string>()
    for (const name of newestFirst) {
      const period = periodOf(timeOf(name))
      if (seen.has(period) || seen.size >= keep[unit as keyof Keep]) continue
      seen.add(period)
      kept.add(name)
    }
  }
  return kept
}

export interface Pruned {
  /** Names of backups. */
  removed: string[]
  /** Bytes of the blocks that were removed. */
  freedBytes: number
}

/**
 * Removes all other backups, then the blocks that no remaining backup needs. If interrupted, the next call continues.
 * Only one process at a time may write to the store.
 * @param holdsTurn is awaited before anything is removed; it rejects if another process may be writing by now.
 * @throws BackupError if a manifest is damaged, because the blocks that it needs are then unknown.
 */
export async function prune(
  store: BackupStore,
  keep: Keep,
  { signal, holdsTurn }: { signal: AbortSignal; holdsTurn: () => Promise<unknown> },
): Promise<Pruned> {
  const names = await listBackups(store)
  const kept = keptOf(names, keep)
  const manifests = new Map<string, Manifest>()
  for (const name of kept) manifests.set(name, await readManifest(store, name))
  const removed = names.filter((name) => !kept.has(name))
  for (const name of removed) {
    await holdsTurn()
    await removeBackup(store, name)
  }
  let freedBytes = 0
  for (const network of NETWORKS) {
    const roots = new Set<string>()
    for await (const root of rootsOf(store, network, manifests)) roots.add(root)
    freedBytes += await new BlockArchive(store, network).keepOnly(roots, { signal, holdsTurn })
  }
  return { removed, freedBytes }
}
