/** Every route of agents; each resource has a folder of its own. */
import type { Route } from '../http/route.ts'
import { secretRoutes } from './secrets/routes.ts'
import type { AgentServices } from './services.ts'
import { tokenRoutes } from './tokens/routes.ts'

export function agentRoutes(services: AgentServices): Route[] {
  return [...secretRoutes(services), ...tokenRoutes(services)]
}
