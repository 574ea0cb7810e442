import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import type { CID } from 'multiformats/cid'
import { type Block, type PutBlock, type Storage, StorageError } from '../../../../src/storage/port.ts'
import { until } from '../../../support/processes.ts'
import { collect, folder, randomBytes, texts } from '../content.ts'
import { block, node } from './blocks.ts'
import { type Cases, failsWith, heldBytes, MIB, pinned } from './context.ts'

/** DAGs that mostly exist already. */
export function buildCases(cases: Cases): void {
  const { signal } = new AbortController()
  const build = (blocks: Block[], root: CID, base: CID | null = null) =>
    cases.storage().build(
      async (put) => {
        for (const one of blocks) await put(one)
        return root
      },
      { base, signal },
    )
  type Arguments = Parameters<typeof build>
  const refuses = async (
    built: Arguments,
    message: RegExp,
    code: 'invalid_object' | 'not_found' = 'invalid_object',
  ) => {
    const before = await pinned(cases.storage())
    await assert.rejects(build(...built), (error) => {
      assert.match((error as Error).message, message)
      return failsWith(code)(error)
    })
    assert.deepEqual(await pinned(cases.storage()), before)
  }
  /** The directory at `cid` with one more entry. */
  const withEntry = async (cid: CID, name: string, entry: Block): Promise<Block> => {
    const { Data, Links } = dagPb.decode(await cases.storage().block(cid, { signal }))
    const link = { Name: name, Hash: entry.cid, Tsize: entry.bytes.length }
    return block(dagPb.encode(dagPb.prepare({ ...(Data && { Data }), Links: [...Links, link] })), dagPb.code)
  }

  describe('build', () => {
    test('build pins new blocks together with blocks of the base, even after the base is released', async () => {
      const storage = cases.storage()
      const base = (await storage.add(folder('of the base', 250, 500), { signal })).cid
      const file = await block(Buffer.from('a new file'))
      const root = await withEntry(base, 'new.txt', file)
      assert.equal(`${await build([file, root], root.cid, base)}`, `${root.cid}`)
      assert.equal(await storage.isPinned(root.cid, { signal }), true)
      assert.equal(await storage.isPinned(base, { signal }), true)
      assert.ok((await pinned(storage)).includes(`${root.cid}`))

      await storage.unpin(base, { signal })
      await collected(storage, base)
      const { size, files } = await storage.stat(root.cid, { signal })
      assert.deepEqual([size, files], [250 * 500 + file.bytes.length, 251])
      const expected = await collect(randomBytes('of the base-249', 500))
      const path = 'part-2/file-249.bin'
      assert.deepEqual(await collect(storage.cat(root.cid, { path, signal })), expected)
      // And again, when everything exists.
      assert.equal(`${await build([], root.cid, root.cid)}`, `${root.cid}`)
      await storage.unpin(root.cid, { signal })
      await collected(storage, root.cid)
    })

    test('build needs no base, and may return the base, a part of it or something pinned', async () => {
      const storage = cases.storage()
      const [one, two] = [await block(Buffer.from('one')), await block(Buffer.from('two'))]
      const root = await node([one.cid, two.cid])
      for (let i = 0; i < 2; i++) await build([one, two, one, root], root.cid)
      assert.equal((await storage.stat(root.cid, { signal })).files, 2)
      assert.equal(`${await build([], one.cid, root.cid)}`, `${one.cid}`)
      assert.equal(await storage.isPinned(one.cid, { signal }), true)
      const wide = await node([root.cid, one.cid])
      for (let i = 0; i < 2; i++) await build([wide], wide.cid, root.cid)
      assert.equal((await storage.stat(wide.cid, { signal })).files, 3)
    })

    test('build accepts a block of the base in another place', async () => {
      const storage = cases.storage()
      const base = (await storage.add(texts({ 'a/b/c.txt': 'moves', 'd.txt': 'stays' }), { signal })).cid
      const moved = (await storage.resolve(base, { path: 'a/b/c.txt', signal })).cid
      const kept = (await storage.resolve(base, { path: 'a', signal })).cid
      const root = await node([kept, moved])
      await build([root], root.cid, base)
      assert.equal((await storage.stat(root.cid, { signal })).size, 10)
    })

    test('build rejects a link to a block that is neither new nor in the base, even if stored here', async () => {
      const storage = cases.storage()
      const base = (await storage.add(texts({ 'a.txt': 'in the base' }), { signal })).cid
      const others = (await storage.add(texts({ 'b/secret.txt': 'of somebody else' }), { signal })).cid
      const secret = (await storage.resolve(others, { path: 'b/secret.txt', signal })).cid
      const absent = (await block(Buffer.from('nowhere'))).cid
      for (const cid of [others, secret, absent]) {
        const root = await node([cid])
        await refuses([[root], root.cid, base], /blocks neither new nor in .*: 1$/)
        await refuses([[root], root.cid], /blocks neither new nor in .*: 1$/)
        await refuses([[], cid, base], /blocks neither new nor in .*: 1$/)
      }
      const hidden = await block(await storage.block(others, { signal }))
      const root = await node([others, hidden.cid])
      await refuses([[root, hidden], root.cid, base], /blocks neither new nor in .*: 1$/)
    })

    test('build rejects a base that Berth has not pinned', async () => {
      const storage = cases.storage()
      const { cid } = await storage.add(texts({ 'x/a.txt': 'no longer pinned' }), { signal })
      const inner = (await storage.resolve(cid, { path: 'x', signal })).cid
      const root = await node([cid])
      await refuses([[root], root.cid, inner], /is not pinned/, 'not_found')
      await storage.unpin(cid, { signal })
      await refuses([[root], root.cid, cid], /is not pinned/, 'not_found')
    })

    test('build rejects blocks that are damaged, too large, malformed or of an unknown codec', async () => {
      const [good, bad] = [await block(Buffer.from('good')), Buffer.from('evil')]
      await refuses([[{ cid: good.cid, bytes: bad }], good.cid], /damaged/)
      const large = await block(new Uint8Array(2 * MIB + 1))
      await refuses([[large], large.cid], /2097153 bytes/)
      const odd = await block(Buffer.from('not a node'), dagPb.code)
      await refuses([[odd], odd.cid], /does not decode/)
      const unknown = await block(Buffer.from('any bytes'), 0x300001)
      await refuses([[unknown], unknown.cid], /not supported/)
    })

    test('a build that fails in the middle throws its own error and leaves only garbage', async () => {
      const storage = cases.storage()
      const before = await pinned(storage)
      const half = await block(Buffer.from('half of a DAG'))
      const building = storage.build(
        async (put) => {
          await put(half)
          throw new Error('the source broke off')
        },
        { base: null, signal },
      )
      await assert.rejects(building, /^Error: the source broke off$/)
      assert.deepEqual(await pinned(storage), before)
      await collected(storage, half.cid)
    })

    test('build ends promptly when aborted, even while the source hangs, and leaves nothing', async () => {
      const storage = cases.storage()
      const only = await block(Buffer.from('the only one'))
      const hanging = async (put: PutBlock) => {
        await put(only)
        return new Promise<CID>(() => {})
      }
      const caller = new AbortController()
      setTimeout(() => caller.abort(), 50)
      await assert.rejects(
        storage.build(hanging, { base: null, signal: caller.signal }),
        failsWith('aborted'),
      )
      await collected(storage, only.cid)
    })

    test('build during gc is complete or fails as unavailable', async () => {
      const storage = cases.storage()
      const base = (await storage.add(folder('beside gc', 20, 500), { signal })).cid
      const file = await block(Buffer.from('beside gc'))
      const root = await withEntry(base, 'new.txt', file)
      let result: CID | null = null
      for (let tries = 0; !result; tries++) {
        result = await storage
          .build(
            async (put) => {
              for (const one of [file, root]) {
                await put(one)
                if (tries === 0) await storage.gc({ signal })
              }
              return root.cid
            },
            { base, signal },
          )
          .catch((error) => {
            assert.ok(error instanceof StorageError && error.code === 'unavailable' && tries < 3, error)
            return null
          })
      }
      await storage.gc({ signal })
      assert.equal((await storage.stat(root.cid, { signal })).files, 21)
    })

    test('blocks of a build are streamed and never held as a whole', async () => {
      const storage = cases.storage()
      let most = 0
      const held = heldBytes()
      const root = await storage.build(
        async (put) => {
          const links: CID[] = []
          for (let i = 0; i < 100; i++) {
            const leaf = await block(await collect(randomBytes(`leaf ${i}`, MIB)))
            links.push(leaf.cid)
            await put(leaf)
            if (i % 10 === 9) most = Math.max(most, heldBytes() - held)
          }
          const top = await node(links)
          await put(top)
          return top.cid
        },
        { base: null, signal },
      )
      // Far below the 100 MiB that are put, because the runtime collects garbage whenever it likes.
      assert.ok(most < 64 * MIB, `${most} bytes were held`)
      await storage.unpin(root, { signal })
    })
  })
}

/** Waits until GC has removed a block. */
async function collected(storage: Storage, cid: CID): Promise<void> {
  const signal = AbortSignal.timeout(120_000)
  await until('unreferenced blocks are collected', async () => {
    await storage.gc({ signal })
    return (await storage.block(cid, { signal }).catch(() => null)) === null
  })
}
