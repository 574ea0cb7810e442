/**
 * The pool: spares are agents of a workspace that does not exist, so nothing that is bound to a workspace finds them.
 * Hand-written SQL: a spare is taken in one step, which skips those that others are taking.
 */
import { narrow, statement } from './statement.ts'

export const POOL_WORKSPACE = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

export const isSpare = ({ workspaceId }: { workspaceId: string }): boolean => workspaceId === POOL_WORKSPACE

/** For statements about agents of all workspaces: a condition on the table or alias `agent`. */
export const hasOwner = (agent: string): string => `${agent}.workspace_id <> '${POOL_WORKSPACE}'`

const busy = (agent: string) => `EXISTS (SELECT FROM operation
  WHERE concurrency_key = 'agent:' || ${agent}.id AND state IN ('queued', 'running'))`

/** Takes a running spare of version `$1` out of the pool: its row is gone, and its sandbox belongs to the caller. */
export const takeSpare = statement({
  name: 'spare-take',
  parameters: ['text'],
  columns: {
    id: 'uuid',
    agentId: 'text',
    gatewayToken: 'text',
    address: 'text?',
    epoch: 'int4',
    /** The operation whose keys its gateway has. */
    operationId: 'uuid?',
    /** A hash of the settings that it was started with. */
    settings: 'text?',
  },
  text: `DELETE FROM agent WHERE id = (
      SELECT id FROM agent a WHERE workspace_id = '${POOL_WORKSPACE}' AND deleted_at IS NULL AND status = 'running'
        AND engine_version = $1 AND NOT ${busy('a')} ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, agent_id AS "agentId", gateway_token AS "gatewayToken", address, epoch,
      start_operation_id AS "operationId", description AS settings`,
})

/** The spares, oldest first. */
export const readSpares = statement({
  name: 'spare-list',
  parameters: [],
  columns: {
    id: 'uuid',
    agentId: 'text',
    workspaceId: 'uuid',
    status: narrow<'starting' | 'running' | 'not_running'>('text'),
    /** A hash of the settings that it was started with. */
    settings: 'text?',
  },
  text: `SELECT id, agent_id AS "agentId", workspace_id AS "workspaceId", status, description AS settings FROM agent
    WHERE workspace_id = '${POOL_WORKSPACE}' AND deleted_at IS NULL ORDER BY id`,
})

/** Whether the pool may start another spare: no owner's start waits, and none of its own failed in the last `$1` ms. */
export const readPoolRoom = statement({
  name: 'spare-room',
  parameters: ['float8'],
  columns: { mayStart: 'bool' },
  text: `SELECT NOT EXISTS (SELECT FROM operation WHERE kind = ANY ('{agent.provision,agent.restart}')
        AND state IN ('queued', 'running') AND workspace_id <> '${POOL_WORKSPACE}')
      AND NOT EXISTS (SELECT FROM operation WHERE workspace_id = '${POOL_WORKSPACE}' AND state = 'failed'
        AND finished_at > now() - $1 * interval '1 ms') AS "mayStart"`,
})

/** Whether an owner's operation waits for a place among those on agents. */
export const readOwnersWait = statement({
  name: 'spare-yield',
  parameters: [],
  columns: { wait: 'bool' },
  text: `SELECT EXISTS (SELECT FROM operation WHERE queue = 'agents' AND state = 'queued'
    AND next_attempt_at <= now() AND workspace_id <> '${POOL_WORKSPACE}') AS wait`,
})
