/**
 * BullMQ over Redis if there is one, otherwise over PostgreSQL. A job carries only an operation's id; it is a hint that
 * may be lost, duplicated or late.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { createPostgresBackend, type PgPool, Queue, Worker } from 'bullmq'
import { isDatabaseDown } from '../db/database-errors.ts'
import { createPool } from '../db/pool.ts'
import { orAborted, withDeadline } from '../lib/signals.ts'
import type { Logger } from '../log.ts'
import { QUEUES, type QueueName } from './catalog.ts'
import { redisOptions } from './redis.ts'

/** A dispatch of an operation. Its job gets a new id each time, because a queue ignores known ids. */
export interface DispatchedJob {
  id: string
  jobId: string
  /** Lower numbers run first; at least 1. */
  priority: number
}

/** The producing side. A call fails quickly if the backend is unavailable; the dispatcher retries. */
export interface JobQueue {
  add(jobs: DispatchedJob[]): Promise<void>
  has(jobId: string): Promise<boolean>
}

export interface QueueBackend {
  queue(name: QueueName): JobQueue
  /** The consuming side; it waits for the backend as long as necessary. */
  consume(name: QueueName, concurrency: number, run: (operationId: string) => Promise<void>): void
  /** Accepts no more jobs, waits for running ones, and disconnects; gives up after 5 s. */
  close(): Promise<void>
}

/** Rows hold the retry policy, so a job is attempted once and then deleted. */
const JOB_OPTIONS = { attempts: 1, removeOnComplete: true, removeOnFail: true }

/**
 * With BullMQ's defaults, it takes 15 s to recover after an outage. Leases in the rows detect a dead worker; the check
 * for stalled jobs only removes its jobs, and each check costs an idle worker a query per queue.
 */
const WORKER_OPTIONS = {
  lockDuration: 2000,
  stalledInterval: 5000,
  maxStalledCount: 1_000_000,
  drainDelay: 5,
  runRetryDelay: 500,
}

const CLOSE_MS = 5000
/** A backend that hangs counts as unavailable after this time. */
const CALL_MS = 5000

/**
 * PostgreSQL connections of a process for statements of all its queues; each consumed queue needs another one to
 * LISTEN.
 */
const CONNECTIONS = 3
const CONNECT_AGAIN_MS = 500
/** The schema of BullMQ's tables. */
const SCHEMA = 'bullmq'

export function createQueueBackend(
  { redisUrl, databaseUrl }: { redisUrl?: string | undefined; databaseUrl: string },
  log: Logger,
): QueueBackend {
  const closers: (() => Promise<void>)[] = []
  const onError = (error: Error) => log.debug({ err: error }, 'queue connection')
  // All queues share one pool, because an idle connection takes 3 MB of the server's memory. With Redis it opens none.
  const pool = createPool(databaseUrl, CONNECTIONS + QUEUES.length, log, { schema: SCHEMA })
  let isClosing = false
  // BullMQ connects a queue once and keeps a failure forever, and a worker then uses a whole processor. So queues are
  // created only once PostgreSQL is available and has a connection to spare.
  const connect = async (): Promise<unknown> => {
    for (;;) {
      try {
        return await (pool as unknown as PgPool).connect()
      } catch (error) {
        if (isClosing || !isDatabaseDown(error)) throw error
        log.debug({ err: error }, 'queue connection')
        await delay(CONNECT_AGAIN_MS, undefined, { ref: false })
      }
    }
  }
  const postgres = new Proxy(pool, {
    get(target, name) {
      if (name === 'connect') return connect
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  }) as unknown as PgPool

  const openQueue = (name: QueueName) => {
    if (!redisUrl) {
      const options = { connection: postgres, defaultJobOptions: JOB_OPTIONS }
      return new Queue(name, options, createPostgresBackend).on('error', onError)
    }
    const connection = { ...redisOptions(redisUrl), maxRetriesPerRequest: 1 }
    return new Queue(name, { connection, defaultJobOptions: JOB_OPTIONS }).on('error', onError)
  }
  const openWorker = (
    name: QueueName,
    concurrency: number,
    processor: (job: { data: { id: string } }) => Promise<void>,
  ) => {
    const options = { ...WORKER_OPTIONS, concurrency }
    if (!redisUrl) {
      const connection = postgres
      return new Worker(name, processor, { ...options, connection }, createPostgresBackend).on(
        'error',
        onError,
      )
    }
    const connection = { ...redisOptions(redisUrl), maxRetriesPerRequest: null }
    return new Worker(name, processor, { ...options, connection }).on('error', onError)
  }

  return {
    queue(name) {
      const queue = openQueue(name)
      closers.push(() => queue.close())
      return {
        async add(jobs) {
          const bulk = jobs.map(({ id, jobId, priority }) => ({
            name,
            data: { id },
            opts: { jobId, priority },
          }))
          await inTime(queue.addBulk(bulk))
        },
        async has(jobId) {
          return (await inTime(queue.getJob(jobId))) !== undefined
        },
      }
    },
    consume(name, concurrency, run) {
      const worker = openWorker(name, concurrency, (job) => run(job.data.id))
      closers.push(() => worker.close())
    },
    async close() {
      isClosing = true
      // BullMQ waits for an unavailable backend, where it would write only a hint.
      await Promise.race([
        Promise.all(closers.map((close) => close())).then(() => pool.end()),
        delay(CLOSE_MS, undefined, { ref: false }),
      ])
    },
  }
}

/** @throws Error if the call takes longer than {@link CALL_MS}: a half-open connection never responds. */
function inTime<T>(call: Promise<T>): Promise<T> {
  const late = () => new Error('the queue does not answer')
  return withDeadline({ ms: CALL_MS, late }, (signal) => orAborted(call, signal))
}
