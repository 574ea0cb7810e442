import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { CID } from 'multiformats/cid'
import { useFolder } from '../../test/support/folder.ts'
import { cachingBlocks } from './block-cache.ts'
import { createEmbeddedStorage } from './embedded.ts'

const signal = new AbortController().signal
const KiB = 1024

/**
 * A storage with files of these sizes, both plain and with `cacheBytes` of its blocks in memory; `lose` removes its
 * blocks.
 */
async function open(t: TestContext, sizes: number[], cacheBytes?: number) {
  const dir = await useFolder('berth-block-cache-', t)
  const storage = createEmbeddedStorage({ dir, network: 'private', offline: true })
  await storage.start()
  t.after(() => storage.stop())
  const cids: CID[] = []
  for (const [index, size] of sizes.entries()) {
    const content = (async function* () {
      yield Buffer.alloc(size, index + 1)
    })()
    const entries = (async function* () {
      yield { path: 'file', content }
    })()
    cids.push((await storage.add(entries, { cidVersion: 1, signal })).cid)
  }
  const cached = cachingBlocks(storage, cacheBytes)
  return {
    cids,
    read: (index: number) => cached.block(cids[index] as CID, { signal }),
    lose: () => rm(join(dir, 'blocks'), { recursive: true }),
  }
}

test('a small block is cached once it was read', async (t) => {
  const { read, lose } = await open(t, [KiB])
  const bytes = await read(0)
  await lose()
  assert.deepEqual(Buffer.from(await read(0)), Buffer.from(bytes))
})

test('a large block is read each time', async (t) => {
  const { read, lose } = await open(t, [200 * KiB])
  assert.equal((await read(0)).length, 200 * KiB)
  await lose()
  await assert.rejects(read(0), { code: 'not_found' })
})

test('cached blocks are the most recently requested ones, up to the cache size', async (t) => {
  const { read, lose } = await open(t, [KiB, KiB, KiB], 3 * KiB)
  for (const index of [0, 1, 0, 2]) await read(index)
  await lose()
  for (const index of [0, 2]) assert.equal((await read(index))[0], index + 1)
  await assert.rejects(read(1), { code: 'not_found' })
})

test('a missing block is looked up each time', async (t) => {
  const { read, lose } = await open(t, [KiB])
  await lose()
  for (let i = 0; i < 2; i++) await assert.rejects(read(0), { code: 'not_found' })
})
