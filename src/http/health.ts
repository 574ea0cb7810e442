import { z } from 'zod'
import type { Pool } from '../db/pool.ts'
import type { IpfsStatus, WorkerStatus } from '../operations/workers.ts'
import { type Route, route } from './route.ts'
import { shared } from './shared.ts'

const CHECK_MS = 2000
const CACHE_MS = 2000

const part = z.object({ status: z.enum(['ok', 'degraded', 'down']), detail: z.string().optional() })
type Part = z.output<typeof part>

export interface HealthServices {
  pool: Pool
  /** Resolves while the queue answers. */
  pingQueue(): Promise<unknown>
  workers: WorkerStatus
}

/** `/healthz`: the process runs. `/readyz`: it can do its work; 503 only without PostgreSQL or the queue. */
export function healthRoutes({ pool, pingQueue, workers }: HealthServices): Route[] {
  const readiness = shared(CACHE_MS, async () => {
    const [database, queue, seen] = await Promise.all([
      check(pool.query('SELECT 1')),
      check(pingQueue()),
      bounded(workers.read()).catch(() => undefined),
    ])
    const parts = { database, queue, ...observed(seen) }
    const down = database.status === 'down' || queue.status === 'down'
    const whole = Object.values(parts).every(({ status }) => status === 'ok')
    const status = down ? 'down' : whole ? 'ok' : 'degraded'
    return { status: down ? 503 : 200, body: { status, parts } }
  })
  return [
    route({
      method: 'get',
      path: '/healthz',
      id: 'live',
      tag: 'Health',
      summary: 'Whether this process is alive',
      scope: null,
      success: { status: 200, description: 'It is.', body: z.object({ status: z.literal('ok') }) },
      handle: async () => ({ body: { status: 'ok' } }),
    }),
    route({
      method: 'get',
      path: '/readyz',
      id: 'ready',
      tag: 'Health',
      summary: 'Whether Berth can work, part by part',
      description:
        '503 without PostgreSQL or the queue. Other parts that are away are shown as `down`, and delay work without losing it.',
      scope: null,
      success: {
        status: 200,
        description: 'Ready, or `degraded` where a part other than PostgreSQL and the queue is away.',
        body: z.object({
          status: z.enum(['ok', 'degraded', 'down']),
          parts: z.object({ database: part, queue: part, workers: part, ipfs: part, ipfs_private: part }),
        }),
      },
      errors: [503],
      handle: readiness,
    }),
  ]
}

function observed(seen: Awaited<ReturnType<WorkerStatus['read']>> | undefined): {
  workers: Part
  ipfs: Part
  ipfs_private: Part
} {
  if (!seen) {
    const unknown: Part = { status: 'down', detail: 'unknown' }
    return { workers: unknown, ipfs: unknown, ipfs_private: unknown }
  }
  const workers: Part =
    seen.count > 0 ? { status: 'ok' } : { status: 'down', detail: 'no worker process is running' }
  return { workers, ipfs: nodePart(seen.ipfs), ipfs_private: nodePart(seen.ipfsPrivate) }
}

function nodePart(node: IpfsStatus | undefined): Part {
  if (!node) return { status: 'down', detail: 'no worker process has reported' }
  return node.error ? { status: 'down', detail: node.error } : { status: 'ok', detail: node.driver }
}

async function check(work: Promise<unknown>): Promise<Part> {
  try {
    await bounded(work)
    return { status: 'ok' }
  } catch (error) {
    return { status: 'down', detail: (error as Error).message }
  }
}

function bounded<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {})
  return Promise.race([
    work,
    new Promise<never>((_, reject) => setTimeout(reject, CHECK_MS, new Error('does not answer')).unref()),
  ])
}
