/** What the routes of agents are built from. */
import type { Config } from '../config.ts'
import type { Notifications } from '../db/notifications.ts'
import type { Pool } from '../db/pool.ts'
import type { AgentConnections } from '../edge/agents/connections.ts'
import type { Sealer } from '../sealer.ts'
import type { Storages } from '../storage/open.ts'
import type { AgentAccess } from './access.ts'
import type { AgentdClient } from './agentd-client.ts'
import type { AgentOperations } from './operate.ts'

export interface AgentServices {
  pool: Pool
  config: Config
  access: AgentAccess
  agentd: AgentdClient
  connections: AgentConnections
  operations: AgentOperations
  sealer: Sealer
  notifications: Notifications
  storages: Storages
}
