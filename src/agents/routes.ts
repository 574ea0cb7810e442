/** Every route of agents; each resource has a folder of its own. */
import type { Route } from '../http/route.ts'
import type { AgentServices } from './services.ts'

export function agentRoutes(_services: AgentServices): Route[] {
  return []
}
