/** Routes of agents: their services and their declaration. */
import type { Config } from '../config.ts'
import type { Notifications } from '../db/notifications.ts'
import type { Pool } from '../db/pool.ts'
import type { PrismaClient } from '../db/prisma.ts'
import { routesOf } from '../http/route.ts'
import type { Bounds } from '../lib/bounds.ts'
import type { Encryption } from '../lib/encryption.ts'
import { operationRoutes } from '../operations/operation-route.ts'
import type { Operations } from '../operations/operations.ts'
import type { WorkerStatus } from '../operations/worker-status.ts'
import type { Storages } from '../storage/open.ts'
import type { AgentAccess } from './access.ts'
import type { Agent } from './agent.ts'
import type { AgentdClient } from './agentd-client.ts'
import type { AgentConnections } from './connections.ts'

/** The services that routes of agents are built from. */
export interface AgentServices {
  pool: Pool
  prisma: PrismaClient
  config: Config
  access: AgentAccess
  bounds: Bounds
  agentd: AgentdClient
  connections: AgentConnections
  operations: Operations
  workers: WorkerStatus
  encryption: Encryption
  notifications: Notifications
  storages: Storages
}

/**
 * Declares routes of one agent, with `:agentId` in their paths. Their handlers are only called for a live agent that the
 * caller may reach: 404 if it does not exist, 401 if it belongs to another workspace (contract 5.3).
 */
export const agentRoutesOf = routesOf<{ agent: Agent }>

/** Declares routes of one agent that start an operation, see `operation-route.ts`. */
export const agentOperationRoutes = operationRoutes<{ agent: Agent }>
