/** The cache on disk of embedded nodes whose blocks are in S3. */
import assert from 'node:assert/strict'
import { readdir, readFile, rename, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { until } from '../../support/processes.ts'
import { withoutS3 } from '../../support/s3.ts'
import { type BucketWorld, startBucketWorld } from './bucket-subject.ts'
import { failsWith } from './cases/context.ts'
import { collect, folder } from './content.ts'

describe('the disk cache of blocks in s3', { skip: withoutS3 }, () => {
  const { signal } = new AbortController()
  const diskBytes = 20_000_000
  let world: BucketWorld
  before(async () => {
    world = await startBucketWorld()
  })
  after(() => world?.stop())
  afterEach(() => setPresence(true))

  /** A node with nothing in memory. */
  const open = () => world.open({ diskBytes })
  const files = async () => (await readdir(world.cache).catch(() => [])).filter((name) => !/new-/.test(name))
  /** Takes the packs away, or puts them back. */
  const setPresence = async (isThere: boolean) => {
    const suffix = isThere ? '.aside' : '.car'
    for (const name of (await readdir(world.objects)).filter((name) => name.endsWith(suffix))) {
      const pack = name.replace('.aside', '')
      await rename(join(world.objects, name), join(world.objects, isThere ? pack : `${name}.aside`))
    }
  }
  /** A folder whose packs are completely on the disk. */
  const addRead = async (seed: string) => {
    const storage = await open()
    const { cid } = await storage.add(folder(seed, 12, 50_000), { signal })
    const before = (await files()).length
    const bytes = await collect(storage.exportCar(cid, { signal }))
    await until('it is on the disk', async () => (await files()).length >= before + 3)
    const read = async () => assert.deepEqual(await collect((await open()).exportCar(cid, { signal })), bytes)
    return { cid, read }
  }

  test('processes read from the disk what one of them has read from s3', async () => {
    const { read } = await addRead('shared')
    await setPresence(false)
    await read()
  })

  for (const [damage, harm] of Object.entries({
    torn: (path: string) => truncate(path, 1000),
    empty: (path: string) => truncate(path, 0),
    overwritten: async (path: string) => writeFile(path, Buffer.alloc((await readFile(path)).length, 1)),
  }))
    test(`a file of the cache that is ${damage} is read again from s3, and replaced`, async () => {
      const { read } = await addRead(damage)
      for (const name of await files()) await harm(join(world.cache, name))
      await read()
      await setPresence(false)
      await until('it is on the disk again', () =>
        read().then(
          () => true,
          () => false,
        ),
      )
    })

  test('deleted content is not read from the disk, and leaves it', async () => {
    const before = new Set(await files())
    const { cid } = await addRead('deleted')
    const own = (await files()).filter((name) => !before.has(name))
    const storage = await open()
    await storage.unpin(cid, { signal })
    for (let i = 0; i < 2; i++) {
      await world.age(48)
      await storage.gc({ signal })
    }
    assert.deepEqual(
      (await files()).filter((name) => own.includes(name)),
      own,
    )
    await assert.rejects(collect(storage.exportCar(cid, { signal })), failsWith('not_found'))
    await open()
    await until('its files are gone', async () => (await files()).every((name) => !own.includes(name)))
    assert.ok((await files()).length > 0, 'others stay')
  })
})
