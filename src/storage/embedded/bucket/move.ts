/** Moves blocks into new packs: out of rows, and out of packs that are hardly used. */
import { moveBlocks, packedBlocks, waitingBlocks } from '../../../db/statements/node-blocks.ts'
import { matches } from '../../dag/codecs.ts'
import { cidOf, PACK_BYTES, type PackDeps, storePack } from './packs.ts'

/** The most blocks of one pack that come from rows. */
const ROWS = 20_000
/** Packs that are read for one new one at a time. */
const PACKS = 8

interface Moved {
  hash: Uint8Array
  bytes: Uint8Array
  /** The pack that it was in; null if it was in its row. */
  former: string | null
}

/** Makes packs of the leaves in rows, as long as there are enough for one. */
export async function packWaiting(deps: PackDeps, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted()
    const { rows } = await waitingBlocks.run(deps.pool, deps.network, PACK_BYTES, ROWS)
    const blocks = rows.flatMap(({ hash, bytes }) => (bytes ? [{ hash, bytes, former: null }] : []))
    if (sumOf(blocks) < PACK_BYTES && blocks.length < ROWS) return
    await move(deps, blocks)
  }
}

/**
 * Rewrites the used blocks of packs into others. Damaged ones stay where they are, so their pack stays too.
 * @param packs with their sizes.
 */
export async function repack(
  deps: PackDeps,
  packs: readonly { id: string; bytes: number }[],
  signal: AbortSignal,
): Promise<void> {
  let blocks: Moved[] = []
  let sum = 0
  for (let from = 0; from < packs.length; from += PACKS) {
    const some = packs.slice(from, from + PACKS)
    const { rows } = await packedBlocks.run(
      deps.pool,
      some.map(({ id }) => id),
    )
    for (const { id, bytes } of some) {
      signal.throwIfAborted()
      const whole = await deps.objects.readPack(id, 0, bytes)
      for (const { hash, size, at, pack_id } of rows) {
        if (pack_id !== id || at === null) continue
        const found = whole?.subarray(at, at + size)
        if (!found || found.length !== size || !(await matches(cidOf(hash), found))) continue
        blocks.push({ hash, bytes: Uint8Array.from(found), former: id })
        sum += size
        if (sum < PACK_BYTES) continue
        await move(deps, blocks)
        blocks = []
        sum = 0
      }
    }
  }
  if (blocks.length > 0) await move(deps, blocks)
}

const sumOf = (blocks: readonly { bytes: Uint8Array }[]): number =>
  blocks.reduce((sum, { bytes }) => sum + bytes.length, 0)

async function move(deps: PackDeps, blocks: readonly Moved[]): Promise<void> {
  const hashes = blocks.map(({ hash }) => hash)
  const former = blocks.map((block) => block.former)
  await storePack(deps, blocks, (tx, id, at) => moveBlocks.run(tx, deps.network, id, hashes, at, former))
}
