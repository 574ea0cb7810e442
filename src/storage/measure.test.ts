import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import { describeDag } from './measure.ts'

const LEAF = CID.createV1(raw.code, await sha256.digest(new Uint8Array()))

/** Measures directories in one another. */
async function measure(levels: number, filesInEach: number) {
  const blocks = new Map<string, Uint8Array>()
  const file = { Name: '', Hash: LEAF, Tsize: 0 }
  let root: CID = LEAF
  for (let level = 0; level < levels; level++) {
    const Links = [...new Array(filesInEach - 1).fill(file), { ...file, Hash: root }]
    const bytes = dagPb.encode({ Data: new UnixFS({ type: 'directory' }).marshal(), Links })
    root = CID.createV1(dagPb.code, await sha256.digest(bytes))
    blocks.set(`${root}`, bytes)
  }
  const local = {
    read: async (cid: CID) => blocks.get(`${cid}`) ?? assert.fail(),
    sizes: async (leaves: CID[]) => leaves.map(() => 1),
    totalSize: async () => assert.fail(),
    sample: async () => assert.fail(),
  }
  return describeDag(root, local, new AbortController().signal)
}

test('directories are measured down to 256 levels', async () => {
  assert.equal((await measure(256, 2)).files, 257)
  await assert.rejects(measure(257, 2), { code: 'invalid_object' })
})

test('the nodes on the way down have 200,000 links at most: they are all in memory', async () => {
  assert.equal((await measure(4, 50_000)).files, 4 * 49_999 + 1)
  await assert.rejects(measure(5, 50_000), { code: 'invalid_object' })
})
