/** Reading agents: lists of rows, and one agent with what its agentd says of it now. */
import type { AgentStatus } from '../../../agentd/protocol.ts'
import type { Queryable } from '../../db/pool.ts'
import { listAgentRows } from '../../db/statements/agents.ts'
import type { Agent, AgentStatusName } from '../agent.ts'
import type { AgentdClient } from '../agentd-client.ts'
import { readStatus } from '../agentd-status.ts'

/** A reader waits no longer for an agent that does not answer. */
const LIVE_MS = 2000

/** A page of a workspace's agents, the oldest first. @param options.after only agents younger than the one with this id. */
export async function listAgents(
  db: Queryable,
  workspaceId: string,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<Agent[]> {
  return (await listAgentRows.run(db, workspaceId, after ?? null, limit)).rows
}

/**
 * The state of an agent as agentd has it; undefined where it cannot be reached, or its answer does not parse.
 * @param timeoutMs longer where no reader waits for it.
 */
export async function fetchLiveStatus(
  agentd: AgentdClient,
  agent: Agent,
  signal: AbortSignal,
  timeoutMs = LIVE_MS,
): Promise<AgentStatus | undefined> {
  if (!agent.address) return undefined
  return readStatus(agentd, agent, { timeoutMs, signal }).catch(() => undefined)
}

/** How the gateway is, in the words that agents have for it: one that comes up cannot be asked yet. */
export function processStatus(
  live: AgentStatus | undefined,
  { status }: Pick<Agent, 'status'>,
): AgentStatusName {
  if (live?.gateway.state === 'ready') return 'running'
  if (live?.gateway.state === 'starting') return 'starting'
  return status === 'starting' ? 'starting' : 'not_running'
}
