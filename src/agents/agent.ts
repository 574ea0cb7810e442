/** The agent's row, and finding it. */
import { randomInt, randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Principal } from '../accounts/authenticator.ts'
import { grants } from '../accounts/scopes.ts'
import type { Queryable } from '../db/pool.ts'

export type AgentStatusName = 'starting' | 'running' | 'not_running'

/** A live agent. Times are ISO 8601 with milliseconds, UTC (compatibility 2.3). */
export interface Agent {
  id: string
  agentId: string
  workspaceId: string
  userId: string
  name: string
  description: string | null
  vibe: string | null
  emoji: string | null
  userName: string | null
  userEmail: string | null
  engine: string
  engineVersion: string
  gatewayToken: string
  status: AgentStatusName
  statusReason: string | null
  address: string | null
  epoch: number
  /** The version of each secret that the running gateway was given. */
  applied: Record<string, number>
  scripts: Record<string, unknown>
  /** The template that it was made from. */
  templateId: string | null
  /** When its workspace was last found the same as, or became, its newest snapshot; null before the first. */
  lastSync: string | null
  /** Its newest snapshot, and since when it is. */
  snapshotCid: string | null
  snapshotsUpdatedAt: string | null
  createdAt: string
  updatedAt: string
}

/** A timestamp column as ISO 8601 text with milliseconds (compatibility 2.3, 2.6). */
export const isoMillis = (column: string) =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

const ofNewestSnapshot = (value: string) =>
  `(SELECT ${value} FROM snapshot WHERE snapshot.agent_id = agent.id ORDER BY snapshot.id DESC LIMIT 1)`

/** The columns of an {@link Agent}, of a table or alias named `agent`. */
export const AGENT_COLUMNS = `agent.id, agent.agent_id AS "agentId", agent.workspace_id AS "workspaceId",
  agent.user_id AS "userId", agent.name, agent.description, agent.vibe, agent.emoji,
  agent.user_name AS "userName", agent.user_email AS "userEmail", agent.engine,
  agent.engine_version AS "engineVersion", agent.gateway_token AS "gatewayToken", agent.status,
  agent.status_reason AS "statusReason", agent.address, agent.epoch, agent.applied, agent.scripts,
  agent.template_id AS "templateId",
  ${isoMillis('agent.synced_at')} AS "lastSync", ${ofNewestSnapshot('snapshot.cid')} AS "snapshotCid",
  ${ofNewestSnapshot(isoMillis('snapshot.created_at'))} AS "snapshotsUpdatedAt",
  ${isoMillis('agent.created_at')} AS "createdAt", ${isoMillis('agent.updated_at')} AS "updatedAt"`

/** A live agent of any workspace, by the id in its paths. */
export async function findAgent(db: Queryable, agentId: string): Promise<Agent | undefined> {
  const { rows } = await db.query({
    name: 'agent-find',
    text: `SELECT ${AGENT_COLUMNS} FROM agent WHERE agent_id = $1 AND deleted_at IS NULL`,
    values: [agentId],
  })
  return rows[0]
}

/** A live agent by the id of its row. */
export async function findAgentById(db: Queryable, id: string): Promise<Agent | undefined> {
  const { rows } = await db.query(
    `SELECT ${AGENT_COLUMNS} FROM agent WHERE agent.id = $1 AND deleted_at IS NULL`,
    [id],
  )
  return rows[0]
}

/** The files of an agent's newest snapshot, a line `<size> <path>` each. It is long: only who shows it reads it. */
export async function readFileManifest(db: Queryable, { id }: Pick<Agent, 'id'>): Promise<string | null> {
  const { rows } = await db.query('SELECT file_manifest FROM agent WHERE id = $1', [id])
  return rows[0]?.file_manifest ?? null
}

export const AGENT_ID = /^x[a-z0-9]{7}$/
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** A new id: 8 characters, DNS-safe (compatibility 2.3). The table refuses one that was given out before. */
export function newAgentId(): string {
  return `x${Array.from({ length: 7 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')}`
}

export const newGatewayToken = (): string => randomUUID()

/** The agent as clients see it (compatibility 2.3). */
export const agentRecord = z.object({
  agentId: z.string(),
  userId: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  vibe: z.string().nullable(),
  emoji: z.string().nullable(),
  gatewayToken: z
    .string()
    .nullable()
    .describe('Opens the agent’s own host, and its git. Null for who may only read.'),
  createdAt: z.string(),
  updatedAt: z.string(),
  status: z.enum(['starting', 'running', 'not_running']),
  statusReason: z.string().nullable().describe('Why it does not run.'),
  lastSync: z
    .string()
    .nullable()
    .describe('When its workspace was last found the same as its newest snapshot, or became it.'),
  snapshotCid: z.string().nullable().describe('Its newest snapshot.'),
  fileManifest: z
    .string()
    .nullable()
    .describe(
      'The files of its newest snapshot, a line `<size> <path>` each; at most 64 KiB, and a last line that begins ' +
        'with `…` where there are more. Null but where one agent is read.',
    ),
  snapshotsUpdatedAt: z.string().nullable().describe('Of its newest snapshot.'),
  engine: z.string(),
  agentVersion: z.string().describe('Version of the engine.'),
})
export type AgentRecord = z.output<typeof agentRecord>

/**
 * The agent as `reader` may see it: the gateway token lets its holder change the agent, so a key that may only read
 * does not get it.
 * @param fileManifest see {@link readFileManifest}.
 */
export function toRecord(
  agent: Agent,
  reader: Pick<Principal, 'role' | 'scopes'>,
  fileManifest: string | null = null,
): AgentRecord {
  const { agentId, userId, name, description, vibe, emoji, createdAt, updatedAt } = agent
  const mayWrite = reader.role !== 'viewer' && grants(reader.scopes, 'org:agents:write')
  const { status, statusReason, engine, engineVersion: agentVersion } = agent
  const { lastSync, snapshotCid, snapshotsUpdatedAt } = agent
  return {
    agentId,
    userId,
    name,
    description,
    vibe,
    emoji,
    gatewayToken: mayWrite ? agent.gatewayToken : null,
    createdAt,
    updatedAt,
    status,
    statusReason,
    lastSync,
    snapshotCid,
    fileManifest,
    snapshotsUpdatedAt,
    engine,
    agentVersion,
  }
}
