import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as dagCbor from '@ipld/dag-cbor'
import * as dagJson from '@ipld/dag-json'
import * as dagPb from '@ipld/dag-pb'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import { distinctLinks } from './links.ts'

const cidOf = async (code: number, bytes: Uint8Array) => CID.createV1(code, await sha256.digest(bytes))
const [a, b] = (await Promise.all([1, 2].map((byte) => cidOf(raw.code, Uint8Array.of(byte))))) as [CID, CID]

for (const codec of [dagCbor, dagJson]) {
  test(`links of ${codec.name} are returned once each, from small and large blocks`, async () => {
    for (const repeats of [2, 20_000]) {
      const bytes = codec.encode({ a: [b, ...Array(repeats).fill(a), b], text: 'x' })
      const { links, totalBytes } = await distinctLinks(await cidOf(codec.code, bytes), bytes)
      assert.deepEqual(links.map(String), [b, a].map(String))
      assert.equal(totalBytes, null)
    }
    const bytes = codec.encode(Array(200_000).fill([]))
    const { links, totalBytes } = await distinctLinks(await cidOf(codec.code, bytes), bytes)
    assert.deepEqual([links, totalBytes], [[], bytes.length])
  })

  test(`a large block of ${codec.name} that cannot be decoded is invalid, and the next one is read`, async () => {
    const broken = Buffer.alloc(100_000, 0xff)
    await assert.rejects(distinctLinks(await cidOf(codec.code, broken), broken), { code: 'invalid_object' })
    const good = codec.encode([a, 'x'.repeat(100_000)])
    const { links } = await distinctLinks(await cidOf(codec.code, good), good)
    assert.deepEqual(links.map(String), [`${a}`])
  })
}

test('links of dag-pb are returned once each, with the sizes of all of them', async () => {
  const Links = Array.from({ length: 20_000 }, (_, i) => ({ Name: '', Hash: i % 3 ? a : b, Tsize: 2 }))
  const bytes = dagPb.encode({ Links })
  const { links, totalBytes } = await distinctLinks(await cidOf(dagPb.code, bytes), bytes)
  assert.deepEqual(links.map(String), [b, a].map(String))
  assert.equal(totalBytes, bytes.length + 40_000)
})
