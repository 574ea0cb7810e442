import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { importFile } from 'ipfs-unixfs-importer'
import { matches } from '../dag/codecs.ts'
import { importerStore, PROFILE } from '../dag/unixfs-write.ts'
import type { PutBlock } from '../port.ts'
import { Leaves } from './leaves.ts'

const MIB = 1_048_576

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < bytes.length; i += size) yield bytes.subarray(i, i + size)
}

for (const [size, chunk] of [
  [0, 1],
  [1, 1],
  [MIB - 1, 65_536],
  [MIB, 65_536],
  [MIB + 1, 65_521],
  [5 * MIB, 3 * MIB],
  [12 * MIB + 7, 65_537],
] as const) {
  test(`a file of ${size} bytes that comes in chunks of ${chunk} has the CID that the importer gives it`, async () => {
    const content = randomBytes(size)
    const { chunker, bufferImporter } = new Leaves()
    const options = { profile: PROFILE } as const
    const store = { put: async <T>(cid: T) => cid }
    const [made, expected] = await Promise.all([
      importFile({ content: inChunks(content, chunk) }, store, { ...options, chunker, bufferImporter }),
      importFile({ content }, store, options),
    ])
    assert.deepEqual([`${made.cid}`, made.size], [`${expected.cid}`, expected.size])
  })
}

test('the memory of a leaf is used again only once it is written', async () => {
  const leaves = new Leaves()
  const memory = new Set<ArrayBufferLike>()
  let damaged = 0
  const writes: Promise<void>[] = []
  const write: PutBlock = async ({ cid, bytes }) => {
    memory.add(bytes.buffer)
    for (let i = 0; i < 10; i++) await turn()
    if (!(await matches(cid, bytes))) damaged++
    leaves.giveBack(bytes)
  }
  const put: PutBlock = async (block) => {
    writes.push(write(block))
    if (writes.length % 8 === 0) await Promise.all(writes)
  }
  const { chunker, bufferImporter } = leaves
  const content = inChunks(randomBytes(64 * MIB), 65_536)
  await importFile({ content }, importerStore(put), { profile: PROFILE, chunker, bufferImporter })
  await Promise.all(writes)
  assert.equal(damaged, 0)
  assert.ok(memory.size < 40, `${memory.size} buffers for 64 leaves`)
})
