/** Routes of agents: their services and their declaration. */
import type { Core } from '../core.ts'
import { routesOf } from '../http/route.ts'
import { operationRoutes } from '../operations/operation-route.ts'
import type { AgentAccess } from './access.ts'
import type { Agent } from './agent.ts'
import type { AgentdClient } from './agentd-client.ts'
import type { AgentConnections } from './connections.ts'

/** The services that routes of agents are built from. */
export interface AgentServices extends Core {
  access: AgentAccess
  agentd: AgentdClient
  connections: AgentConnections
}

/**
 * Declares routes of one agent, with `:agentId` in their paths. Their handlers are only called for a live agent that the
 * caller may reach: 404 if it does not exist, 401 if it belongs to another workspace (contract 5.3).
 */
export const agentRoutesOf = routesOf<{ agent: Agent }>

/** Declares routes of one agent that start an operation, see `operation-route.ts`. */
export const agentOperationRoutes = operationRoutes<{ agent: Agent }>
