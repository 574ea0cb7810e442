import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { NO_WORKSPACE, readWaiting } from '../../../src/db/statements/dispatch.ts'
import type { QueueName } from '../../../src/operations/catalog.ts'
import { Dispatcher } from '../../../src/operations/dispatcher.ts'
import type { DispatchedJob } from '../../../src/operations/queue.ts'
import { useDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'
import { insertOperation, readOperation } from './rows.ts'

/** A queue that only records, so that the order of dispatch is visible. Jobs that it forgets are lost. */
class RecordingQueue {
  jobs: DispatchedJob[] = []
  add = async (jobs: DispatchedJob[]) => void this.jobs.push(...jobs)
  has = async (jobId: string) => this.jobs.some((job) => job.jobId === jobId)
}

const database = await useDatabase()

describe('dispatcher', () => {
  beforeEach(() => database.pool.query('TRUNCATE operation, repair'))

  async function dispatch(
    options: { ahead?: number; limit?: number },
    done: (ids: string[]) => Promise<boolean> | boolean,
  ): Promise<string[]> {
    const queues: Record<QueueName, RecordingQueue> = {
      pins: new RecordingQueue(),
      repairs: new RecordingQueue(),
      storage: new RecordingQueue(),
      agents: new RecordingQueue(),
      workspaces: new RecordingQueue(),
      webhooks: new RecordingQueue(),
    }
    const dispatcher = new Dispatcher({
      pool: database.pool,
      queue: (name) => queues[name],
      log: database.log,
      ahead: options.ahead ?? 100,
      activeLimits: { pins: options.limit },
    })
    dispatcher.start()
    const ids = () => queues.pins.jobs.map(({ id }) => id)
    await until('the expected dispatches', () => done(ids()))
    await dispatcher.stop()
    return ids()
  }

  it('the dispatcher takes turns between workspaces, whatever the length of their queues', async () => {
    const [many, few] = [await database.createWorkspace(), await database.createWorkspace()]
    for (let i = 0; i < 20; i++) await insertOperation(database.pool, many)
    const last = await insertOperation(database.pool, few)
    const ids = await dispatch({ ahead: 4 }, (handed) => handed.length >= 4)
    assert.equal(ids.length, 4)
    assert.ok(ids.includes(last))
  })

  it('the dispatcher gives each workspace its turn, however few slots are free', async () => {
    const workspaces = new Map<string, string>()
    for (let i = 0; i < 3; i++) {
      const workspace = await database.createWorkspace()
      for (let j = 0; j < 3; j++) workspaces.set(await insertOperation(database.pool, workspace), workspace)
    }
    // Each operation ends at once, which frees the only slot.
    const ids = await dispatch({ ahead: 1 }, async (handed) => {
      const end = `UPDATE operation SET state = 'succeeded', dispatched_at = NULL, finished_at = now() WHERE id = ANY ($1)`
      await database.pool.query(end, [handed])
      return handed.length >= 3
    })
    assert.equal(new Set(ids.slice(0, 3).map((id) => workspaces.get(id))).size, 3)
  })

  it('the workspaces whose operations wait are read in turn, from any of them', async () => {
    const { pool } = database
    const ids = [1, 2, 3, 4].map((i) => `00000000-0000-7000-8000-00000000000${i}`)
    const [first = '', second = '', third = '', fourth = ''] = ids
    for (const id of ids) {
      await pool.query(`INSERT INTO workspace (id, name, plan) VALUES ($1, $2, 'unlimited')`, [
        id,
        `turns ${id}`,
      ])
      if (id !== second) for (let i = 0; i < 3; i++) await insertOperation(pool, id)
    }
    const read = async (after: string, most: number) =>
      (await readWaiting.run(pool, 'pins', after, most)).rows.map(({ id }) => id)
    assert.deepEqual(await read(NO_WORKSPACE, 9), [first, third, fourth])
    assert.deepEqual(await read(second, 9), [third, fourth, first])
    assert.deepEqual(await read(third, 9), [fourth, first, third])
    assert.deepEqual(await read(fourth, 9), [first, third, fourth])
    assert.deepEqual(await read(third, 2), [fourth, first])
    await pool.query('TRUNCATE operation')
    assert.deepEqual(await read(third, 9), [])
  })

  it('the dispatcher dispatches new operations before failed ones', async () => {
    const workspace = await database.createWorkspace()
    const retry = await insertOperation(database.pool, workspace, { attempts: 3 })
    const fresh = [
      await insertOperation(database.pool, workspace),
      await insertOperation(database.pool, workspace),
    ]
    const ids = await dispatch({ ahead: 2 }, (handed) => handed.length >= 2)
    assert.deepEqual(new Set(ids), new Set(fresh))
    assert.ok(!ids.includes(retry))
  })

  it('the dispatcher stays at most the configured number of jobs ahead of the workers', async () => {
    const workspace = await database.createWorkspace()
    for (let i = 0; i < 30; i++) await insertOperation(database.pool, workspace)
    const ids = await dispatch({ ahead: 5 }, (handed) => handed.length >= 5)
    assert.equal(ids.length, 5)
  })

  it('the dispatcher starts no more operations of one workspace than the limit', async () => {
    const workspace = await database.createWorkspace()
    await insertOperation(database.pool, workspace, {
      state: 'running',
      attempts: 1,
      lease_until: new Date(Date.now() + 60_000),
    })
    for (let i = 0; i < 10; i++) await insertOperation(database.pool, workspace)
    const ids = await dispatch({ limit: 3 }, (handed) => handed.length >= 2)
    assert.equal(ids.length, 2)
  })

  it('the dispatcher holds back operations behind an older one with the same concurrency key', async () => {
    const workspace = await database.createWorkspace()
    const first = await insertOperation(database.pool, workspace, { concurrency_key: 'file:1' })
    await insertOperation(database.pool, workspace, { concurrency_key: 'file:1' })
    assert.deepEqual(await dispatch({}, (handed) => handed.length >= 1), [first])
  })

  it('the dispatcher lets a workspace’s first operation run before many of another workspace', async () => {
    const { pool } = database
    const [many, few] = [await database.createWorkspace(), await database.createWorkspace()]
    for (let i = 0; i < 5; i++) {
      await insertOperation(pool, many, {
        state: 'running',
        attempts: 1,
        lease_until: new Date(Date.now() + 60_000),
      })
    }
    const waiting = await insertOperation(pool, many)
    const retry = await insertOperation(pool, few, { attempts: 1 })
    const first = await insertOperation(pool, few)
    const priorities = new Map<string, number>()
    const queue = new RecordingQueue()
    const dispatcher = new Dispatcher({
      pool,
      queue: () => queue,
      log: database.log,
      ahead: 100,
      activeLimits: {},
    })
    dispatcher.start()
    await until('three dispatches', () => queue.jobs.length >= 3)
    await dispatcher.stop()
    for (const { id, priority } of queue.jobs) priorities.set(id, priority)
    const of = (id: string) => priorities.get(id) ?? Number.NaN
    assert.ok(of(first) < of(waiting), 'fewer at a time')
    assert.ok(of(waiting) < of(retry), 'no attempt has failed yet')
  })

  it('the dispatcher takes over from a worker whose lease expired, and records the repair', async () => {
    const { pool } = database
    const workspace = await database.createWorkspace()
    const id = await insertOperation(pool, workspace, {
      state: 'running',
      attempts: 1,
      epoch: 1,
      lease_until: new Date(0),
    })
    assert.deepEqual(await dispatch({}, (handed) => handed.length >= 1), [id])
    const { rows } = await pool.query('SELECT loop, reason, target FROM repair')
    assert.deepEqual(rows, [{ loop: 'operations', reason: 'lease expired', target: id }])
  })

  it('the dispatcher redispatches what the queue has lost, under a new job id', async () => {
    const { pool } = database
    const workspace = await database.createWorkspace()
    const id = await insertOperation(pool, workspace, { dispatched_at: new Date(0), dispatches: 1 })
    await dispatch({}, (handed) => handed.includes(id))
    assert.equal((await readOperation(pool, id)).dispatches, 2)
    const { rows } = await pool.query('SELECT reason FROM repair')
    assert.deepEqual(rows, [{ reason: 'job lost by the queue' }])
  })

  it('the dispatcher repairs nothing if a worker takes the job between its two reads', async () => {
    const { pool } = database
    const workspace = await database.createWorkspace()
    const id = await insertOperation(pool, workspace, { dispatched_at: new Date(0), dispatches: 1 })
    let looks = 0
    const queue = {
      add: async () => {},
      async has() {
        looks++
        await pool.query(`UPDATE operation SET state = 'succeeded', dispatched_at = NULL WHERE id = $1`, [id])
        return false
      },
    }
    const dispatcher = new Dispatcher({
      pool,
      queue: () => queue,
      log: database.log,
      ahead: 1,
      activeLimits: {},
    })
    dispatcher.start()
    await until('a read of the queue', () => looks > 0)
    await dispatcher.stop()
    assert.equal((await pool.query('SELECT FROM repair')).rowCount, 0)
  })

  it('the dispatcher checks again within seconds, however long a pass was delayed', async (t) => {
    const { pool } = database
    const { query } = pool
    const now = performance.now.bind(performance)
    let heldUpMs = 0
    t.mock.method(performance, 'now', () => now() + heldUpMs)
    const rests: (number | undefined)[] = []
    const wait = globalThis.setTimeout
    const record = (callback: () => void, ms?: number) => {
      rests.push(ms)
      return wait(callback, ms)
    }
    t.mock.method(pool, 'query', (...args: Parameters<typeof query>) => {
      heldUpMs += 60_000
      return query.apply(pool, args)
    })
    t.mock.method(globalThis, 'setTimeout', record as typeof wait)
    await dispatch({}, () => rests.includes(5000))
  })
})
