/** Processes that share blocks in S3: none is lost when they are killed, and nothing stays that nobody needs. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import type { CrashPoint } from '../../../src/lib/crash-point.ts'
import { until } from '../../support/processes.ts'
import { withoutS3 } from '../../support/s3.ts'
import { type BucketWorld, startBucketWorld } from './bucket-subject.ts'
import type { NodeProcess } from './node-process.ts'

const WRITING = ['pack-before-put', 'pack-after-put', 'pack-after-commit'] satisfies CrashPoint[]
const COLLECTING = [
  'gc-after-rows',
  'gc-after-give-up',
  'gc-after-objects',
  ...WRITING,
] satisfies CrashPoint[]
const ROUNDS = 16
const crashAt = (point: CrashPoint) => ({
  BERTH_CRASH_AT: `${point}@${join(tmpdir(), `berth-${randomUUID()}`)}`,
})

describe('processes that share blocks in s3', { skip: withoutS3, timeout: 600_000 }, () => {
  let world: BucketWorld
  let reader: NodeProcess
  const dying: NodeProcess[] = []

  before(async () => {
    world = await startBucketWorld()
    reader = await world.start({ cacheBytes: 1024 })
  })
  after(() => world?.stop())
  beforeEach(() => world.database.pool.query('TRUNCATE node_root, node_mark'))
  afterEach(async () => {
    for (const node of dying.splice(0)) await node.kill()
  })
  const start = async (...args: Parameters<BucketWorld['start']>) => {
    const node = await world.start(...args)
    dying.push(node)
    return node
  }

  /** Collects twice, long after everything else: the second collection is about dead packs. */
  const collectAll = async () => {
    for (let i = 0; i < 2; i++) {
      await world.age(48)
      await reader.call('gc')
    }
  }

  for (const point of WRITING) {
    test(`an import killed ${point} can be repeated, and leaves nothing`, async () => {
      const writer = await start({}, crashAt(point))
      await assert.rejects(writer.call('addFolder', point, 12, 50_000))
      await writer.ended
      const cid = await reader.call('addFolder', point, 12, 50_000)
      assert.equal(await reader.call('readAll', cid).then((bytes) => bytes > 600_000), true)
      await collectAll()
      assert.ok((await reader.call('readAll', cid)) > 600_000)
      assert.deepEqual(await world.count(), { objects: 1, packs: 1, blocks: 14, inRows: 0 })
      await reader.call('unpin', cid)
      await collectAll()
      await collectAll()
      assert.deepEqual(await world.count(), { objects: 0, packs: 0, blocks: 0, inRows: 0 })
    })
  }

  for (const point of COLLECTING) {
    test(`a collection killed ${point} loses nothing, and the next one completes it`, async () => {
      const kept = await reader.call('addFolder', `${point} kept`, 4, 20_000)
      const both = await reader.call('addFolder', `${point} gone`, 30, 100_000)
      const empty = await reader.call('addFolder', `${point} empty`, 12, 50_000)
      // The pack of `both` has one file that stays.
      const stays = await reader.call('addFile', `${point} gone-0`, 100_000)
      await reader.call('unpin', both)
      await reader.call('unpin', empty)
      await world.age(48)
      const collector = await start({}, crashAt(point))
      await assert.rejects(collector.call('gc'))
      await collector.ended
      for (const cid of [kept, stays]) await reader.call('readAll', cid)
      await collectAll()
      await collectAll()
      for (const cid of [kept, stays]) await reader.call('readAll', cid)
      const { objects, packs } = await world.count()
      assert.equal(objects, packs, 'no object is without a row')
      await reader.call('unpin', kept)
      await reader.call('unpin', stays)
      await collectAll()
      await collectAll()
      assert.deepEqual(await world.count(), { objects: 0, packs: 0, blocks: 0, inRows: 0 })
    })
  }

  test('pinned content is whole while others delete, collect and upload it again', async () => {
    const graceMs = 200
    const collecting = new AbortController()
    const collect = async () => {
      for (let i = 1; !collecting.signal.aborted; i++) {
        const collector = await start({ graceMs, writeSeconds: 30 })
        const runs = (async () => {
          for (;;) await collector.call('gc')
        })().catch(() => {})
        const killed = Date.now() + 700 * (1 + (i % 3))
        await until('its time is over', async () => Date.now() > killed || collecting.signal.aborted)
        await collector.kill()
        await runs
      }
    }
    const collections = collect()
    await Promise.all(
      ['same', 'same', 'other'].map(async (seed, i) => {
        const node = await start({ graceMs })
        for (let round = 0; round < ROUNDS; round++) {
          // Its length differs, so each process has a root of its own, above the same leaves.
          const cid = await node.call('addFolder', seed, 10 + i, 40_000)
          assert.ok((await reader.call('readAll', cid)) > 400_000)
          await node.call('unpin', cid)
        }
      }),
    ).finally(() => collecting.abort())
    await collections
    await collectAll()
    await collectAll()
    assert.deepEqual(await world.count(), { objects: 0, packs: 0, blocks: 0, inRows: 0 })
  })
})
