import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { create } from 'multiformats/hashes/digest'
import { SharedReads } from './shared-reads.ts'

const MEGABYTE = 1_048_576
const cidOf = (number: number) => CID.createV1(raw.code, create(0x12, Uint8Array.of(number)))
const ROOT = cidOf(255)

/** Reads that are counted. Block 0 is missing the first time. */
function world() {
  const reads: number[] = []
  const shared = new SharedReads(async (cid) => {
    const [number = 0] = cid.multihash.digest
    reads.push(number)
    if (number === 0 && reads.filter((other) => other === 0).length === 1) throw new Error('missing')
    return new Uint8Array(MEGABYTE)
  })
  return { shared, reads }
}

describe('shared reads', () => {
  it('two readers of a DAG read each block once, at the same time or a little later', async () => {
    const { shared, reads } = world()
    using first = shared.open(ROOT)
    using second = shared.open(ROOT)
    await Promise.all([first.read(cidOf(1)), second.read(cidOf(1))])
    for (let number = 2; number < 10; number++) await first.read(cidOf(number))
    for (let number = 2; number < 10; number++) await second.read(cidOf(number))
    assert.deepEqual(reads, [1, 2, 3, 4, 5, 6, 7, 8, 9])
  })
  it('only readers of one DAG that are close together keep blocks', async () => {
    const { shared, reads } = world()
    using first = shared.open(ROOT)
    await first.read(cidOf(1))
    using other = shared.open(cidOf(254))
    await other.read(cidOf(1))
    {
      using second = shared.open(ROOT)
      for (let number = 2; number < 20; number++) await first.read(cidOf(number))
      await second.read(cidOf(2))
      await second.read(cidOf(19))
    }
    await first.read(cidOf(19))
    assert.deepEqual(
      [1, 2, 19].map((number) => reads.filter((read) => read === number).length),
      [2, 2, 2],
    )
  })
  it('a read that fails is repeated for the next reader', async () => {
    const { shared, reads } = world()
    using first = shared.open(ROOT)
    using second = shared.open(ROOT)
    await assert.rejects(first.read(cidOf(0)), /missing/)
    assert.equal((await second.read(cidOf(0))).length, MEGABYTE)
    assert.deepEqual(reads, [0, 0])
  })
})
