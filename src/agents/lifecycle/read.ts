/** Reads agents: lists of rows, and single agents with their current status from agentd. */
import type { AgentStatus } from '../../../agentd/protocol.ts'
import type { Queryable } from '../../db/pool.ts'
import { listAgentRows } from '../../db/statements/agents.ts'
import type { Agent, AgentStatusName } from '../agent.ts'
import type { AgentdClient } from '../agentd-client.ts'
import { readStatus } from '../agentd-status.ts'

/** How long a reader waits for an agent that does not respond. */
const LIVE_MS = 2000

/** A page of a workspace's agents, oldest first. @param options.after returns only agents created after this one. */
export async function listAgents(
  db: Queryable,
  workspaceId: string,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<Agent[]> {
  return (await listAgentRows.run(db, workspaceId, after ?? null, limit)).rows
}

/**
 * The state of an agent as agentd reports it; undefined if agentd cannot be reached, or if its response does not parse.
 * @param timeoutMs longer if no reader waits for it.
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

/** The gateway's status in the terms used for agents. A starting gateway cannot be asked yet. */
export function processStatus(
  live: AgentStatus | undefined,
  { status }: Pick<Agent, 'status'>,
): AgentStatusName {
  if (live?.gateway.state === 'ready') return 'running'
  if (live?.gateway.state === 'starting') return 'starting'
  return status === 'starting' ? 'starting' : 'not_running'
}
