import { randomUUID } from 'node:crypto'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { CID } from 'multiformats/cid'
import { blockKey } from '../dag/codecs.ts'
import { reachable } from '../dag/walk.ts'
import type { GcReport } from '../port.ts'
import { type BlockFolder, nullIfMissing, onDisk } from './blocks.ts'
import type { PinFolder } from './pins.ts'

/** The age at which a temporary file's writer must be dead: no block takes this long to write. */
const WRITE_MS = 3_600_000

export interface GcOptions {
  blocks: BlockFolder
  pins: PinFolder
  /** A block used within this time is never removed. */
  graceMs: number
  /** Counts what would be removed, and removes nothing. */
  dryRun: boolean
  signal: AbortSignal
}

/**
 * Removes the blocks that no root reaches. There is no lock: pins, imports and further GCs may run at the same time, in
 * this process and in others, for as long as they like.
 *
 * A block stays if a pin, finished or in progress, leads to it, or if it was used after the cutoff. The cutoff is the
 * grace time before this GC began; while an import runs, the grace time before the oldest import began, because no root
 * leads to its blocks yet. Users touch a block only if its time is older than half of the grace time: that preserves
 * the rule and saves a write on every use.
 */
export async function collectGarbage(options: GcOptions): Promise<GcReport> {
  const { blocks, pins, graceMs, signal } = options
  const startedMs = Date.now()
  if (!options.dryRun) {
    // A GC that died may have left blocks aside that were touched since.
    for (const name of await onDisk(() => readdir(blocks.trashDir))) await blocks.putBack(name)
    await removeLeftovers(blocks.tempDir, startedMs - WRITE_MS)
  }

  const roots = await pins.roots(startedMs)
  const cutoffMs = Math.min(startedMs, roots.importingSinceMs ?? Infinity) - graceMs
  const kept = await reachable(roots.cids, blocks, signal)

  const report = { removedBlocks: 0, removedBytes: 0, keptBlocks: 0 } satisfies GcReport
  const shards = await onDisk(() => readdir(blocks.dir, { withFileTypes: true }))
  for (const shard of shards.filter((entry) => entry.isDirectory())) {
    for (const file of (await nullIfMissing(() => readdir(join(blocks.dir, shard.name)))) ?? []) {
      signal.throwIfAborted()
      const cid = blocks.decode(file)
      if (!cid) continue
      const removed = kept.has(blockKey(cid)) ? null : await removeUnused(cid, { ...options, cutoffMs })
      if (removed === null) report.keptBlocks++
      else {
        report.removedBlocks++
        report.removedBytes += removed
      }
    }
  }
  return report
}

/**
 * Removes a block unless it was used recently; returns its size, or null if it stays. The block is moved to the trash
 * first and checked again: if a user touched it just before that, it is restored. A reader that misses it also restores
 * it (see `BlockFolder`); a later user finds no block and retrieves it. So neither readers nor another GC's marking miss
 * a pinned block, however long a step takes.
 */
async function removeUnused(cid: CID, options: GcOptions & { cutoffMs: number }): Promise<number | null> {
  const { blocks } = options
  const path = blocks.path(cid)
  const isUnused = async (file: string): Promise<number | null> => {
    const found = await nullIfMissing(() => stat(file))
    return found && found.mtimeMs < options.cutoffMs ? found.size : null
  }
  const unused = await isUnused(path)
  if (unused === null || options.dryRun) return unused
  const name = `${randomUUID()}.${basename(path)}`
  const aside = join(blocks.trashDir, name)
  await nullIfMissing(() => rename(path, aside))
  const size = await isUnused(aside)
  if (size === null) await blocks.putBack(name)
  else await onDisk(() => rm(aside, { force: true }))
  return size
}

/** Removes temporary files of dead writers. */
async function removeLeftovers(tempDir: string, beforeMs: number): Promise<void> {
  for (const file of await onDisk(() => readdir(tempDir))) {
    const found = await nullIfMissing(() => stat(join(tempDir, file)))
    if (found && found.mtimeMs < beforeMs) await onDisk(() => rm(join(tempDir, file), { force: true }))
  }
}
