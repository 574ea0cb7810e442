import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as dagCbor from '@ipld/dag-cbor'
import * as dagJson from '@ipld/dag-json'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import type { CID } from 'multiformats/cid'
import { hollowDirectory, hollowFile, type MadeDag } from '../../../support/hollow.ts'
import { collect } from '../content.ts'
import { block, carOf, inPieces } from './blocks.ts'
import { type Cases, failsWith, MIB } from './context.ts'

/** DAGs of a few blocks that have more paths than can be walked, and honest DAGs that look like them. */
export function hollowCases({ storage }: Cases): void {
  // This takes seconds, or minutes next to tests that fill disks.
  const bounded = () => ({ signal: AbortSignal.timeout(240_000) })
  const add = async ({ root, blocks }: MadeDag): Promise<CID> => {
    const { cid } = await storage().importCar(inPieces(carOf(root, blocks), MIB), bounded())
    return cid
  }
  const namesIn = async (cid: CID) => {
    const names: string[] = []
    for await (const { name } of storage().ls(cid, bounded())) names.push(name)
    return names
  }

  describe('DAGs of few blocks and many paths', () => {
    test('a file with many links and few bytes is invalid', async () => {
      for (const [width, depth] of [
        [20_000, 3],
        [40, 5],
        [3000, 4],
      ] as const) {
        const cid = await add(await hollowFile(width, depth))
        await assert.rejects(
          storage().stat(cid, bounded()),
          failsWith('invalid_object'),
          `${width} × ${depth}`,
        )
        const exported = await collect(storage().exportCar(cid, bounded()))
        assert.ok(exported.length < depth * 2 * MIB)
      }
    })

    test('a file with many links and few bytes can be read in part, but not as a whole', async () => {
      const { signal } = bounded()
      const cid = await add(await hollowFile(3000, 3))
      const part = { offset: 2_000_000_000, length: 10, signal }
      assert.equal(`${await collect(storage().cat(cid, part))}`, 'x'.repeat(10))
      if (storage().driver !== 'embedded') return // Kubo walks it; content that `stat` rejects is never kept
      let length = 0
      const all = async () => {
        for await (const chunk of storage().cat(cid, { signal })) length += chunk.length
      }
      await assert.rejects(all, failsWith('invalid_object'))
      assert.ok(length > 16_000 && length < 17_000, `${length} bytes`)
    })

    test('reading a file with empty leaves ends, whatever size it claims', async () => {
      if (storage().driver !== 'embedded') return
      const leaf = await block(new Uint8Array())
      const blocks = [leaf]
      let root = leaf
      for (const size of [1n, 1000n, 1_000_000n]) {
        const Data = new UnixFS({ type: 'file', blockSizes: Array(1000).fill(size) }).marshal()
        const Links = Array(1000).fill({ Name: '', Hash: root.cid, Tsize: 1 })
        root = await block(dagPb.encode({ Data, Links }), dagPb.code)
        blocks.push(root)
      }
      const cid = await add({ root: root.cid, blocks })
      await assert.rejects(storage().stat(cid, bounded()), failsWith('invalid_object'))
      await assert.rejects(collect(storage().cat(cid, bounded())), failsWith('invalid_object'))
    })

    test('a directory of many equal directories is listed, walked and measured', async () => {
      const cid = await add(await hollowDirectory(20_000, 3))
      const names = await namesIn(cid)
      assert.equal(names.length, 20_000)
      assert.equal(names.at(-1), 'n019999')
      const found = await storage().resolve(cid, { path: 'n019999/n000000/n010000', ...bounded() })
      assert.equal(found.type, 'file')
      await assert.rejects(storage().resolve(cid, { path: 'n020000', ...bounded() }), failsWith('not_found'))
      assert.deepEqual(await storage().stat(cid, bounded()), {
        size: 20_000 ** 3,
        files: 2 ** 31 - 1,
        mimeType: 'directory',
      })
    })

    test('a shard with more links than places is invalid', async () => {
      const leaf = await block(Buffer.from('x'))
      for (const [fanout, count] of [
        [256n, 300],
        [65_536n, 1],
        [0n, 1],
      ] as const) {
        const unixfs = new UnixFS({
          type: 'hamt-sharded-directory',
          fanout,
          hashType: 0x22n,
          data: Buffer.of(1),
        })
        const Links = Array(count).fill({ Name: '00x', Hash: leaf.cid, Tsize: 1 })
        const root = await block(dagPb.encode({ Data: unixfs.marshal(), Links }), dagPb.code)
        const cid = await add({ root: root.cid, blocks: [root, leaf] })
        await assert.rejects(namesIn(cid), failsWith('invalid_object'))
        await assert.rejects(storage().resolve(cid, { path: 'x', ...bounded() }), failsWith('invalid_object'))
      }
    })
  })

  describe('large objects', () => {
    for (const codec of [dagCbor, dagJson]) {
      test(`a large object in ${codec.name} is kept, and paths lead through small ones`, async () => {
        const leaf = await block(Buffer.from('x'))
        const large = await block(codec.encode(Array(20_000).fill(leaf.cid)), codec.code)
        const small = await block(codec.encode({ a: [{ b: large.cid }], c: leaf.cid }), codec.code)
        const cid = await add({ root: small.cid, blocks: [small, large, leaf] })
        const stat = await storage().stat(cid, bounded())
        assert.equal(stat.size, small.bytes.length + large.bytes.length + 1)
        const resolve = (path: string) => storage().resolve(cid, { path, ...bounded() })
        assert.equal(`${(await resolve('c')).cid}`, `${leaf.cid}`)
        assert.deepEqual(await resolve('a/0/b'), { cid: large.cid, type: 'other', size: null })
        for (const path of ['d', 'a/1', 'a/0', 'c/x', 'constructor']) {
          await assert.rejects(resolve(path), failsWith('not_found'), path)
        }
        await assert.rejects(resolve('a/0/b/17'), failsWith('invalid_object'))
      })
    }
  })

  describe('honest DAGs of many links', () => {
    test('a gigabyte of zeros is one leaf, linked 4,096 times', async () => {
      for (const width of [174, 1024]) {
        const cid = await add(await zeros(width, 4096, 256 * 1024))
        const { size, files } = await storage().stat(cid, bounded())
        assert.deepEqual([size, files], [2 ** 30, 1])
        assert.equal((await storage().resolve(cid, bounded())).size, 2 ** 30)
        const end = { offset: 2 ** 30 - 300_000, ...bounded() }
        assert.equal((await collect(storage().cat(cid, end))).length, 300_000)
        if (width === 174) continue
        let length = 0
        for await (const chunk of storage().cat(cid, bounded())) length += chunk.length
        assert.equal(length, 2 ** 30)
      }
    })

    test('a directory of 10,000 files without shards is listed, measured and read', async () => {
      const leaves = await Promise.all(Array.from({ length: 100 }, (_, i) => block(Buffer.from(`file ${i}`))))
      const Links = Array.from({ length: 10_000 }, (_, i) => {
        const Hash = (leaves[i % leaves.length] as (typeof leaves)[0]).cid
        return { Name: `${String(i).padStart(5, '0')}.txt`, Hash, Tsize: 7 }
      })
      const Data = new UnixFS({ type: 'directory' }).marshal()
      const root = await block(dagPb.encode({ Data, Links }), dagPb.code)
      const cid = await add({ root: root.cid, blocks: [root, ...leaves] })
      assert.equal((await namesIn(cid)).length, 10_000)
      assert.equal((await storage().stat(cid, bounded())).files, 10_000)
      assert.equal(`${await collect(storage().cat(cid, { path: '09942.txt', ...bounded() }))}`, 'file 42')
    })
  })
}

/** A file of `count` equal leaves with `width` links per node, as an importer builds it from zeros. */
async function zeros(width: number, count: number, bytes: number): Promise<MadeDag> {
  const leaf = await block(new Uint8Array(bytes))
  const blocks = new Map([[`${leaf.cid}`, leaf]])
  let level = Array(count).fill({ cid: leaf.cid, size: BigInt(bytes) }) as { cid: CID; size: bigint }[]
  while (level.length > 1) {
    const above: typeof level = []
    for (let i = 0; i < level.length; i += width) {
      const parts = level.slice(i, i + width)
      const blockSizes = parts.map(({ size }) => size)
      const Links = parts.map(({ cid, size }) => ({ Name: '', Hash: cid, Tsize: Number(size) }))
      const Data = new UnixFS({ type: 'file', blockSizes }).marshal()
      const node = await block(dagPb.encode({ Data, Links }), dagPb.code)
      blocks.set(`${node.cid}`, node)
      above.push({ cid: node.cid, size: blockSizes.reduce((sum, size) => sum + size) })
    }
    level = above
  }
  return { root: (level[0] as { cid: CID }).cid, blocks: [...blocks.values()] }
}
