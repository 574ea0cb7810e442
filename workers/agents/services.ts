import type { AgentdClient } from '../../src/agents/agentd-client.ts'
import type { Config } from '../../src/config.ts'
import type { Containers } from '../../src/containers/port.ts'
import type { Pool } from '../../src/db/pool.ts'
import type { Sealer } from '../../src/sealer.ts'
import type { Storages } from '../../src/storage/open.ts'

/** What the handlers of agents are built from. */
export interface AgentWorkerServices {
  pool: Pool
  containers: Containers
  agentd: AgentdClient
  sealer: Sealer
  config: Config
  storages: Storages
}
