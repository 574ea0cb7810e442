import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import * as dagCbor from '@ipld/dag-cbor'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { CID } from 'multiformats/cid'
import { identity } from 'multiformats/hashes/identity'
import { listPaths, readFolder, walkFolder } from '../../../src/storage/dag/folder.ts'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import { type Block, type Storage, StorageError } from '../../../src/storage/port.ts'
import { block } from './cases/blocks.ts'
import { failsWith, MIB } from './cases/context.ts'
import { collect, file, texts } from './content.ts'
import { temporaryFolder } from './node-process.ts'
import { snapshot } from './trees.ts'

describe('unpacked folders', () => {
  const { signal } = new AbortController()
  const limits = { maxFiles: 10, maxBytes: 100, signal }
  let storage: Storage
  let remove: () => Promise<void>

  before(async () => {
    const folder = await temporaryFolder()
    remove = folder.remove
    storage = createEmbeddedStorage({ dir: folder.dir, network: 'private', offline: true })
    await storage.start()
  })
  after(async () => {
    await storage.stop()
    await remove()
  })

  /** Keeps blocks unchanged; the last one is the root. */
  const keep = async (...blocks: Block[]): Promise<CID> => {
    const root = blocks.at(-1)
    assert.ok(root)
    await storage.build(
      async (put) => {
        for (const one of blocks) await put(one)
        return root.cid
      },
      { base: null, signal },
    )
    return root.cid
  }
  const nodeOf = (unixfs: UnixFS, links: [string, Block][] = []): Promise<Block> => {
    const Links = links.map(([Name, { cid, bytes }]) => ({ Name, Hash: cid, Tsize: bytes.length }))
    return block(dagPb.encode({ Data: unixfs.marshal(), Links }), dagPb.code)
  }
  const directory = (...links: [string, Block][]) => nodeOf(new UnixFS({ type: 'directory' }), links)
  const paths = async (cid: CID): Promise<string[]> => {
    const all: string[] = []
    for await (const { path, content } of walkFolder(storage, cid, { signal })) {
      await collect(content())
      all.push(path)
    }
    return all
  }

  test('unpacked folders follow the order of their DAG, and paths are available without contents', async () => {
    const { cid } = await storage.add(texts({ 'a/x': '1', 'a.b': '2', 'a-b/y': '3', a0: '4', 'Z/z': '5' }), {
      signal,
    })
    const all = ['Z/z', 'a/x', 'a-b/y', 'a.b', 'a0']
    assert.deepEqual(await paths(cid), all)
    assert.deepEqual(await listPaths(storage, cid, { max: 3, signal }), all.slice(0, 3))
  })

  test('unpacked folders support files of any size, empty files, and links unchanged', async () => {
    const small = await storage.add(texts({ 'empty.txt': '', 'b/small.txt': 'small' }), { signal })
    const read = await readFolder(storage, small.cid, limits)
    assert.deepEqual(
      read.map(({ path, bytes }) => [path, `${bytes}`]),
      [
        ['b/small.txt', 'small'],
        ['empty.txt', ''],
      ],
    )
    const { cid } = await storage.add(file('large', 3 * MIB + 7, 'a/large'), { signal })
    for await (const { path, size, content } of walkFolder(storage, cid, { signal })) {
      assert.deepEqual([path, size], ['a/large', 3 * MIB + 7])
      assert.equal((await collect(content())).length, size)
    }
    const linked = await snapshot(storage, new Map([['l', { link: '../../etc/passwd' }]]))
    for await (const { path, type, size, target } of walkFolder(storage, linked.cid, { signal })) {
      assert.deepEqual([path, type, size, target], ['l', 'symlink', 16, '../../etc/passwd'])
    }
    await assert.rejects(readFolder(storage, linked.cid, limits), failsWith('invalid_object'))
  })

  test('unpacked folders with duplicate or impossible file names are rejected', async () => {
    const leaf = await block(Buffer.from('x'))
    const odd = ['', '.', '..', '.git', '.GIT', 'a/b', '/etc', 'a\0b', 'x'.repeat(256)]
    for (const name of odd) {
      const cid = await keep(leaf, await directory([name, leaf]))
      await assert.rejects(paths(cid), failsWith('invalid_object'), name)
      const inside = await directory([name, leaf])
      await assert.rejects(paths(await keep(leaf, inside, await directory(['d', inside]))), name)
    }
    const empty = await directory()
    for (const second of [leaf, empty]) {
      const twice = await keep(leaf, empty, await directory(['a', leaf], ['a', second]))
      await assert.rejects(paths(twice), failsWith('invalid_object'))
    }
  })

  test('unpacked folders that turn out to be something else are rejected', async () => {
    const object = await block(dagCbor.encode({ a: 1 }), dagCbor.code)
    await assert.rejects(paths(await keep(object)), failsWith('invalid_object'))
    await assert.rejects(
      paths(await keep(object, await directory(['a', object]))),
      failsWith('invalid_object'),
    )
    const { cid } = await storage.add(texts({ 'a.txt': 'a file' }), { signal })
    await assert.rejects(paths(cid), failsWith('invalid_object'))
    const long = await nodeOf(new UnixFS({ type: 'symlink', data: new Uint8Array(4096) }))
    await assert.rejects(paths(await keep(long, await directory(['l', long]))), failsWith('invalid_object'))
  })

  test('unpacked folders with wrong file lengths are rejected before the end of the file', async () => {
    const leaf = await block(Buffer.from('ten bytes!'))
    for (const said of [11n, 2n ** 60n]) {
      const lying = await nodeOf(new UnixFS({ type: 'file', blockSizes: [said] }), [['', leaf]])
      const cid = await keep(leaf, lying, await directory(['f', lying]))
      await assert.rejects(paths(cid), failsWith('invalid_object'), `${said}`)
    }
  })

  test('unpacked folders support files with identity CIDs, as a whole or in part', async () => {
    const inline = ({ cid, bytes }: Block): Block => ({
      cid: CID.createV1(cid.code, identity.digest(bytes)),
      bytes,
    })
    const leaf = await block(Buffer.from('a leaf, '))
    const tail = inline(await block(Buffer.from('a tail')))
    const parts = new UnixFS({ type: 'file', blockSizes: [8n, 6n] })
    const large = await nodeOf(parts, [
      ['', leaf],
      ['', tail],
    ])
    const small = inline(await nodeOf(new UnixFS({ type: 'file', data: Buffer.from('a node') })))
    const folder = await directory(['large', large], ['raw', tail], ['small', small])
    const read = await readFolder(storage, await keep(leaf, large, folder), limits)
    assert.deepEqual(
      read.map(({ path, bytes }) => [path, `${bytes}`]),
      [
        ['large', 'a leaf, a tail'],
        ['raw', 'a tail'],
        ['small', 'a node'],
      ],
    )
  })

  test('unpacked folders are limited in depth, files and bytes', async () => {
    const leaf = await block(Buffer.from('x'))
    let deep = await directory(['f', leaf])
    const blocks = [leaf, deep]
    for (let depth = 2; depth <= 201; depth++) {
      deep = await directory(['d', deep])
      blocks.push(deep)
    }
    assert.equal((await paths(await keep(...blocks.slice(0, -1)))).length, 1)
    await assert.rejects(paths(await keep(...blocks)), failsWith('invalid_object'))

    const many = await storage.add(
      texts(Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`${i}`, '']))),
      {
        signal,
      },
    )
    await assert.rejects(readFolder(storage, many.cid, limits), failsWith('too_large'))
    await readFolder(storage, many.cid, { ...limits, maxFiles: 11 })
    const large = await storage.add(texts({ a: 'x'.repeat(60), b: 'x'.repeat(41) }), { signal })
    await assert.rejects(readFolder(storage, large.cid, limits), failsWith('too_large'))
    await readFolder(storage, large.cid, { ...limits, maxBytes: 101 })
  })

  test('unpacked folders with more paths than can be walked end in time', async () => {
    let node = await directory(['f', await block(Buffer.from('x'))])
    const blocks = [await block(Buffer.from('x')), node]
    for (let level = 0; level < 60; level++) {
      node = await directory(['l', node], ['r', node])
      blocks.push(node)
    }
    const cid = await keep(...blocks)
    await assert.rejects(readFolder(storage, cid, limits), failsWith('too_large'))
  })

  test('unpacked folders include duplicate content and allow readers to skip files', async () => {
    const same = { a: 'same', 'b.txt': 'other', 'x/deep/y': 'same' }
    const all = Object.entries(same).flatMap(([path, text]) =>
      ['1', '2'].map((at) => [`${at}/${path}`, text]),
    )
    const { cid } = await storage.add(texts(Object.fromEntries(all)), { signal })
    const read = await readFolder(storage, cid, limits)
    assert.deepEqual(
      Object.fromEntries(read.map(({ path, bytes }) => [path, `${bytes}`])),
      Object.fromEntries(all),
    )

    async function* mixed() {
      yield* file('large', 3 * MIB, 'd/large')
      yield* texts({ 'd/z.txt': 'after it' })
    }
    const large = await storage.add(mixed(), { signal })
    const unread: string[] = []
    for await (const { path, size } of walkFolder(storage, large.cid, { signal }))
      unread.push(`${path} ${size}`)
    assert.deepEqual(unread, [`d/large ${3 * MIB}`, 'd/z.txt 8'])
  })

  test('unpacked folders are walked up to the reader’s limit of entries', async () => {
    const { cid } = await storage.add(texts({ 'd/a': '1', 'd/b': '2', c: '3' }), { signal })
    const count = async (maxEntries: number) => {
      let entries = 0
      for await (const _ of walkFolder(storage, cid, { signal, maxEntries })) entries++
      return entries
    }
    assert.equal(await count(4), 3)
    await assert.rejects(count(3), failsWith('too_large'))
  })

  test('unpacked folders are the same for any order of their stream, or if it ends early', async () => {
    const files = { 'a/x': '1', 'a/y': 'same', 'b/x': '1', 'b/z': '2', c: 'same', d: '3' }
    const { cid } = await storage.add(texts(files), { signal })
    const { cid: foreign } = await storage.add(texts({ 'e/f': 'other' }), { signal })
    const blocksOf = async (root: CID) => {
      const all: Block[] = []
      for await (const one of storage.blocks(root, { signal })) all.push(one)
      return all
    }
    const [blocks, others] = [await blocksOf(cid), await blocksOf(foreign)]
    for (const stream of [
      blocks.toReversed(),
      blocks.slice(0, 3),
      [],
      others,
      blocks.flatMap((one, i) => [one, others[i % others.length] as Block, one]),
    ]) {
      const odd: Storage = {
        ...storage,
        async *blocks() {
          yield* stream
        },
      }
      const read = await readFolder(odd, cid, limits)
      assert.deepEqual(Object.fromEntries(read.map(({ path, bytes }) => [path, `${bytes}`])), files)
    }
  })

  test('reading a folder fails if its stream ends in an error', async () => {
    const { cid } = await storage.add(texts({ 'a.txt': 'a', 'b.txt': 'b' }), { signal })
    const failing: Storage = {
      ...storage,
      async *blocks(...asked) {
        yield* storage.blocks(...asked)
        throw new StorageError('unavailable', 'the node reports it at the end')
      },
    }
    await assert.rejects(readFolder(failing, cid, limits), failsWith('unavailable'))
  })

  test('unpacked folders fail when aborted and if a block is missing', async () => {
    const { cid } = await storage.add(texts({ 'a/b': 'x', c: 'y' }), { signal })
    const walking = walkFolder(storage, cid, { signal: AbortSignal.abort() }).next()
    await assert.rejects(walking, failsWith('aborted'))
    const { cid: absent } = await block(Buffer.from('nowhere'), dagPb.code)
    await assert.rejects(paths(absent), failsWith('not_found'))
  })
})
