import { z } from 'zod'
import type { Readiness } from '../lib/readiness.ts'
import { type Route, route } from './route.ts'

const part = z.object({ status: z.enum(['ok', 'degraded', 'down']), detail: z.string().optional() })

/** `/healthz`: the process runs. `/readyz`: it can do its work. */
export function healthRoutes(readiness: Readiness): Route[] {
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
        '503 while `database`, `queue` or `schema` is down. Other parts that are away are shown as `down`, and delay work without losing it. What agents run in is `docker`, `kubernetes` or `processes`, as the workers that serve agents see it.',
      scope: null,
      success: {
        status: 200,
        description: 'Ready, or `degraded` where another part is not well.',
        body: z.object({
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
        }),
      },
      errors: [503],
      async handle() {
        const report = await readiness.read()
        return { status: report.status === 'down' ? 503 : 200, body: report }
      },
    }),
  ]
}
