/**
 * Hand-written SQL: every request to an agent needs its row with its newest snapshot, which Prisma reads in two
 * statements. Other reasons are locks, and a condition on a hash of the token, which Prisma cannot express.
 */
import type { LocalModel } from '../../lib/net/local-models.ts'
import { Agent } from '../generated/columns.ts'
import { PLAN, type Plan } from './plan.ts'
import { columnOf, isoMillis, narrow, type Row, statement } from './statement.ts'

const { startOperationId, syncedAt, deletedAt, purgedAt, fileManifest, manifest, ...MORE } = Agent
const { modelKeyHash, proxyKeyHash, modelPausedAt, modelPausedBy, ...OWN } = MORE

/** A skill whose state in the agent differs from its row. */
export interface SkillProblem {
  name: string
  /**
   * `conflict`: the agent has a folder that would be lost; `content`: the content is incomplete here, or cannot be
   * written; `away`: the IPFS node is unavailable.
   */
  code: 'conflict' | 'content' | 'away' | 'disk_full'
  message: string
}

/** A protocol in which other agents may talk to an agent. */
export type Protocol = 'a2a' | 'mcp'

/** An agent that is not deleted, without rarely read fields. Times are ISO 8601 with milliseconds, UTC. */
const AGENT = {
  ...OWN,
  status: narrow<'starting' | 'running' | 'not_running'>('text'),
  appliedSecretVersions: narrow<Record<string, number>>('jsonb'),
  skillProblems: narrow<SkillProblem[]>('jsonb'),
  localModel: narrow<LocalModel | null>('jsonb'),
  scripts: narrow<Record<string, unknown>>('jsonb'),
  protocols: narrow<Protocol[]>('text[]'),
  createdAt: 'text',
  updatedAt: 'text',
  /** When its workspace was last found equal to its newest snapshot, or was saved as one; null before the first. */
  lastSync: 'text?',
  /** The agent's newest snapshot, and since when it is the newest. */
  snapshotCid: 'text?',
  snapshotsUpdatedAt: 'text?',
} as const
export type AgentRow = Row<typeof AGENT>

const ofNewestSnapshot = (value: string) =>
  `(SELECT ${value} FROM snapshot WHERE snapshot.agent_id = agent.id ORDER BY snapshot.id DESC LIMIT 1)`

const EXPRESSIONS: { [column in keyof typeof AGENT]?: string } = {
  lastSync: isoMillis('agent.synced_at'),
  snapshotCid: ofNewestSnapshot('snapshot.cid'),
  snapshotsUpdatedAt: ofNewestSnapshot(isoMillis('snapshot.created_at')),
  createdAt: isoMillis('agent.created_at'),
  updatedAt: isoMillis('agent.updated_at'),
}

/** The columns of an {@link AgentRow}, for a table or alias named `agent`. */
export const AGENT_COLUMNS = (Object.keys(AGENT) as (keyof typeof AGENT)[])
  .map((name) => `${EXPRESSIONS[name] ?? `agent.${columnOf(name)}`} AS "${name}"`)
  .join(', ')

/** Finds an agent by the id in its paths. */
export const findByAgentId = statement({
  name: 'agent-find',
  parameters: ['text'],
  columns: AGENT,
  text: `SELECT ${AGENT_COLUMNS} FROM agent WHERE agent_id = $1 AND deleted_at IS NULL`,
})

export const findByRowId = statement({
  name: 'agent-find-row',
  parameters: ['uuid'],
  columns: AGENT,
  text: `SELECT ${AGENT_COLUMNS} FROM agent WHERE agent.id = $1 AND deleted_at IS NULL`,
})

/** The agents of a workspace (`$1`), oldest first: `$3` of those younger than `$2`. */
export const listAgentRows = statement({
  name: 'agent-list',
  parameters: ['uuid', 'uuid?', 'int8'],
  columns: AGENT,
  text: `SELECT ${AGENT_COLUMNS} FROM agent
    WHERE workspace_id = $1 AND deleted_at IS NULL AND id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
    ORDER BY workspace_id, id LIMIT $3`,
})

/** A worker reads every few seconds what agents use; an older reading belongs to an agent that does not respond. */
const USAGE_SECONDS = 60

/**
 * The latest usage of the running agents of a workspace (`$1`), oldest agent first: `$3` of the agents younger than
 * `$2`.
 */
export const listAgentUsage = statement({
  name: 'agent-usage',
  parameters: ['uuid', 'uuid?', 'int8'],
  columns: { id: 'uuid', agentId: 'text', at: 'text', memoryBytes: 'float8', memoryLimitBytes: 'float8?' },
  text: `SELECT agent.id, agent.agent_id AS "agentId", ${isoMillis('u.at')} AS at,
      u.memory_bytes::float8 AS "memoryBytes", u.memory_limit_bytes::float8 AS "memoryLimitBytes"
    FROM agent JOIN agent_usage u ON u.agent_id = agent.id
    WHERE workspace_id = $1 AND deleted_at IS NULL AND id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
      AND status <> 'not_running' AND u.at > now() - interval '${USAGE_SECONDS} s'
    ORDER BY workspace_id, id LIMIT $3`,
})

/**
 * Returns no row if the agent was deleted. Rows that refer to the agent can still be written while the lock is held.
 */
export const lockAgentRow = statement({
  name: 'agent-lock',
  parameters: ['uuid'],
  columns: { id: 'uuid' },
  text: 'SELECT id FROM agent WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE',
})

/** Like {@link lockAgentRow}, but also blocks rows that refer to the agent. */
export const lockAgentToDelete = statement({
  name: 'agent-lock-delete',
  parameters: ['uuid'],
  columns: { id: 'uuid' },
  text: 'SELECT id FROM agent WHERE id = $1 AND deleted_at IS NULL FOR UPDATE',
})

/** The fingerprint of the gateway token of the row `agent`, which platform tokens carry. */
const TOKEN_FINGERPRINT = `left(encode(sha256(agent.gateway_token::bytea), 'hex'), 16)`

const PRINCIPAL = {
  agentId: 'text',
  workspaceId: 'uuid',
  userId: 'uuid',
  fingerprint: 'text',
  plan: narrow<Plan>('json'),
} as const
const SELECT_PRINCIPAL = `SELECT agent.agent_id AS "agentId", agent.workspace_id AS "workspaceId",
    agent.user_id AS "userId", ${TOKEN_FINGERPRINT} AS fingerprint, ${PLAN} AS plan
  FROM agent JOIN workspace w ON w.id = agent.workspace_id JOIN plan p ON p.name = w.plan
  WHERE agent.deleted_at IS NULL`

export const findByGatewayToken = statement({
  name: 'agent-principal-gateway',
  parameters: ['text'],
  columns: PRINCIPAL,
  text: `${SELECT_PRINCIPAL} AND agent.gateway_token = $1`,
})

/** Finds an agent by the id in its paths and the {@link TOKEN_FINGERPRINT} of its token. */
export const findByTokenFingerprint = statement({
  name: 'agent-principal-platform',
  parameters: ['text', 'text'],
  columns: PRINCIPAL,
  text: `${SELECT_PRINCIPAL} AND agent.agent_id = $1 AND ${TOKEN_FINGERPRINT} = $2`,
})

/** The columns of a `domain` row that open calls depend on, as one text. */
export const DOMAIN_FINGERPRINT = `domain.id || ':' || domain.target_port || ':' || domain.protected::text`
/** The same for an `agent_route` row. */
export const ROUTE_FINGERPRINT = `agent_route.agent_id || agent_route.path_prefix || ':' || agent_route.port || ':' ||
  agent_route.protected::text`

/**
 * The fingerprints of everything that open calls depend on: of keys (`$1`), of agents (`$2`), and of agents' domains
 * and routes (`$3`). Every process reads them every few seconds.
 */
export const readFingerprints = statement({
  name: 'open-calls',
  parameters: ['uuid[]', 'text[]', 'text[]'],
  columns: { fingerprint: 'text' },
  text: `SELECT k.id || ':' || m.role || ':' || u.is_admin AS fingerprint FROM api_key k
      JOIN membership m ON m.workspace_id = k.workspace_id AND m.user_id = k.user_id
      JOIN app_user u ON u.id = m.user_id
    WHERE k.id = ANY($1) AND k.revoked_at IS NULL
    UNION ALL
    SELECT unnest(ARRAY[agent_id, agent_id || ':' || ${TOKEN_FINGERPRINT}]) FROM agent
    WHERE agent_id = ANY($2) AND deleted_at IS NULL
    UNION ALL
    SELECT ${DOMAIN_FINGERPRINT} FROM domain JOIN agent ON agent.id = domain.agent_id
    WHERE agent.agent_id = ANY($3) AND domain.status = 'verified'
    UNION ALL
    SELECT ${ROUTE_FINGERPRINT} FROM agent_route JOIN agent ON agent.id = agent_route.agent_id
    WHERE agent.agent_id = ANY($3)`,
})
