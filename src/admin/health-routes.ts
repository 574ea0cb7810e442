import { z } from 'zod'
import { COUNT_LIMIT } from '../health/database-metrics.ts'
import { readQueues } from '../health/queues.ts'
import { type Route, route } from '../http/route.ts'
import { pageOf, paging, readPageToken, toPage } from '../http/shapes.ts'
import type { Finding } from '../lib/readiness.ts'
import { shared } from '../lib/shared.ts'
import { redactTokens } from '../log.ts'
import { QUEUES } from '../operations/catalog.ts'
import { type AdminServices, TAG } from './services.ts'

const CACHE_MS = 2000
const STATUSES = ['ok', 'degraded', 'down'] as const
const part = z.object({ status: z.enum(STATUSES), detail: z.string().optional() })
const finding = part.extend({
  name: z.string(),
  cause: z.string().optional().describe('What the part said itself.'),
  advice: z.string().optional().describe('What to do.'),
})
const slots = z.record(z.string(), z.number()).describe('Operations of each queue that it runs side by side.')

const workerRecord = z.object({
  id: z.string(),
  version: z.string().nullable().describe('Of Berth; null where it is older than this field.'),
  isAlive: z.boolean().describe('Whether it was heard of within 15 seconds.'),
  startedAt: z.string(),
  seenAt: z.string(),
  slots,
  parts: z.record(z.string(), part).describe('As its own `/readyz` has them.'),
})

/** How the instance is: its parts, its queues, and the workers that serve them. */
export function healthRoutes({ pool, workers, readiness }: AdminServices): Route[] {
  const queues = shared(CACHE_MS, async () => {
    const [states, { slots }] = await Promise.all([readQueues(pool), workers.read()])
    return states.map((queue) => ({ ...queue, slots: slots[queue.name] ?? 0 }))
  })
  return [
    route({
      method: 'get',
      path: '/v0/admin/health',
      id: 'getInstanceHealth',
      tag: TAG,
      summary: 'How each part of the instance is, and what to do about it',
      description:
        'The parts of `/readyz`, as this web process and all workers see them, with the cause and an advice where one is not well.',
      scope: 'instance:read',
      success: {
        status: 200,
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
      tag: TAG,
      summary: 'List the queues: what waits, what runs, and for how long',
      description: 'At most two seconds old.',
      scope: 'instance:read',
      success: {
        status: 200,
        description: 'All queues.',
        body: z.object({
          data: z.object({
            queues: z.array(
              z.object({
                name: z.enum(QUEUES),
                queued: z.number().describe(`${COUNT_LIMIT} of a kind stand for that many or more.`),
                running: z.number(),
                oldestSeconds: z
                  .number()
                  .nullable()
                  .describe('Age of the oldest one that waits for its first attempt; null where none does.'),
                slots: z
                  .number()
                  .describe('How many the live workers run side by side; 0 where none serves it.'),
              }),
            ),
            next_page_token: z.string(),
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
      tag: TAG,
      summary: 'List workers with their versions, slots and last heartbeats',
      description: 'One that ended by itself is not there any more; one that died, for an hour.',
      scope: 'instance:read',
      query: z.object(paging(10, 100)),
      success: {
        status: 200,
        description: 'A page of workers, in the order in which they started.',
        body: pageOf('workers', workerRecord),
      },
      async handle({ query: { limit, pageToken } }) {
        const found = await workers.list(readPageToken(pageToken), limit + 1)
        return { body: toPage('workers', found, limit) }
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
