import type { Run } from '../../operations/runner.ts'
import type { Agent } from '../agent.ts'
import type { AgentdTarget } from '../agentd-client.ts'
import type { AgentServices } from '../services.ts'

/** What the parts of a manifest are applied with. */
export interface Applying {
  services: Pick<AgentServices, 'pool' | 'sealer' | 'config' | 'agentd' | 'storages'>
  run: Run
  agent: Agent
  target: AgentdTarget
}

/** How applying a part went; an ApiError or AgentdError that it throws is a problem as well. */
export interface PartResult {
  /** What could not be done, for the owner of the agent. */
  problems?: string[]
}
