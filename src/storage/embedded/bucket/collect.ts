import { CID } from 'multiformats/cid'
import {
  deadPacks,
  forgetPacks,
  giveUpPacks,
  pageBlocks,
  pagePacks,
  removeBlocks,
} from '../../../db/statements/node-blocks.ts'
import { expireMarks, readMarks } from '../../../db/statements/node-roots.ts'
import { crashPoint } from '../../../lib/crash-point.ts'
import { blockKey } from '../../dag/codecs.ts'
import { reachable } from '../../dag/walk.ts'
import type { GcReport } from '../../port.ts'
import { nameOf } from './batches.ts'
import type { BucketBlocks } from './blocks.ts'
import { packWaiting, repack } from './move.ts'
import { cidOf, type PackDeps } from './packs.ts'
import type { PinRows } from './pins.ts'

/** The time after which the writer of a pack must be dead: no request takes that long. */
const WRITE_SECONDS = 3600
/** A dead pack's object is removed again for this long: a machine that slept may still send it. */
const DEAD_SECONDS = 24 * 3600
const PAGE = 2000
/** A pack is rewritten if less of it is used. */
const USED_SHARE = 0.5
/** Bytes that one collection rewrites at most; the next one continues. */
const MOVED_BYTES = 256 * 1024 * 1024
/** Bytes of a block in a pack besides its hash and its content. */
const HEAD_BYTES = 4
const NO_ID = '00000000-0000-0000-0000-000000000000'

export interface CollectOptions extends PackDeps {
  blocks: BucketBlocks
  pins: PinRows
  graceMs: number
  markExpiryMs: number
  /** {@link WRITE_SECONDS}, for tests. */
  writeSeconds?: number | undefined
  dryRun: boolean
  signal: AbortSignal
}

/**
 * Removes the blocks that no root reaches, and the packs without blocks. Pins, imports and reads may run at the same time,
 * in any process.
 *
 * A block stays if a pin, finished or in progress, leads to it, or if it was used after the cutoff: see `collectGarbage`
 * of folders, whose rule this is. Here PostgreSQL decides on each row separately: either a use comes first, and the row no
 * longer matches, or the removal does, and the user finds no block and stores it again, in another pack. Objects follow
 * the rows: an object is removed only once its pack's row says that it is dead, which is final. So it loses nothing if it
 * is killed, or runs twice, or loses its lock; the lock only saves work.
 */
export async function collectBucket(options: CollectOptions): Promise<GcReport> {
  const { network, pool, blocks, pins, graceMs, markExpiryMs, dryRun, signal } = options
  if (!dryRun) await expireMarks.run(pool, network, markExpiryMs)
  // Before the pins: a pin is finished before its mark goes.
  const { now, cids, cutoff } = await readMarks.one(pool, network, graceMs)
  async function* roots() {
    for (const cid of cids) yield CID.parse(cid)
    yield* pins.list()
  }
  const kept = await reachable(roots(), { read: (cid) => blocks.readNode(cid) }, signal)

  const report = { removedBlocks: 0, removedBytes: 0, keptBlocks: 0 } satisfies GcReport
  /** Bytes of each pack that are still used. */
  const used = new Map<string, number>()
  for (let last: Buffer = Buffer.alloc(0); ; ) {
    signal.throwIfAborted()
    const { rows } = await pageBlocks.run(pool, network, last, PAGE, cutoff)
    const unused = rows.filter(({ hash, old }) => old && !kept.has(blockKey(cidOf(hash))))
    const removed = dryRun
      ? unused
      : unused.length === 0
        ? []
        : (await removeBlocks.run(pool, network, hashesOf(unused), cutoff)).rows
    const gone = new Set(removed.map(({ hash }) => nameOf(hash)))
    report.removedBlocks += gone.size
    for (const { size } of removed) report.removedBytes += size
    for (const { hash, size, pack_id } of rows) {
      if (gone.has(nameOf(hash))) continue
      report.keptBlocks++
      if (pack_id) used.set(pack_id, (used.get(pack_id) ?? 0) + size + hash.length + HEAD_BYTES)
    }
    const next = rows.at(-1)?.hash
    if (!next || rows.length < PAGE) break
    last = next
  }
  if (dryRun) return report
  crashPoint('gc-after-rows')
  await tidyPacks(options, used, now)
  return report
}

const hashesOf = (rows: { hash: Uint8Array }[]) => rows.map(({ hash }) => hash)

/** @param used bytes of each pack that are used. @param before packs stored later are left to the next collection. */
async function tidyPacks(options: CollectOptions, used: Map<string, number>, before: Date): Promise<void> {
  const { network, pool, signal } = options
  const empty: string[] = []
  const sparse: { id: string; bytes: number }[] = []
  let moving = 0
  for (let last = NO_ID; ; ) {
    const { rows } = await pagePacks.run(pool, network, last, PAGE, before)
    for (const { id, bytes } of rows) {
      const live = used.get(id) ?? 0
      if (live === 0) empty.push(id)
      else if (live < bytes * USED_SHARE && moving < MOVED_BYTES) {
        sparse.push({ id, bytes })
        moving += bytes
      }
    }
    const next = rows.at(-1)?.id
    if (!next || rows.length < PAGE) break
    last = next
  }
  await removeDead(options, empty)
  await packWaiting(options, signal)
  await repack(options, sparse, signal)
  await removeDead(
    options,
    sparse.map(({ id }) => id),
  )
}

/** Removes the objects of unused packs. @param empty packs that seem to have no blocks. */
async function removeDead(
  { network, pool, objects, writeSeconds = WRITE_SECONDS }: CollectOptions,
  empty: string[],
): Promise<void> {
  await giveUpPacks.run(pool, network, writeSeconds, empty)
  crashPoint('gc-after-give-up')
  const { rows } = await deadPacks.run(pool, network, DEAD_SECONDS)
  if (rows.length === 0) return
  await objects.removePacks(rows.map(({ id }) => id))
  crashPoint('gc-after-objects')
  await forgetPacks.run(
    pool,
    rows.flatMap(({ id, last }) => (last ? [id] : [])),
  )
}
