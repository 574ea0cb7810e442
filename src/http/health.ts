import { z } from 'zod'
import type { Readiness } from '../lib/readiness.ts'
import { withExample } from './fields.ts'
import { type Route, routesOf } from './route.ts'

const route = routesOf('Health')

const part = z.object({ status: z.enum(['ok', 'degraded', 'down']), detail: z.string().optional() })

const report = z.object({
  status: z.enum(['ok', 'degraded', 'down']),
  parts: z.object({
    database: part,
    queue: part,
    schema: part,
    disk: part,
    host: part,
    dispatcher: part,
    workers: part,
    ipfs: part,
    ipfs_private: part,
    docker: part.optional(),
    kubernetes: part.optional(),
    processes: part.optional(),
  }),
})

/** `/healthz`: the process runs. `/readyz`: the process can do its work. */
export function healthRoutes(readiness: Readiness): Route[] {
  return [
    route({
      method: 'get',
      path: '/healthz',
      id: 'live',
      summary: 'Check whether this process is alive',
      scope: null,
      success: { description: 'It is.', body: z.object({ status: z.literal('ok') }) },
      handle: async () => ({ body: { status: 'ok' } }),
    }),
    route({
      method: 'get',
      path: '/readyz',
      id: 'ready',
      summary: 'Check whether Berth can work, by component',
      description:
        '503 while `database`, `queue` or `schema` is down. Other unavailable components are shown as `down`; they delay work without losing it. The runtime of agents is shown as `docker`, `kubernetes` or `processes`, as seen by the workers that serve agents.',
      scope: null,
      success: { description: 'Ready, or `degraded` if another component is unhealthy.', body: report },
      errors: [503],
      otherFailure: {
        status: 503,
        body: report.extend({ status: withExample(report.shape.status, 'down') }),
      },
      async handle() {
        const body = await readiness.read()
        return { status: body.status === 'down' ? 503 : 200, body }
      },
    }),
  ]
}
