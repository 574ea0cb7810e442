import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as dagCbor from '@ipld/dag-cbor'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { CID } from 'multiformats/cid'
import type { Storage } from '../../../../src/storage/port.ts'
import { file, texts } from '../content.ts'
import { block, carOf, inPieces } from './blocks.ts'
import { type Cases, cidOf, failsWith, MIB } from './context.ts'

/** Paths, directories and single blocks. */
export function pathCases(cases: Cases): void {
  const { signal } = new AbortController()
  const resolve = (cid: CID, path?: string) => cases.storage().resolve(cid, { path, signal })
  const names = async (cid: CID) => {
    const entries: string[] = []
    for await (const { name } of cases.storage().ls(cid, { signal })) entries.push(name)
    return entries
  }

  describe('resolve', () => {
    test('resolve finds nested paths, with unicode and spaces', async () => {
      const path = 'docs/ünï cødé/日本 100%.txt'
      const { cid } = await cases
        .storage()
        .add(texts({ [path]: 'found', 'a?b#c.txt': '1', 'a+b.txt': '22' }), { signal })
      assert.deepEqual(await resolve(cid, path), { cid: await cidOf('found'), type: 'file', size: 5 })
      assert.equal((await resolve(cid, 'docs/ünï cødé')).type, 'directory')
      assert.equal((await resolve(cid, 'docs/')).size, null)
      assert.equal((await resolve(cid, 'a?b#c.txt')).size, 1)
      assert.equal((await resolve(cid, 'a+b.txt')).size, 2)
      assert.deepEqual(await resolve(cid), { cid, type: 'directory', size: null })
    })

    test('resolve finds files of one block and of many blocks', async () => {
      const large = await cases.storage().add(file('resolved', 3 * MIB), { signal })
      assert.deepEqual(await resolve(large.cid), { cid: large.cid, type: 'file', size: 3 * MIB })
      const empty = await cases.storage().add(texts({ empty: '' }), { signal })
      assert.deepEqual(await resolve(empty.cid), { cid: empty.cid, type: 'file', size: 0 })
    })

    test('resolve rejects missing paths', async () => {
      const { cid } = await cases.storage().add(texts({ 'a/b.txt': 'b' }), { signal })
      for (const path of ['c', 'a/c', 'a/b.txt/c', 'a/b.txt/c/d', '..', 'a/../a/b.txt']) {
        await assert.rejects(resolve(cid, path), failsWith('not_found'), path)
      }
      await assert.rejects(resolve(await cidOf('resolved nowhere')), failsWith('not_found'))
      await assert.rejects(resolve(await cidOf('resolved nowhere'), 'a'), failsWith('not_found'))
    })

    test('resolve rejects nodes that are neither files nor directories', async () => {
      const link = await importNode(
        cases.storage(),
        new UnixFS({ type: 'symlink', data: Buffer.from('a/b') }),
        [],
      )
      assert.equal((await resolve(link)).type, 'other')
      const object = await block(dagCbor.encode({ name: 'object' }), dagCbor.code)
      await cases.storage().importCar(inPieces(carOf(object.cid, [object]), MIB), { signal })
      assert.deepEqual(await resolve(object.cid), { cid: object.cid, type: 'other', size: null })
    })
  })

  describe('ls', () => {
    test('ls lists a directory', async () => {
      const { cid } = await cases
        .storage()
        .add(texts({ 'b.txt': '12', 'ä 1.txt': '3', 'a/x': '1' }), { signal })
      const entries: unknown[] = []
      for await (const entry of cases.storage().ls(cid, { signal }))
        entries.push({ ...entry, cid: `${entry.cid}` })
      const inner = await resolve(cid, 'a')
      assert.deepEqual(entries, [
        { name: 'a', cid: `${inner.cid}`, size: 50 },
        { name: 'b.txt', cid: `${await cidOf('12')}`, size: 2 },
        { name: 'ä 1.txt', cid: `${await cidOf('3')}`, size: 1 },
      ])
      const empty = await importNode(cases.storage(), new UnixFS({ type: 'directory' }), [])
      assert.deepEqual(await names(empty), [])
    })

    test('ls lists a sharded directory and paths in it', async () => {
      const long = 'a file with a long name, '.repeat(9)
      const all = Array.from({ length: 1200 }, (_, i) => `${long}${i}.txt`)
      const { cid } = await cases
        .storage()
        .add(texts(Object.fromEntries(all.map((name) => [`d/${name}`, name]))), {
          signal,
        })
      const directory = (await resolve(cid, 'd')).cid
      const node = UnixFS.unmarshal(
        dagPb.decode(await cases.storage().block(directory, { signal })).Data ?? new Uint8Array(),
      )
      assert.equal(node.type, 'hamt-sharded-directory')
      assert.deepEqual((await names(directory)).sort(), all.toSorted())
      assert.equal(`${(await resolve(cid, `d/${all[432]}`)).cid}`, `${await cidOf(all[432] ?? '')}`)
      await assert.rejects(resolve(cid, 'd/not there'), failsWith('not_found'))
    })

    test('ls rejects non-directories and missing CIDs', async () => {
      const { cid } = await cases.storage().add(texts({ 'a.txt': 'no directory' }), { signal })
      await assert.rejects(names(cid), failsWith('invalid_object'))
      const { multihash } = await cidOf('listed nowhere')
      await assert.rejects(names(CID.createV1(dagPb.code, multihash)), failsWith('not_found'))
    })

    test('ls of hostile shards ends', async () => {
      const shard = () =>
        new UnixFS({ type: 'hamt-sharded-directory', fanout: 256n, hashType: 0x22n, data: Buffer.of(3) })
      const leaf = await block(Buffer.from('x'))
      let links: [string, CID][] = [['00x', leaf.cid]]
      const blocks = [leaf]
      let root = leaf
      for (let level = 0; level < 60; level++) {
        root = await unixFsNode(shard(), links)
        blocks.push(root)
        links = ['00', '01'].map((name) => [name, root.cid])
      }
      await cases.storage().importCar(inPieces(carOf(root.cid, blocks), MIB), { signal })
      assert.deepEqual(await names(root.cid), ['x'])
      await assert.rejects(resolve(root.cid, 'y'), failsWith('not_found'))
    })
  })

  describe('block', () => {
    test('block returns the bytes of a CID', async () => {
      const { cid } = await cases.storage().add(texts({ 'a.txt': 'one block' }), { signal })
      assert.equal(`${Buffer.from(await cases.storage().block(cid, { signal }))}`, 'one block')
      await assert.rejects(cases.storage().block(await cidOf('no block'), { signal }), failsWith('not_found'))
    })
  })
}

function unixFsNode(unixfs: UnixFS, links: [name: string, cid: CID][]) {
  const Links = links.map(([Name, Hash]) => ({ Name, Hash, Tsize: 1 }))
  return block(dagPb.encode(dagPb.prepare({ Data: unixfs.marshal(), Links })), dagPb.code)
}

async function importNode(storage: Storage, unixfs: UnixFS, links: [string, CID][]): Promise<CID> {
  const root = await unixFsNode(unixfs, links)
  const { cid } = await storage.importCar(inPieces(carOf(root.cid, [root]), MIB), {
    signal: AbortSignal.timeout(60_000),
  })
  return cid
}
