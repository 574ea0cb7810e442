import { AGENT_COLUMNS, type Agent } from '../../src/agents/agent.ts'
import type { Pool } from '../../src/db/pool.ts'
import type { Run } from '../../src/operations/runner.ts'

/**
 * Takes the agent of a run in hand: its epoch grows, so that agentd and the row refuse whoever had it before.
 * @param mark `starting` where the run brings the agent up, `deleted` where it removes one that is gone for readers.
 * @returns undefined when the agent is not there (any more), or this run has lost its lease.
 */
export async function takeAgent(
  pool: Pool,
  { operation }: Run,
  mark: 'starting' | 'deleted' | 'as it is',
): Promise<Agent | undefined> {
  const { rows } = await pool.query(
    `UPDATE agent SET epoch = agent.epoch + 1,
       status = CASE WHEN $4 = 'starting' THEN 'starting' ELSE status END,
       status_reason = CASE WHEN $4 = 'starting' THEN NULL ELSE status_reason END
     WHERE id = $1 AND removed_at IS NULL AND (deleted_at IS NOT NULL) = ($4 = 'deleted')
       AND EXISTS (SELECT FROM operation WHERE id = $2 AND epoch = $3 AND state = 'running')
     RETURNING ${AGENT_COLUMNS}`,
    [operation.targetId, operation.id, operation.epoch, mark],
  )
  return rows[0]
}
