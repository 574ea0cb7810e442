/** The instance routes, for its admins. None accepts an agent's token. */

import { z } from 'zod'
import { COUNT_LIMIT, STATEMENTS } from '../health/database-metrics.ts'
import { like } from '../http/fields.ts'
import type { Route } from '../http/route.ts'
import { coalesce } from '../lib/coalesce.ts'
import { healthRoutes } from './health-routes.ts'
import { planRoutes } from './plan-routes.ts'
import { type AdminServices, route } from './services.ts'
import { workspaceRoutes } from './workspace-routes.ts'

export function adminRoutes(services: AdminServices): Route[] {
  return [
    ...planRoutes(services),
    ...workspaceRoutes(services),
    ...usageRoutes(services),
    ...healthRoutes(services),
  ]
}

const CACHE_MS = 2000
const kept = z.object({ files: like(4096), bytes: like(21_474_836_480) })

/** The totals of the instance; the list of workspaces has the totals of each. */
function usageRoutes({ pool }: AdminServices): Route[] {
  const read = coalesce(CACHE_MS, async () => {
    type Kept = { network: 'public' | 'private'; files: number; bytes: number }
    const { rows: networks } = await pool.query<Kept>({ name: 'metrics-kept', ...STATEMENTS.kept })
    type Count = { status: string; value: number }
    const { rows: agents } = await pool.query<Count>({ name: 'metrics-agents', ...STATEMENTS.agents })
    return {
      networks: Object.fromEntries(networks.map(({ network, files, bytes }) => [network, { files, bytes }])),
      agents: Object.fromEntries(agents.map(({ status, value }) => [status, value])),
    }
  })
  return [
    route({
      method: 'get',
      path: '/v0/admin/usage',
      id: 'getInstanceUsage',
      summary: 'Get the totals of the instance',
      description: 'Content that two workspaces keep is counted twice. At most two seconds old.',
      scope: 'instance:read',
      success: {
        description: 'The sums.',
        body: z.object({
          data: z.object({
            networks: z.object({ public: kept, private: kept }),
            agents: z
              .object({ starting: z.number(), running: z.number(), not_running: z.number() })
              .describe(`${COUNT_LIMIT} means that many or more.`),
          }),
        }),
      },
      async handle() {
        return { body: { data: await read() } }
      },
    }),
  ]
}
