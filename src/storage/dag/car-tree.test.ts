import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { identity } from 'multiformats/hashes/identity'
import { sha256 } from 'multiformats/hashes/sha2'
import type { Block } from '../port.ts'
import { carHeader, carSection } from './car.ts'
import { type CarTree, carEntry, listCarFolder, NoCarError, readCarTree } from './car-tree.ts'
import { type Entry, writeDirectory, writeFile } from './unixfs-write.ts'

const MIB = 1_048_576
const ALL = { offset: 0, limit: 1000 }

async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536)
}
const carOf = (root: CID, blocks: Block[]) =>
  Buffer.concat([carHeader(root), ...blocks.flatMap((block) => carSection(block))])
const read = (bytes: Uint8Array, limit = 8 * MIB) =>
  readCarTree(inPieces(bytes), { total: bytes.length, limit })
const list = (tree: CarTree, folder: CID | string, page = ALL) => listCarFolder(tree, `${folder}`, page)
const namesIn = (tree: CarTree, folder: CID) => list(tree, folder).entries.map(({ name }) => name)

/** A folder with a file of several blocks, a small file, and a subfolder. */
async function makeFolder() {
  const blocks: Block[] = []
  const put = async (block: Block) => void blocks.push(block)
  const add = (bytes: Uint8Array) => writeFile(inPieces(bytes), put, 1)
  const inner = await writeDirectory(new Map([['deep.txt', await add(Buffer.from('deep'))]]), put)
  const entries = new Map<string, Entry>([
    ['<b>large</b>.bin', await add(randomBytes(3 * MIB))],
    ['inner', inner],
    ['small.txt', await add(Buffer.from('small'))],
  ])
  const { cid } = await writeDirectory(entries, put)
  return { cid, inner: inner.cid, blocks }
}
async function block(code: number, bytes: Uint8Array): Promise<Block> {
  return { cid: CID.createV1(code, await sha256.digest(bytes)), bytes }
}
const directory = (links: dagPb.PBLink[], unixfs = new UnixFS({ type: 'directory' })) =>
  block(dagPb.code, dagPb.encode({ Data: unixfs.marshal(), Links: links }))

describe('the tree of a CAR', () => {
  it('the tree of a CAR has names, sizes and CIDs, regardless of the block order', async () => {
    const { cid, inner, blocks } = await makeFolder()
    for (const ordered of [blocks, blocks.toReversed()]) {
      const tree = await read(carOf(cid, ordered))
      assert.deepEqual([tree.end, tree.refused, tree.roots.map(String)], ['whole', 0, [`${cid}`]])
      const { entries, hasMore, isIncomplete } = list(tree, cid)
      assert.deepEqual([hasMore, isIncomplete], [false, false])
      assert.deepEqual(
        entries.map(({ name, type, size }) => [name, type, type === 'directory' || size]),
        [
          ['<b>large</b>.bin', 'file', 3 * MIB],
          ['inner', 'directory', true],
          ['small.txt', 'file', 5],
        ],
      )
      assert.equal(entries[1]?.cid, `${inner}`)
      assert.deepEqual(namesIn(tree, inner), ['deep.txt'])
      assert.deepEqual(carEntry(tree, cid, '', null).type, 'directory')
    }
  })
  it('the tree of a CAR is read up to a limit, and the rest is unknown', async () => {
    const { cid, blocks } = await makeFolder()
    const [root, ...rest] = blocks.toReversed()
    const bytes = carOf(cid, [root as Block, ...rest])
    const tree = await read(bytes, 65_536)
    assert.equal(tree.end, 'cut')
    assert.ok(tree.bytes <= 65_536)
    const types = list(tree, cid).entries.map(({ name, type }) => [name, type])
    assert.deepEqual(types[1], ['inner', 'unknown'])
  })
  it('a CAR that is truncated or ends in garbage shows the part before', async () => {
    const { cid, blocks } = await makeFolder()
    const bytes = carOf(cid, blocks.toReversed())
    for (const damaged of [
      bytes.subarray(0, -3),
      Buffer.concat([bytes.subarray(0, -3), randomBytes(20)]),
      Buffer.concat([bytes, Buffer.alloc(20)]),
      Buffer.concat([bytes, Buffer.from('ffffffffffffff7f', 'hex')]),
    ]) {
      const tree = await read(damaged)
      assert.ok(tree.end === 'broken' || tree.refused > 0, tree.end)
      assert.equal(list(tree, cid).entries.length, 3)
    }
  })
  it('a file that is not a CAR is rejected', async () => {
    const backwards = Buffer.alloc(51)
    Buffer.from('0aa16776657273696f6e02', 'hex').copy(backwards)
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from('no CAR'),
      randomBytes(1000),
      Buffer.alloc(99),
      backwards,
    ])
      await assert.rejects(read(bytes), NoCarError)
  })
  it('a broken connection does not count as a damaged CAR', async () => {
    const { cid, blocks } = await makeFolder()
    const bytes = carOf(cid, blocks)
    for (const after of [0, bytes.length - 3]) {
      const broken = async function* () {
        yield bytes.subarray(0, after)
        throw new Error('gone')
      }
      await assert.rejects(readCarTree(broken(), { total: bytes.length, limit: 8 * MIB }), /^Error: gone$/)
    }
  })
  it('blocks that do not match their CIDs are left out', async () => {
    const { cid, blocks } = await makeFolder()
    const forged = await directory([])
    const made = blocks.map((one) => (one.cid.equals(cid) ? { cid, bytes: forged.bytes } : one))
    const tree = await read(carOf(cid, made))
    assert.equal(tree.refused, 1)
    assert.equal(carEntry(tree, cid, '', null).type, 'unknown')
    assert.deepEqual(list(tree, cid), { entries: [], hasMore: false, isIncomplete: true })
    // 0xb220 is blake2b-256, which browsers lack; a digest of one byte identifies nothing.
    const { digest } = await sha256.digest(forged.bytes)
    for (const head of ['01701220', '0170a0e40220', '01701201']) {
      const start = Buffer.from(head, 'hex')
      const name = CID.decode(Buffer.concat([start, digest.subarray(0, start.at(-1))]))
      const known = await read(carOf(cid, [{ cid: name, bytes: forged.bytes }]))
      assert.equal(known.refused, head === '01701220' ? 0 : 1, head)
    }
  })
  it('a sharded folder is listed in pages, each name once, and reports missing shards', async () => {
    const blocks: Block[] = []
    const put = async (block: Block) => void blocks.push(block)
    const leaf = await writeFile(inPieces(Buffer.from('x')), put, 1)
    const names = Array.from({ length: 3000 }, (_, i) => `${i}-${'n'.repeat(100)}`)
    const { cid } = await writeDirectory(new Map(names.map((name) => [name, leaf])), put)
    const tree = await read(carOf(cid, blocks))
    const found: string[] = []
    for (let offset = 0, hasMore = true; hasMore; offset += 1000) {
      const page = list(tree, cid, { offset, limit: 1000 })
      found.push(...page.entries.map(({ name }) => name))
      hasMore = page.hasMore
    }
    assert.deepEqual(found.toSorted(), names.toSorted())
    const shard = blocks.find((one) => one.cid.code === dagPb.code && !one.cid.equals(cid))
    const without = await read(
      carOf(
        cid,
        blocks.filter((one) => one !== shard),
      ),
    )
    const some = list(without, cid, { offset: 0, limit: 5000 })
    assert.ok(some.isIncomplete && some.entries.length > 0 && some.entries.length < 3000)
  })
  it('shards that link to each other, or have a million links, are listed in finite time', async () => {
    const shard = () => new UnixFS({ type: 'hamt-sharded-directory', fanout: 256n })
    let below = await directory([], shard())
    const blocks = [below]
    for (let level = 0; level < 40; level++) {
      const Links = Array.from({ length: 256 }, (_, i) => ({
        Name: i.toString(16).toUpperCase().padStart(2, '0'),
        Hash: below.cid,
        Tsize: 1,
      }))
      below = await directory(Links, shard())
      blocks.push(below)
    }
    assert.deepEqual(list(await read(carOf(below.cid, blocks)), below.cid).entries, [])

    const Hash = CID.createV1(raw.code, identity.digest(Buffer.from('inline')))
    const links = Array.from({ length: 60_000 }, (_, i) => ({
      Name: `${i}`.padStart(6, '0'),
      Hash,
      Tsize: 2 ** 50,
    }))
    const wide = await directory(links)
    const wider = await directory(links.map(({ Name }) => ({ Name, Hash: wide.cid, Tsize: 2 ** 50 })))
    const tree = await read(carOf(wider.cid, [wider, wide]), 16 * MIB)
    const last = list(tree, wider.cid, { offset: 59_900, limit: 200 })
    assert.deepEqual([last.entries.length, last.entries[0]?.type, last.hasMore], [100, 'directory', false])
    assert.deepEqual(list(tree, wide.cid, { offset: 0, limit: 1 }).entries[0]?.size, 6)
  })
  it('a CAR with more blocks than a page can hold is cut', async () => {
    const one = await directory([])
    const section = Buffer.concat(carSection(one))
    const many = Buffer.concat([carHeader(one.cid), ...Array<Buffer>(50_001).fill(section)])
    const tree = await read(many, 16 * MIB)
    assert.deepEqual([tree.end, tree.blocks.size, tree.bytes < many.length], ['cut', 1, true])
  })
})
