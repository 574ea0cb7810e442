/**
 * Agents that are only rows: enough for routes that do not call the engine, and a thousand times as fast as real ones.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import { insertAgentRow } from '../../support/agent-row.ts'
import type { Client } from '../../support/client.ts'
import type { Context, Workspace } from '../context.ts'
import { file, type Part, upload } from '../upload-form.ts'

/** The refusal of an agent's own token if a setting would allow the request. */
export const AGENT_ONLY =
  "An agent's token is good for that agent only: BERTH_PLATFORM_TOKEN_SCOPE=workspace would let its platform token do more"

export interface RowAgent {
  /** The id of the row. */
  id: string
  agentId: string
  name: string
  gatewayToken: string
  /** `/v0/agents/<agentId>`. */
  path: string
  /** A client with the agent's gateway token. */
  gateway: Client
}

/**
 * An agent of a workspace for which no container was ever created. Its row says that the container was removed, so that
 * workers and reconcilers leave it alone; operations on it end without effect.
 */
export async function insertAgent(
  { anonymous, sql }: Pick<Context, 'anonymous' | 'sql'>,
  { id: workspaceId }: Pick<Workspace, 'id'>,
  name = 'Row',
): Promise<RowAgent> {
  const row = { workspaceId, name, status: 'not_running', purgedAt: new Date() }
  const agent = await insertAgentRow({ query: sql }, row)
  return { ...agent, path: `/v0/agents/${agent.agentId}`, gateway: anonymous.as(agent.gatewayToken) }
}

/** The newest snapshot in an agent's history, with this tree. Its commit is in no repository. */
export async function insertSnapshot(
  { sql }: Pick<Context, 'sql'>,
  { id: workspaceId, api }: Pick<Workspace, 'id' | 'api'>,
  agent: Pick<RowAgent, 'id'>,
  tree: Record<string, string>,
): Promise<{ cid: string; commitSha: string }> {
  const parts: Part[] = Object.entries(tree).map(([path, text]) => file(text, `tree/${path}`))
  const { id, cid } = await upload(api, ...parts, ['network', 'private'])
  const commitSha = randomBytes(20).toString('hex')
  await sql(
    `INSERT INTO snapshot (id, agent_id, workspace_id, user_id, network, cid, commit_sha, commit_object, tree_sha)
     VALUES ($1, $2, $3, $4, 'private', $5, $6, '', $6)`,
    [uuidv7(), agent.id, workspaceId, randomUUID(), cid, commitSha],
  )
  // From now on only the snapshot keeps the content.
  await api.delete(`/v3/files/private/${id}`)
  return { cid, commitSha }
}
