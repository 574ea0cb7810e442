import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import { describeDag } from '../../../src/storage/dag/measure.ts'

const LEAF = CID.createV1(raw.code, await sha256.digest(new Uint8Array()))

/** Nested directories: the root of each level, innermost first. */
async function nest(levels: number, filesInEach: number) {
  const blocks = new Map<string, Uint8Array>()
  const file = { Name: '', Hash: LEAF, Tsize: 0 }
  const roots: CID[] = [LEAF]
  for (let level = 0; level < levels; level++) {
    const Links = [...new Array(filesInEach - 1).fill(file), { ...file, Hash: roots.at(-1) }]
    const bytes = dagPb.encode({ Data: new UnixFS({ type: 'directory' }).marshal(), Links })
    const root = CID.createV1(dagPb.code, await sha256.digest(bytes))
    blocks.set(`${root}`, bytes)
    roots.push(root)
  }
  const local = {
    read: async (cid: CID) => blocks.get(`${cid}`) ?? assert.fail(),
    sizes: async (leaves: CID[]) => leaves.map(() => 1),
    totalSize: async () => assert.fail(),
    sample: async () => assert.fail(),
  }
  return { measure: (level: number) => describeDag(roots[level] as CID, local, new AbortController().signal) }
}

test('directories are measured down to 256 levels', async () => {
  const { measure } = await nest(257, 2)
  assert.equal((await measure(256)).files, 257)
  await assert.rejects(measure(257), { code: 'invalid_object' })
})

test('the nodes on a path have 200,000 links at most, because they are all in memory', async () => {
  const { measure } = await nest(5, 50_000)
  assert.equal((await measure(4)).files, 4 * 49_999 + 1)
  await assert.rejects(measure(5), { code: 'invalid_object' })
})

test('large metadata in the nodes of a directory counts as size', async () => {
  const blocks = new Map<string, Uint8Array>()
  const put = async (node: dagPb.PBNode) => {
    const bytes = dagPb.encode(node)
    const cid = CID.createV1(dagPb.code, await sha256.digest(bytes))
    blocks.set(`${cid}`, bytes)
    return { Hash: cid, Tsize: bytes.length }
  }
  const stat = (cid: CID) => {
    const local = {
      read: async (cid: CID) => blocks.get(`${cid}`) ?? assert.fail(),
      sizes: async (leaves: CID[]) => leaves.map(() => 0),
      totalSize: async () => assert.fail(),
      sample: async () => new Uint8Array(),
    }
    return describeDag(cid, local, new AbortController().signal)
  }
  const filled = async (letter: string) => {
    const Data = new UnixFS({ type: 'directory', data: Buffer.alloc(1_000_000, letter) }).marshal()
    return { Name: letter, ...(await put({ Data, Links: [] })) }
  }
  const Data = new UnixFS({ type: 'directory' }).marshal()
  const { Hash: root } = await put({ Data, Links: await Promise.all([...'abc'].map(filled)) })
  const { size, files, mimeType } = await stat(root)
  assert.deepEqual([files, mimeType], [0, 'directory'])
  assert.ok(size > 2_400_000 && size < 3_000_000, `${size}`)

  const long = { Name: 'x'.repeat(200), Hash: LEAF, Tsize: 0 }
  const Links = Array.from({ length: 8000 }, (_, i) => ({ ...long, Name: `${long.Name}${10_000 + i}` }))
  const { size: ofNames } = await stat((await put({ Data, Links })).Hash)
  assert.ok(ofNames > 1_300_000, `${ofNames}`)
  const { size: ofFew } = await stat((await put({ Data, Links: Links.slice(0, 500) })).Hash)
  assert.equal(ofFew, 0)
})
