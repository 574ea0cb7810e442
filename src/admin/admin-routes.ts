/** Every route of the instance, for its admins. None takes an agent's token. */
import type { Route } from '../http/route.ts'
import { healthRoutes } from './health-routes.ts'
import type { AdminServices } from './services.ts'
import { usageRoutes } from './usage-routes.ts'
import { workspaceRoutes } from './workspace-routes.ts'

export function adminRoutes(services: AdminServices): Route[] {
  return [...workspaceRoutes(services), ...usageRoutes(services), ...healthRoutes(services)]
}
