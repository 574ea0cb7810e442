import type { Queryable } from '../../db/pool.ts'
import type { Agent } from '../agent.ts'

/** Why the last sync of an agent failed, for people; undefined where it did not, or there was none. */
export async function lastFailure(
  db: Queryable,
  { agentId }: Pick<Agent, 'agentId'>,
): Promise<string | undefined> {
  const { rows } = await db.query<{ state: string; reason: string }>(
    `SELECT state, coalesce(result->>'detail', error) AS reason FROM operation
     WHERE agent_id = $1 AND kind = 'agent.sync' AND state IN ('succeeded', 'failed') ORDER BY id DESC LIMIT 1`,
    [agentId],
  )
  return rows[0]?.state === 'failed' ? rows[0].reason : undefined
}
