import { z } from 'zod'
import { COUNT_LIMIT } from '../health/database-metrics.ts'
import { readQueues } from '../health/queues.ts'
import { like, timestamp, uuid } from '../http/fields.ts'
import { noNextPage, pageOf, paging, readPage, toPage } from '../http/pages.ts'
import type { Route } from '../http/route.ts'
import { coalesce } from '../lib/coalesce.ts'
import type { Finding } from '../lib/readiness.ts'
import { redactTokens } from '../log.ts'
import { QUEUES } from '../operations/catalog.ts'
import { type AdminServices, route } from './services.ts'

const CACHE_MS = 2000
const STATUSES = ['ok', 'degraded', 'down'] as const
const part = z.object({ status: z.enum(STATUSES), detail: z.string().optional() })
const finding = part.extend({
  name: like('database'),
  cause: z.string().optional().describe('The component’s own message.'),
  advice: z.string().optional().describe('What to do.'),
})
const slots = z
  .record(z.string(), z.number())
  .describe('How many operations of each queue it runs at a time.')

const workerRecord = z.object({
  id: uuid,
  version: z
    .string()
    .nullable()
    .describe('The version of Berth; null if the worker is older than this field.'),
  isAlive: like(true).describe('Whether it sent a heartbeat within the last 15 seconds.'),
  startedAt: timestamp,
  seenAt: timestamp,
  slots,
  parts: z.record(z.string(), part).describe('As reported by its own `/readyz`.'),
})

/** The health of the instance: its components, its queues, and the workers that serve them. */
export function healthRoutes({ pool, workers, readiness }: AdminServices): Route[] {
  const queues = coalesce(CACHE_MS, async () => {
    const [states, { slots }] = await Promise.all([readQueues(pool), workers.read()])
    return states.map((queue) => ({ ...queue, slots: slots[queue.name] ?? 0 }))
  })
  return [
    route({
      method: 'get',
      path: '/v0/admin/health',
      id: 'getInstanceHealth',
      summary: 'Get the health of each component, with advice',
      description:
        'The components of `/readyz`, as this web process and all workers see them. Unhealthy components come with a cause and advice.',
      scope: 'instance:read',
      success: {
        description: 'The parts.',
        body: z.object({ data: z.object({ status: z.enum(STATUSES), parts: z.array(finding) }) }),
      },
      async handle() {
        const { status, parts } = await readiness.explain()
        return { body: { data: { status, parts: Object.entries(parts).map(toFinding) } } }
      },
    }),
    route({
      method: 'get',
      path: '/v0/admin/queues',
      id: 'listQueues',
      summary: 'List the queues with their waiting and running operations',
      description: 'At most two seconds old.',
      scope: 'instance:read',
      success: {
        description: 'All queues.',
        body: z.object({
          data: z.object({
            queues: z.array(
              z.object({
                name: z.enum(QUEUES),
                queued: like(3).describe(`${COUNT_LIMIT} of a kind means that many or more.`),
                running: like(12),
                oldestSeconds: z
                  .number()
                  .nullable()
                  .describe(
                    'Age of the oldest operation that waits for its first attempt; null if none waits.',
                  ),
                slots: z
                  .number()
                  .describe(
                    'How many operations the live workers run at a time; 0 if no worker serves the queue.',
                  ),
              }),
            ),
            next_page_token: noNextPage,
          }),
        }),
      },
      async handle() {
        return { body: { data: { queues: await queues(), next_page_token: '' } } }
      },
    }),
    route({
      method: 'get',
      path: '/v0/admin/workers',
      id: 'listWorkers',
      summary: 'List workers with their versions, slots and last heartbeats',
      description: 'A worker that exited normally is not listed; one that died stays listed for an hour.',
      scope: 'instance:read',
      query: z.object(paging(10, 100)),
      success: {
        description: 'A page of workers, in the order in which they started.',
        body: pageOf('workers', workerRecord),
      },
      async handle({ query }) {
        return { body: toPage('workers', await readPage(query, (cursor) => workers.list(cursor))) }
      },
    }),
  ]
}

function toFinding([name, { status, detail, cause, advice }]: [string, Finding]) {
  return {
    name,
    status,
    ...(detail && { detail }),
    ...(cause && { cause: redactTokens(cause) }),
    ...(advice && { advice }),
  }
}
