/** Agents that are rows only: enough for routes that ask no engine, and a thousand times as fast as real ones. */
import { randomUUID } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import { newAgentId } from '../../../src/agents/agent.ts'
import type { Client } from '../../support/client.ts'
import type { Context, Workspace } from '../context.ts'

export interface RowAgent {
  /** Of the row. */
  id: string
  agentId: string
  name: string
  gatewayToken: string
  /** `/v0/agents/<agentId>`. */
  path: string
  /** A client with its gateway token. */
  gateway: Client
}

/**
 * An agent of a workspace for which no container was ever made. Its row says that the container was removed, so that
 * workers and reconcilers leave it alone; operations on it end without effect.
 */
export async function insertAgent(
  { anonymous, sql }: Pick<Context, 'anonymous' | 'sql'>,
  { id: workspaceId }: Pick<Workspace, 'id'>,
  name = 'Row',
): Promise<RowAgent> {
  const agent = { id: uuidv7(), agentId: newAgentId(), name, gatewayToken: randomUUID() }
  await sql(
    `INSERT INTO agent (id, agent_id, workspace_id, user_id, name, engine, engine_version, gateway_token, status,
       removed_at)
     VALUES ($1, $2, $3, $4, $5, 'openclaw', '2026.9.6', $6, 'not_running', now())`,
    [agent.id, agent.agentId, workspaceId, randomUUID(), name, agent.gatewayToken],
  )
  return { ...agent, path: `/v0/agents/${agent.agentId}`, gateway: anonymous.as(agent.gatewayToken) }
}
