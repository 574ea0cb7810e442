/** Reads agents: lists of rows, and single agents with their current status from agentd. */

import type { AgentStatus } from '../../../agentd/protocol.ts'
import type { Cursor } from '../../db/cursor.ts'
import type { Queryable } from '../../db/pool.ts'
import { listAgentRows } from '../../db/statements/agents.ts'
import type { Agent, AgentStatusName } from '../agent.ts'

/** A page of a workspace's agents, oldest first. @param options.after returns only agents created after this one. */
export async function listAgents(
  db: Queryable,
  workspaceId: string,
  { after, limit }: Cursor,
): Promise<Agent[]> {
  return (await listAgentRows.run(db, workspaceId, after ?? null, limit)).rows
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
