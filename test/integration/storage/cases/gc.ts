import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CID } from 'multiformats/cid'
import { until } from '../../../support/processes.ts'
import { collect, file, folder, texts } from '../content.ts'
import { inPieces } from './blocks.ts'
import { type Cases, cidOf, failsWith, MIB } from './context.ts'

/** Releases, and what GC then removes. */
export function gcCases({ storage }: Cases): void {
  const { signal } = new AbortController()
  const cat = (cid: CID, path?: string) => collect(storage().cat(cid, { path, signal }))

  describe('unpin and gc', () => {
    test('remove what nobody keeps, and only that', async () => {
      const first = await storage().add(texts({ 'x.txt': 'only in the first', 'y.txt': 'in both' }), {
        signal,
      })
      const second = await storage().add(texts({ 'y.txt': 'in both', 'z.txt': 'only in the second' }), {
        signal,
      })
      assert.equal(await storage().unpin(first.cid, { signal }), true)
      assert.equal(await storage().unpin(first.cid, { signal }), false)
      assert.equal(await storage().isPinned(first.cid, { signal }), false)
      const onlyInFirst = await cidOf('only in the first')
      await until('what only the first had is collected', async () => {
        await storage().gc({ signal })
        return (
          (await storage()
            .stat(onlyInFirst, { signal })
            .catch(() => null)) === null
        )
      })
      await assert.rejects(storage().stat(first.cid, { signal }), failsWith('not_found'))
      assert.equal(`${await cat(second.cid, 'y.txt')}`, 'in both')
      assert.equal(`${await cat(second.cid, 'z.txt')}`, 'only in the second')
      assert.equal((await storage().gc({ signal })).removedBlocks, 0)
    })

    test('a pin that is released while another one keeps its parts', async () => {
      const inner = await storage().add(file('inner', 2 * MIB), { signal })
      const { cid } = await storage().add(folder('outer', 3, 1000), { signal })
      await storage().unpin(cid, { signal })
      await until('what nobody keeps is collected', async () => {
        await storage().gc({ signal })
        return (
          (await storage()
            .stat(cid, { signal })
            .catch(() => null)) === null
        )
      })
      assert.equal((await cat(inner.cid)).length, 2 * MIB)
    })

    test('beside imports leave them whole, or make them end as unavailable', async () => {
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
