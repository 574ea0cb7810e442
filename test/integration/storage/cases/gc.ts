import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CID } from 'multiformats/cid'
import { until } from '../../../support/processes.ts'
import { collect, file, folder, texts } from '../content.ts'
import { inPieces, namesOf } from './blocks.ts'
import { type Cases, cidOf, failsWith, MIB } from './context.ts'

/** Releases, and what GC removes afterwards. */
export function gcCases({ storage }: Cases): void {
  const { signal } = new AbortController()
  const cat = (cid: CID, path?: string) => collect(storage().cat(cid, { path, signal }))

  /** True if all blocks still exist, because they can be pinned again without a network. */
  const pinnedAgain = async (cid: CID) => {
    await storage().pin(cid, { offline: true, stallMs: 10_000, signal })
    return storage().isPinned(cid, { signal })
  }

  describe('unpin and gc', () => {
    test('unpin and gc remove only unreferenced blocks', async () => {
      const first = await storage().add(texts({ 'x.txt': 'only in the first', 'y.txt': 'in both' }), {
        signal,
      })
      const second = await storage().add(texts({ 'y.txt': 'in both', 'z.txt': 'only in the second' }), {
        signal,
      })
      assert.equal(await storage().unpin(first.cid, { signal }), true)
      assert.equal(await storage().unpin(first.cid, { signal }), false)
      assert.equal(await storage().isPinned(first.cid, { signal }), false)
      const onlyInFirst = [await cidOf('only in the first'), first.cid]
      await until('the blocks of only the first are collected', async () => {
        await storage().gc({ signal })
        const found = await Promise.allSettled(onlyInFirst.map((cid) => storage().stat(cid, { signal })))
        return found.every(({ status }) => status === 'rejected')
      })
      await assert.rejects(storage().stat(first.cid, { signal }), failsWith('not_found'))
      assert.equal(`${await cat(second.cid, 'y.txt')}`, 'in both')
      assert.equal(`${await cat(second.cid, 'z.txt')}`, 'only in the second')
      assert.equal((await storage().gc({ signal })).removedBlocks, 0)
    })

    test('unpin and gc report what they would remove without removing it', async () => {
      await until('nothing is left of other tests', async () => {
        return (await storage().gc({ signal })).removedBlocks === 0
      })
      const { cid } = await storage().add(folder('would be removed', 3, 2 * MIB), { signal })
      const none = await storage().gc({ signal, dryRun: true })
      assert.deepEqual([none.removedBlocks, none.removedBytes], [0, 0])
      const all = new Set(await namesOf(storage().blocks(cid, { signal })))
      await storage().unpin(cid, { signal })
      const found = await until('all of it counts as unused', async () => {
        const report = await storage().gc({ signal, dryRun: true })
        return report.removedBlocks === all.size && report
      })
      assert.ok(found.removedBytes > 6 * MIB && found.removedBytes < 7 * MIB && (found.keptBlocks ?? 0) > 0)
      assert.equal(await pinnedAgain(cid), true)
      await storage().unpin(cid, { signal })
      let removed = { blocks: 0, bytes: 0 }
      await until('it is removed', async () => {
        const { removedBlocks: blocks, removedBytes: bytes } = await storage().gc({ signal })
        removed = { blocks: removed.blocks + blocks, bytes: removed.bytes + bytes }
        return removed.blocks === found.removedBlocks
      })
      assert.ok(removed.bytes > 6 * MIB, `${removed.bytes}`)
    })

    test('releasing a pin keeps parts that another pin references', async () => {
      const inner = await storage().add(file('inner', 2 * MIB), { signal })
      const { cid } = await storage().add(folder('outer', 3, 1000), { signal })
      await storage().unpin(cid, { signal })
      await until('unreferenced blocks are collected', async () => {
        await storage().gc({ signal })
        return (
          (await storage()
            .stat(cid, { signal })
            .catch(() => null)) === null
        )
      })
      assert.equal((await cat(inner.cid)).length, 2 * MIB)
    })

    test('unpin and gc during imports keep them whole or make them fail as unavailable', async () => {
      const collectAtEachStep = async function* (bytes: AsyncIterable<Uint8Array>) {
        for await (const piece of bytes) {
          yield piece
          await storage().gc({ signal })
        }
      }
      const source = await storage().add(file('beside gc', 3 * MIB), { signal })
      const bytes = await cat(source.cid)
      const car = await collect(storage().exportCar(source.cid, { signal }))
      await storage().unpin(source.cid, { signal })
      const entries = (async function* () {
        yield { path: 'f', content: collectAtEachStep(inPieces(bytes, MIB)) }
      })()
      const imports = [
        () => storage().add(entries, { signal }),
        () => storage().importCar(collectAtEachStep(inPieces(car, MIB)), { signal }),
      ]
      for (const start of imports) {
        const result = await start().catch((error) => failsWith('unavailable')(error) && null)
        await storage().gc({ signal })
        assert.equal(await storage().isPinned(source.cid, { signal }), result !== null)
        if (result) assert.deepEqual(await cat(result.cid), bytes)
        await storage().unpin(source.cid, { signal })
      }
    })
  })
}
