import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import { CID } from 'multiformats/cid'
import { create as createDigest } from 'multiformats/hashes/digest'
import { sha256 } from 'multiformats/hashes/sha2'
import type { Storage } from '../port.ts'
import { InnerCids } from './inner-cids.ts'

test('the number of remembered DAGs without inner CIDs is limited', async () => {
  const bytes = dagPb.encode({ Data: Uint8Array.of(8, 2), Links: [] })
  let reads = 0
  const block = async () => {
    reads++
    return bytes
  }
  const inner = new InnerCids({ block } as unknown as Storage, 900)
  // More than are remembered, each of which takes as much as a few CIDs.
  const many = 150
  const cidOf = (n: number) => {
    const digest = Buffer.alloc(32)
    digest.writeUInt32BE(n)
    return CID.createV1(dagPb.code, createDigest(sha256.code, digest))
  }
  const look = (n: number) => inner.has(cidOf(n), cidOf(many))
  for (let n = 0; n < many; n++) assert.equal(await look(n), false)
  await look(many - 1)
  assert.equal(reads, many)
  await look(0)
  assert.equal(reads, many + 1)
})
