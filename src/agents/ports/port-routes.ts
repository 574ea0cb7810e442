import { z } from 'zod'
import type { Route } from '../../http/route.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { mappingList, newMappings } from './port-route-schema.ts'
import { readRoutes, setRoutes } from './port-route-store.ts'

const agentRoute = agentRoutesOf('Domains and routes')
const PATH = '/v0/agents/:agentId/port-forwarding'

/** Paths of an agent's own host that lead to its ports. */
export function portRoutes({ prisma }: AgentServices): Route[] {
  return [
    agentRoute({
      method: 'get',
      path: PATH,
      id: 'listPortForwarding',
      summary: 'List path routes',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: { description: 'The routes, by path.', body: mappingList },
      async handle({ agent }) {
        return { body: { mappings: await readRoutes(prisma, agent.id) } }
      },
    }),
    agentRoute({
      method: 'put',
      path: PATH,
      id: 'setPortForwarding',
      summary: 'Replace all path routes',
      description:
        'At most 10. Paths below `pathPrefix` of the agent’s own host go to `port`, without the prefix, ' +
        'which is sent in `X-Forwarded-Prefix`; the longest matching prefix wins. Because that host also ' +
        'serves the API, a port’s responses run in a sandbox there and set no cookies. Browsers that open ' +
        'a page are redirected to `<agentId>.<BERTH_APP_DOMAIN>`, which has the same routes and nothing ' +
        'else. `protected` requires the gateway token, in a header, `?token=` or a cookie.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: newMappings,
      success: { description: 'The new routes.', body: mappingList.extend({ success: z.literal(true) }) },
      async handle({ agent, body }) {
        return { body: { success: true, mappings: await setRoutes(prisma, agent, body.mappings) } }
      },
    }),
  ]
}
