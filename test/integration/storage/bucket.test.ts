/** The embedded node with its blocks in S3. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, rename, truncate } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { startDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'
import { withoutS3 } from '../../support/s3.ts'
import { type BucketWorld, startBucketWorld } from './bucket-subject.ts'
import { failsWith, pinned } from './cases/context.ts'
import { gcCases } from './cases/gc.ts'
import { pinCases } from './cases/pin.ts'
import { readCases } from './cases/read.ts'
import { collect, file, folder, randomBytes, texts } from './content.ts'
import { storageContract } from './contract.ts'

// The other groups pass as well, but are about the shapes of DAGs, in whatever place their blocks are.
storageContract(
  'embedded, blocks in s3',
  async () => {
    const world = await startBucketWorld()
    return { storage: await world.open({ graceMs: 300 }), close: () => world.stop() }
  },
  { skip: withoutS3, groups: [readCases, pinCases, gcCases] },
)

/** A server between a node and S3: it passes everything on, holds it back for now, or accepts nobody. */
async function startRelay(t: TestContext, target: string) {
  const sockets = new Set<Socket>()
  let mode: 'open' | 'held' | 'closed' = 'open'
  const server = createServer((socket) => {
    if (mode === 'closed') return socket.destroy()
    const { hostname, port } = new URL(target)
    const behind = connect(Number(port), hostname)
    for (const [from, to] of [
      [socket, behind],
      [behind, socket],
    ] as const) {
      sockets.add(from)
      from.on('data', (data) => to.write(data))
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      if (mode === 'held') from.pause()
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const former = process.env.AWS_ENDPOINT_URL_S3
  process.env.AWS_ENDPOINT_URL_S3 = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.after(() => {
    process.env.AWS_ENDPOINT_URL_S3 = former
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (next: typeof mode) => {
    mode = next
    for (const socket of sockets)
      if (next === 'closed') socket.destroy()
      else if (next === 'held') socket.pause()
      else socket.resume()
  }
}

describe('blocks in s3', { skip: withoutS3 }, () => {
  const { signal } = new AbortController()
  let world: BucketWorld
  before(async () => {
    world = await startBucketWorld()
  })
  after(() => world?.stop())

  test('small uploads share objects, and can be read before and after they are moved there', async () => {
    const storage = await world.open()
    const cids = []
    for (let i = 0; i < 260; i++) cids.push((await storage.add(file(`small ${i}`, 20_000), { signal })).cid)
    await until('the first are in a pack', async () => (await world.count()).objects > 0)
    const { objects, blocks, inRows } = await world.count()
    assert.deepEqual([objects, blocks], [1, 260])
    assert.ok(inRows > 0 && inRows < 100, `${inRows}`)
    for (const [i, cid] of cids.entries())
      assert.deepEqual(
        await collect(storage.cat(cid, { signal })),
        await collect(randomBytes(`small ${i}`, 20_000)),
      )
  })

  test('a bucket that is away or hangs is unavailable in time, and nothing accepted is lost', async (t) => {
    const relay = await startRelay(t, world.s3.env.AWS_ENDPOINT_URL_S3 ?? '')
    const storage = await world.open({ cacheBytes: 1, limits: { idleMs: 500, connectMs: 500 } })
    const { cid } = await storage.add(folder('kept', 12, 50_000), { signal })
    for (const mode of ['closed', 'held'] as const) {
      relay(mode)
      const began = Date.now()
      await assert.rejects(collect(storage.exportCar(cid, { signal })), failsWith('unavailable'))
      await assert.rejects(storage.add(folder(mode, 12, 50_000), { signal }), failsWith('unavailable'))
      await assert.rejects(storage.info({ signal }), failsWith('unavailable'))
      assert.ok(Date.now() - began < 15_000)
      relay('open')
      assert.ok((await collect(storage.exportCar(cid, { signal }))).length > 600_000)
      await storage.info({ signal })
    }
    const again = await storage.add(folder('held', 12, 50_000), { signal })
    assert.ok((await collect(storage.exportCar(again.cid, { signal }))).length > 600_000)
  })

  test('an upload whose pack is given up in the meantime fails, and succeeds the next time', async (t) => {
    const collector = await world.start({ writeSeconds: 0 })
    // Earlier failures left packs.
    await collector.call('gc')
    const relay = await startRelay(t, world.s3.env.AWS_ENDPOINT_URL_S3 ?? '')
    const storage = await world.open()
    const before = await pinned(storage)
    const countOf = async (state: string) => {
      const text = 'SELECT FROM node_pack WHERE state = $1'
      return (await world.database.pool.query(text, [state])).rowCount
    }
    relay('held')
    const adding = storage.add(file('slow', 600_000), { signal })
    adding.catch(() => {})
    await until('it is writing', async () => (await countOf('writing')) === 1)
    await collector.call('gc')
    relay('open')
    await assert.rejects(adding, failsWith('unavailable'))
    assert.deepEqual(await pinned(storage), before)
    const { cid } = await storage.add(file('slow', 600_000), { signal })
    assert.equal((await collect(storage.cat(cid, { signal }))).length, 600_000)
    await world.age(2)
    await collector.call('gc')
    assert.equal((await world.count()).objects, await countOf('stored'), 'the late object is gone')
  })

  test('a damaged pack is noticed, and its neighbours stay', async () => {
    const storage = await world.open()
    const { cid } = await storage.add(texts({ a: 'a'.repeat(300_000), b: 'b' }), { signal })
    const { rows } = await world.database.pool.query<{ pack_id: string }>(
      'SELECT pack_id FROM node_block WHERE size = 300000',
    )
    const [{ pack_id: id } = { pack_id: '' }] = rows
    await truncate(join(world.objects, `${id}.car`), 200_000)
    await assert.rejects(collect(storage.cat(cid, { path: 'a', signal })), failsWith('not_found'))
    assert.equal(await storage.isPinned(cid, { signal }), true)
  })

  test('objects of another index, or none of the own objects, end the start with the reason', async (t) => {
    const other = await startDatabase()
    t.after(() => other.stop())
    await assert.rejects(
      world.open({ databaseUrl: other.url }),
      /^ConfigError: BERTH_BLOCKS_S3_URL: s3:\/\/blocks\/of\/berth\/ has the blocks of another Berth/,
    )
    const marker = join(world.objects, 'berth-blocks.json')
    assert.ok((await readdir(world.objects)).includes('berth-blocks.json'))
    await rename(marker, `${marker}.aside`)
    await assert.rejects(
      world.open(),
      /^ConfigError: BERTH_BLOCKS_S3_URL: the blocks of this Berth are not at/,
    )
    await rename(`${marker}.aside`, marker)
    await world.open()
  })
})
