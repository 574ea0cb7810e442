/**
 * The embedded node on a disk that fills up: what it rejects, what still works, and that it recovers when there is
 * room.
 */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { CID } from 'multiformats/cid'
import type { Disks } from '../../../src/lib/disk.ts'
import { DiskReserve } from '../../../src/lib/disk-reserve.ts'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import { until } from '../../support/processes.ts'
import { mountSmallDisk, NO_MOUNT } from '../../support/small-disk.ts'
import { node } from './cases/blocks.ts'
import { failsWith } from './cases/context.ts'
import { collect, file, texts } from './content.ts'
import { startProvider } from './node-process.ts'

const MIB = 2 ** 20
const { signal } = new AbortController()
const disk = await mountSmallDisk(64)
after(() => disk?.unmount())
const skip = disk ? false : NO_MOUNT
const dir = `${disk?.dir}`

async function open(name: string, reserveBytes: number) {
  const disks: Disks = { folders: { blocks: dir }, reserveBytes }
  const reserve = new DiskReserve(disks)
  const storage = createEmbeddedStorage({
    dir: `${dir}/${name}`,
    network: 'public',
    allowPrivate: true,
    gcGraceMs: 100,
    reserve,
  })
  await storage.start()
  return storage
}
const full =
  'No space left: the disk of the embedded IPFS nodes (BERTH_DATA_DIR) is down to its reserve (BERTH_DISK_RESERVE_MB)'
const refused = (error: unknown) => failsWith('no_space')(error) && (error as Error).message === full

test('an embedded node at its disk reserve rejects new content, reads, deletes, and recovers', {
  skip,
}, async (t) => {
  const storage = await open('reserve', 32 * MIB)
  const provider = await startProvider()
  t.after(async () => {
    await storage.stop()
    await provider.stop()
  })
  const kept = await storage.add(texts({ 'a.txt': 'kept' }), { signal })
  const deleted = await storage.add(file('deleted', 8 * MIB), { signal })
  const car = await collect(storage.exportCar(kept.cid, { signal }))
  const wanted = await provider.node.call('addFile', 'from elsewhere', 2 * MIB)
  const retrieve = async () => {
    return storage.pin(CID.parse(wanted), { origins: [provider.address], stallMs: 20_000, signal })
  }
  const { free } = disk ?? assert.fail()
  await disk?.fillTo(16 * MIB)
  let tried = 0
  await until('the cached disk usage is old', () =>
    storage.add(texts({ new: `${tried++}` }), { signal }).then(() => false, refused),
  )
  const before = await free()
  await assert.rejects(storage.add(file('new', MIB), { signal }), refused)
  await assert.rejects(
    storage.build(
      async (put) => {
        const block = await node([])
        await put(block)
        return block.cid
      },
      { base: null, signal },
    ),
    refused,
  )
  await assert.rejects(retrieve(), refused)
  // Stored content needs no room.
  await storage.importCar(
    (async function* () {
      yield car
    })(),
    { signal },
  )
  assert.ok(before - (await free()) < MIB)

  assert.equal(`${await collect(storage.cat(kept.cid, { signal }))}`, 'kept')
  assert.equal(await storage.unpin(deleted.cid, { signal }), true)
  await until('what was deleted is collected', async () => {
    await storage.gc({ signal })
    return (await free()) > before + 7 * MIB
  })
  await disk?.empty()
  await until('there is room again', () =>
    retrieve().then(
      () => true,
      (error) => refused(error) && false,
    ),
  )
  await storage.add(file('new', MIB), { signal })
})

test('a retrieval stops at the disk reserve and later resumes', {
  skip,
}, async (t) => {
  const storage = await open('retrieval', 8 * MIB)
  const provider = await startProvider()
  t.after(async () => {
    await storage.stop()
    await provider.stop()
  })
  const cid = CID.parse(await provider.node.call('addFile', 'larger than the room', 30 * MIB))
  const retrieve = () => storage.pin(cid, { origins: [provider.address], stallMs: 20_000, signal })
  await disk?.fillTo(24 * MIB)
  await until('the cached disk usage is old', () =>
    retrieve().then(() => assert.fail('it had no room'), refused),
  )
  assert.ok(((await disk?.free()) ?? 0) > 6 * MIB)
  await disk?.empty()
  await until('there is room again', () =>
    retrieve().then(
      () => true,
      (error) => refused(error) && false,
    ),
  )
  assert.equal((await storage.stat(cid, { signal })).size, 30 * MIB)
})

test('a full disk without a reserve fails as no_space and keeps earlier pins whole', {
  skip,
}, async (t) => {
  const storage = await open('none', 0)
  t.after(() => storage.stop())
  const kept = await storage.add(texts({ 'a.txt': 'kept' }), { signal })
  await disk?.fillTo(MIB)
  await assert.rejects(storage.add(file('too large', 4 * MIB), { signal }), refused)
  assert.equal(`${await collect(storage.cat(kept.cid, { signal }))}`, 'kept')
  await disk?.empty()
  // The file system frees the space a moment later.
  await until('there is room again', async () => {
    const added = storage.add(file('too large', 4 * MIB), { signal })
    return await added.catch((error) => !refused(error) && assert.fail(error))
  })
})
