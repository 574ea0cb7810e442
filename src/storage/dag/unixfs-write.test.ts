import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { UnixFS } from 'ipfs-unixfs'
import './unixfs-write.ts'

const GIB = 2n ** 30n

describe('a UnixFS file', () => {
  for (const blockSizes of [
    [2n * GIB - 1n],
    [2n * GIB],
    [GIB, GIB, 500n],
    [3_000_000_000n],
    [4n * GIB - 1n],
    [4n * GIB],
    [3n * GIB, 3n * GIB],
    [2n ** 40n, 3n * GIB],
  ]) {
    it(`a UnixFS file of ${blockSizes.join(' + ')} bytes is read back as it was written`, () => {
      const file = new UnixFS({ type: 'file', blockSizes })
      const read = UnixFS.unmarshal(file.marshal())
      assert.deepEqual([read.type, read.blockSizes, read.fileSize()], ['file', blockSizes, file.fileSize()])
    })
  }
  it('a UnixFS file is written in the same way as by Kubo', () => {
    // The node has its type, its size, then the sizes of its parts. 2,500 MiB of zeros have the CID that `ipfs add`
    // gives them.
    const file = new UnixFS({ type: 'file', blockSizes: [2_147_483_648n, 1n] })
    assert.equal(Buffer.from(file.marshal()).toString('hex'), '08021881808080082080808080082001')
  })
  it('a UnixFS file keeps the bytes inside its own node', () => {
    const file = new UnixFS({ type: 'file', data: Buffer.from('ab'), blockSizes: [3n * GIB] })
    const read = UnixFS.unmarshal(file.marshal())
    assert.deepEqual([Buffer.from(read.data ?? []).toString(), read.fileSize()], ['ab', 3n * GIB + 2n])
  })
})
