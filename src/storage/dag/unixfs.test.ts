import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import { partsOfRange } from './unixfs.ts'

const cidOf = async (code: number, bytes: Uint8Array) => CID.createV1(code, await sha256.digest(bytes))
const leaves = await Promise.all([0, 1, 2, 3].map((n) => cidOf(raw.code, Buffer.from([n]))))
const names = 'abcd'

/**
 * The root of a file whose four parts a, b, c and d have 10 bytes each, and a function that reads a range of it with at
 * most two parts.
 */
async function openRoot({
  type = 'file' as 'file' | 'directory',
  data = new Uint8Array(),
  sizes = [10n, 10n, 10n, 10n],
} = {}) {
  const unixfs = new UnixFS({ type, ...(data.length > 0 && { data }) })
  for (const size of sizes) unixfs.addBlockSize(size)
  const Links = leaves.map((Hash) => ({ Name: '', Hash, Tsize: 10 }))
  const bytes = dagPb.encode({ Data: unixfs.marshal(), Links })
  const cid = await cidOf(dagPb.code, bytes)
  return (offset: number, length: number) =>
    partsOfRange({ cid, offset, length }, bytes, 2)?.map((part) => {
      const at = leaves.findIndex((leaf) => leaf.equals(part.cid))
      return `${part.cid.equals(cid) ? 'all' : names[at]} ${part.offset}+${part.length}`
    })
}

test('a short range consists of parts of what its file’s root links to', async () => {
  const read = await openRoot()
  assert.deepEqual(read(0, 10), ['a 0+10'])
  assert.deepEqual(read(13, 4), ['b 3+4'])
  assert.deepEqual(read(19, 2), ['b 9+1', 'c 0+1'])
  assert.deepEqual(read(35, 100), ['d 5+5'])
})

test('a long range consists of one part below the root and the rest of the file', async () => {
  const read = await openRoot()
  assert.deepEqual(read(0, 40), ['a 0+10', 'all 10+30'])
  assert.deepEqual(read(9, 12), ['a 9+1', 'all 10+11'])
})

test('an empty range, or one after the end, has no parts', async () => {
  const read = await openRoot()
  assert.equal(read(40, 1), undefined)
  assert.equal(read(5, 0), undefined)
})

test('a root that does not tell where its bytes are has no parts', async () => {
  assert.equal((await openRoot({ sizes: [10n] }))(0, 5), undefined)
  assert.equal((await openRoot({ data: Buffer.from('own') }))(0, 5), undefined)
  assert.equal((await openRoot({ type: 'directory', sizes: [] }))(0, 5), undefined)
  const [leaf] = leaves as [CID]
  assert.equal(partsOfRange({ cid: leaf, offset: 0, length: 1 }, Buffer.from([0]), 2), undefined)
})
