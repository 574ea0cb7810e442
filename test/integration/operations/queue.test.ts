import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { queryOne } from '../../../src/db/pool.ts'
import { QUEUES } from '../../../src/operations/catalog.ts'
import { createQueueBackend, type QueueBackend } from '../../../src/operations/queue.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'
import { type Server, startRedis, withoutRedis } from '../../support/servers.ts'

/** Cases that the dispatcher relies on, for each backend. */
function suite(
  name: string,
  open: (database: TestDatabase) => Promise<{ backend: QueueBackend; close(): Promise<void> }>,
) {
  let database: TestDatabase
  let opened: { backend: QueueBackend; close(): Promise<void> }
  before(async () => {
    database = await startDatabase()
    opened = await open(database)
  })
  after(async () => {
    await opened?.backend.close()
    await opened?.close()
    await database.stop()
  })

  it('the queue hands each job to one consumer, and forgets it when it is done', async () => {
    const { backend } = opened
    const queue = backend.queue('storage')
    const seen: string[] = []
    for (let i = 0; i < 2; i++) backend.consume('storage', 4, async (id) => void seen.push(id))
    // If its consumer is blocked for 2 s, a job is rightly handed to another one as well; in that case, run another
    // round.
    const jobs = await until('each job of a round was handed out once', async () => {
      const ids = Array.from({ length: 50 }, () => uuidv7())
      const jobs = ids.map((id) => ({ id, jobId: `${id}-1`, priority: 1 }))
      await queue.add(jobs)
      await until('all jobs seen', () => ids.every((id) => seen.includes(id)))
      assert.deepEqual(seen.filter((id) => ids.includes(id)).toSorted(), ids.toSorted())
      return jobs
    })
    await until('all jobs forgotten', async () => {
      const left = await Promise.all(jobs.map(({ jobId }) => queue.has(jobId)))
      return left.every((there) => !there)
    })
  })

  it('the queue runs the job with the lower number first', async () => {
    const queue = opened.backend.queue('repairs')
    const jobs = [30, 10, 20].map((priority) => ({ id: `job ${priority}`, jobId: uuidv7(), priority }))
    await queue.add(jobs)
    // A job may be handed out a second time if its consumer is blocked for 2 s.
    const seen = new Set<string>()
    opened.backend.consume('repairs', 1, async (id) => void seen.add(id))
    await until('all jobs seen', () => seen.size === jobs.length)
    assert.deepEqual([...seen], ['job 10', 'job 20', 'job 30'])
  })

  it('the queue knows a waiting job, and ignores a second one with the same id', async () => {
    const queue = opened.backend.queue('pins')
    const id = uuidv7()
    await queue.add([{ id, jobId: `${id}-1`, priority: 1 }])
    await queue.add([{ id, jobId: `${id}-1`, priority: 1 }])
    assert.equal(await queue.has(`${id}-1`), true)
    assert.equal(await queue.has(`${id}-2`), false)
    const seen: string[] = []
    opened.backend.consume('pins', 1, async (job) => void seen.push(job))
    await until('the job is done', async () => !(await queue.has(`${id}-1`)))
    assert.deepEqual(seen, [id], name)
  })
}

describe('queue on PostgreSQL', () => {
  suite('postgres', async ({ url, log }) => ({
    backend: createQueueBackend({ databaseUrl: url }, log),
    close: async () => {},
  }))

  it('a worker’s queues on PostgreSQL share three connections, plus one each to listen', async (t) => {
    const database = await startDatabase()
    t.after(() => database.stop())
    const connections = async () => {
      const { count } = await queryOne<{ count: number }>(
        database.pool,
        `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database()
         AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
      )
      return count
    }
    const jobs = () => Array.from({ length: 20 }, uuidv7).map((id) => ({ id, jobId: id, priority: 1 }))
    const web = createQueueBackend({ databaseUrl: database.url }, database.log)
    await Promise.all(QUEUES.map((name) => web.queue(name).add(jobs())))
    await web.close()
    await until('the connections of the web process are gone', async () => (await connections()) === 0)
    const backend = createQueueBackend({ databaseUrl: database.url }, database.log)
    t.after(() => backend.close())
    const seen = new Set<string>()
    for (const name of QUEUES) backend.consume(name, 4, async (id) => void seen.add(id))
    await until('all jobs seen', () => seen.size === 20 * QUEUES.length)
    const count = await connections()
    assert.ok(count > QUEUES.length && count <= 3 + QUEUES.length, `${count} connections`)
  })
})

describe('queue on a PostgreSQL that has no free connection at first', () => {
  it('the queue and its consumer start once PostgreSQL has a free connection', async (t) => {
    const database = await startDatabase()
    t.after(() => database.stop())
    const { hostname, port } = new URL(database.url)
    let isFull = true
    let refused = 0
    const front = createServer((socket) => {
      socket.on('error', () => {})
      if (isFull) {
        refused++
        return socket.destroy()
      }
      const server = connect(Number(port), hostname).on('error', () => socket.destroy())
      socket.pipe(server).pipe(socket)
    })
    await once(front.listen(0, '127.0.0.1'), 'listening')
    t.after(() => front.close())
    const url = new URL(database.url)
    url.host = `127.0.0.1:${(front.address() as AddressInfo).port}`
    const backend = createQueueBackend({ databaseUrl: `${url}` }, database.log)
    t.after(() => backend.close())
    const seen: string[] = []
    const queue = backend.queue('storage')
    backend.consume('storage', 1, async (id) => void seen.push(id))
    await assert.rejects(queue.has('any'))
    assert.ok(refused > 0)
    isFull = false
    await until('the queue takes jobs', () =>
      queue.add([{ id: 'job', jobId: uuidv7(), priority: 1 }]).then(
        () => true,
        () => false,
      ),
    )
    await until('the job is run', () => seen.length > 0)
  })
})

describe('queue on Redis', { skip: withoutRedis }, () => {
  suite('redis', async ({ url, log }) => {
    const redis: Server = await startRedis()
    return {
      backend: createQueueBackend({ redisUrl: redis.url, databaseUrl: url }, log),
      close: () => redis.stop(),
    }
  })
})
