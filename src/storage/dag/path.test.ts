import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as dagCbor from '@ipld/dag-cbor'
import { CID } from 'multiformats/cid'
import { sha256 } from 'multiformats/hashes/sha2'
import { follow } from './path.ts'

test('a long path through cached blocks gives others their turns', async () => {
  const blocks = new Map<string, Uint8Array>()
  const length = 40
  let root: CID | undefined
  for (let i = 0; i <= length; i++) {
    const bytes = dagCbor.encode({ next: root ?? i, pad: Array(30_000).fill(i) })
    root = CID.createV1(dagCbor.code, await sha256.digest(bytes))
    blocks.set(`${root}`, bytes)
  }
  let turns = 0
  const others = setInterval(() => turns++, 1)
  const read = async (cid: CID) => blocks.get(`${cid}`) as Uint8Array
  const path = Array<string>(length).fill('next')
  const cids = await follow(root as CID, path, read, new AbortController().signal)
  clearInterval(others)
  assert.equal(cids.length, length + 1)
  assert.ok(turns > length / 4, `${turns} turns of others`)
})
