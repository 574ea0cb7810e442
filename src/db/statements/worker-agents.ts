/**
 * Workers' statements about agents. Hand-written SQL: each read joins several tables as of one moment, which Prisma
 * reads one after the other, and an idle worker saves the 35 MB that Prisma uses after its first query.
 */
import { hasOwner } from './pool.ts'
import { narrow, statement } from './statement.ts'

// Not EXISTS: for many agents, the planner would rather read all waiting operations once.
const BUSY = `coalesce((
    SELECT true FROM operation WHERE concurrency_key = 'agent:' || a.id AND state IN ('queued', 'running') LIMIT 1), false)`

/**
 * Agents that may have been lost in an outage: only a few have an operation that ended this way. An array, which no
 * plan joins with all agents.
 */
const MAYBE_LOST = `ARRAY(SELECT agent_id FROM operation WHERE error_code = 'outage' AND agent_id IS NOT NULL)`

/**
 * Agents that a reconciler compares: all that should run, that are being deleted or may be lost, and the agents `$1`,
 * which have a running sandbox. Most others are stopped intentionally, and nothing is read of them.
 */
export const readComparedAgents = statement({
  name: 'worker-agents',
  parameters: ['text[]'],
  columns: {
    id: 'uuid',
    agentId: 'text',
    workspaceId: 'uuid',
    status: narrow<'starting' | 'running' | 'not_running'>('text'),
    address: 'text?',
    epoch: 'int4',
    statusReason: 'text?',
    scripts: narrow<Record<string, unknown>>('jsonb'),
    deleted: 'bool',
    /** An operation is waiting or running. */
    busy: 'bool',
    /**
     * The agent does not run because a component was unavailable for too long: it is started once all components are
     * available.
     */
    lostByOutage: 'bool',
  },
  text: `SELECT a.id, a.agent_id AS "agentId", a.workspace_id AS "workspaceId", a.status, a.address, a.epoch,
      a.status_reason AS "statusReason", a.scripts, a.deleted_at IS NOT NULL AS deleted, ${BUSY} AS busy,
      a.status = 'not_running' AND 'outage' = (
        SELECT error_code FROM operation o WHERE o.agent_id = a.agent_id AND o.finished_at IS NOT NULL
          AND o.kind IN ('agent.provision', 'agent.restart')
        ORDER BY id DESC LIMIT 1) IS TRUE AS "lostByOutage"
    FROM agent a WHERE a.purged_at IS NULL AND a.id = ANY (ARRAY(
      SELECT id FROM agent WHERE status IN ('starting', 'running') AND deleted_at IS NULL
      UNION SELECT id FROM agent WHERE deleted_at IS NOT NULL AND purged_at IS NULL
      UNION SELECT id FROM agent WHERE agent_id = ANY ($1)
      UNION SELECT id FROM agent WHERE agent_id = ANY (${MAYBE_LOST})))`,
})

/** The agents among `$1` that have no row, or whose deletion is complete. */
export const readUnknownAgents = statement({
  name: 'worker-unknown-agents',
  parameters: ['text[]'],
  columns: { agentId: 'text', purged: 'bool' },
  text: `SELECT listed.id AS "agentId", a.id IS NOT NULL AS purged
    FROM unnest($1::text[]) AS listed (id) LEFT JOIN agent a ON a.agent_id = listed.id
    WHERE a.id IS NULL OR a.purged_at IS NOT NULL`,
})

/** Stores the agents' current usage: `$1` is JSON, a list of `{id, usedBytes, limitBytes}`. */
export const keepAgentUsage = statement({
  name: 'worker-usage',
  parameters: ['text'],
  columns: {},
  text: `INSERT INTO agent_usage (agent_id, memory_bytes, memory_limit_bytes)
    SELECT seen.id, seen."usedBytes", seen."limitBytes"
    FROM json_to_recordset($1::text::json) AS seen (id uuid, "usedBytes" bigint, "limitBytes" bigint)
      -- The row of a spare may go at any moment.
      JOIN agent ON agent.id = seen.id AND ${hasOwner('agent')}
    ON CONFLICT (agent_id) DO UPDATE
      SET at = now(), memory_bytes = EXCLUDED.memory_bytes, memory_limit_bytes = EXCLUDED.memory_limit_bytes`,
})

/**
 * How often the reconciler has restarted the agent `$1` for the reason `$3` in the last `$2` ms, and how long ago the
 * last of these restarts ended. It counts only restarts since the last one that the reconciler did not cause.
 */
export const readRestarts = statement({
  name: 'worker-restarts',
  parameters: ['text', 'float8', 'text'],
  columns: { count: 'int4', agoMs: 'float8?' },
  text: `SELECT count(*)::int AS count, (extract(epoch FROM now() - max(finished_at)) * 1000)::float8 AS "agoMs"
    FROM operation
    WHERE agent_id = $1 AND kind = 'agent.restart' AND input->>'reason' = $3
      AND created_at > now() - $2 * interval '1 ms'
      AND created_at > coalesce((
        SELECT max(created_at) FROM operation
        WHERE agent_id = $1 AND kind = 'agent.restart' AND NOT coalesce(input ? 'reason', false)), '-infinity')`,
})

/**
 * Versions of agents that have a sandbox, found by skipping through the index, and of those that are moving to another
 * version.
 */
export const readVersionsInUse = statement({
  name: 'worker-versions',
  parameters: [],
  columns: { version: 'text' },
  text: `WITH RECURSIVE used AS (
      (SELECT engine_version AS version FROM agent WHERE purged_at IS NULL ORDER BY engine_version LIMIT 1)
      UNION ALL
      SELECT (SELECT engine_version FROM agent WHERE purged_at IS NULL AND engine_version > used.version
              ORDER BY engine_version LIMIT 1)
      FROM used WHERE used.version IS NOT NULL
    ) SELECT version FROM used WHERE version IS NOT NULL
    UNION SELECT input->>'version' FROM operation
      WHERE kind = 'agent.restart' AND state IN ('queued', 'running') AND input ? 'version'`,
})

/**
 * Records that the runtime `$1` has exactly the versions `$2` of the engine, and why no agent can run each there (`$3`,
 * empty if agents can).
 */
export const keepVersions = statement({
  name: 'worker-keep-versions',
  parameters: ['text', 'text[]', 'text[]'],
  columns: {},
  text: `WITH gone AS (DELETE FROM engine_version WHERE runtime = $1 AND version <> ALL ($2))
    INSERT INTO engine_version AS known (engine, version, runtime, obstacle)
    SELECT 'openclaw', version, $1, nullif(obstacle, '')
    FROM unnest($2::text[], $3::text[]) AS found (version, obstacle)
    ON CONFLICT (engine, version, runtime) DO UPDATE SET obstacle = excluded.obstacle
      WHERE known.obstacle IS DISTINCT FROM excluded.obstacle`,
})

/** The skills that are attached to the agent `$1`, by name. */
export const readWantedSkills = statement({
  name: 'worker-skills',
  parameters: ['uuid'],
  columns: { name: 'text', cid: 'text', network: narrow<'public' | 'private'>('text') },
  text: `SELECT s.name, v.cid, v.network FROM agent_skill held JOIN skill s ON s.id = held.skill_id
      JOIN skill_version v ON v.id = held.version_id WHERE held.agent_id = $1 ORDER BY s.name`,
})

/** How often an operation failed since it last succeeded, and how long ago the last failure was. */
interface Failures {
  count: number
  agoMs: number
}

/**
 * Running agents without waiting or running operations: the commit of their newest snapshot and, by kind of operation,
 * the failures among the last `$1`.
 */
export const readRunningAgents = statement({
  name: 'worker-running',
  parameters: ['int8'],
  columns: {
    id: 'uuid',
    agentId: 'text',
    workspaceId: 'uuid',
    address: 'text',
    commitSha: 'text?',
    failures: narrow<{ 'agent.sync'?: Failures; 'agent.push'?: Failures }>('json'),
  },
  text: `SELECT a.id, a.agent_id AS "agentId", a.workspace_id AS "workspaceId", a.address,
      (SELECT commit_sha FROM snapshot WHERE agent_id = a.id ORDER BY id DESC LIMIT 1) AS "commitSha",
      coalesce((
        SELECT json_object_agg(kind, json_build_object('count', count, 'agoMs', ago_ms)) FROM (
          SELECT kind, count(*) AS count, extract(epoch FROM now() - max(finished_at)) * 1000 AS ago_ms
          FROM (
            SELECT kind, finished_at, state,
              -- Of this one or a later one.
              bool_or(state = 'succeeded') OVER (PARTITION BY kind ORDER BY id DESC) AS has_succeeded
            FROM (SELECT id, kind, finished_at, state FROM operation
                  WHERE agent_id = a.agent_id AND kind IN ('agent.sync', 'agent.push') AND finished_at IS NOT NULL
                  ORDER BY id DESC LIMIT $1) latest
          ) marked
          WHERE NOT has_succeeded AND state = 'failed' GROUP BY kind
        ) counted), '{}') AS failures
    FROM agent a
    WHERE a.status = 'running' AND a.deleted_at IS NULL AND a.address IS NOT NULL AND ${hasOwner('a')}
      AND NOT ${BUSY}`,
})
