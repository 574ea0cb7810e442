/** Changing an agent's gateway token, and what it is called. */
import { crashPoint } from '../../crash-point.ts'
import { type Pool, type Queryable, transaction } from '../../db/pool.ts'
import { messages, notFound } from '../../errors.ts'
import { AGENT_COLUMNS, type Agent, newGatewayToken } from '../agent.ts'
import { insertOperation, isRepeat } from '../operate.ts'
import type { MetadataChange } from './schema.ts'

/**
 * Gives an agent another gateway token. With the commit the old one opens nothing any more, platform tokens that
 * were minted under it neither; web processes close what it has opened, and the gateway is started again. A repeat
 * under the same idempotency key changes nothing.
 * @returns the token as it is now, and the operation that starts the gateway.
 * @throws ApiError 404 when the agent was deleted meanwhile, 422 when the key named another request.
 */
export function rotateGatewayToken(
  pool: Pool,
  agent: Agent,
  idempotencyKey: string | undefined,
): Promise<{ token: string; operationId: string }> {
  return transaction(pool, async (client) => {
    const { rows } = await client.query<{ token: string }>(
      'SELECT gateway_token AS token FROM agent WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE',
      [agent.id],
    )
    if (!rows[0]) throw notFound(messages.noAgent)
    const repeated = await isRepeat(client, agent, idempotencyKey)
    const request = `rotate ${agent.agentId}`
    const operationId = await insertOperation(client, agent, 'agent.restart', { idempotencyKey, request })
    if (repeated) return { token: rows[0].token, operationId }
    const token = newGatewayToken()
    await client.query(
      `WITH changed AS (
         UPDATE agent SET gateway_token = $2, updated_at = clock_timestamp() WHERE id = $1 RETURNING agent_id)
       SELECT pg_notify('berth_agent', agent_id) FROM changed`,
      [agent.id, token],
    )
    crashPoint('before-commit')
    return { token, operationId }
  })
}

/**
 * Changes what is given, and nothing else; null removes it. The agent itself gets to know it with its next restart.
 * @throws ApiError 404 when the agent was deleted meanwhile.
 */
export async function changeMetadata(db: Queryable, { id }: Agent, change: MetadataChange): Promise<Agent> {
  const { rows } = await db.query(
    `UPDATE agent SET name = coalesce(given.change->>'name', name),
       ${changed('description')}, ${changed('vibe')}, ${changed('emoji')}, updated_at = clock_timestamp()
     FROM (SELECT $2::jsonb AS change) given
     WHERE agent.id = $1 AND deleted_at IS NULL RETURNING ${AGENT_COLUMNS}`,
    [id, JSON.stringify(change)],
  )
  if (!rows[0]) throw notFound(messages.noAgent)
  return rows[0]
}

const changed = (column: string) =>
  `${column} = CASE WHEN given.change ? '${column}' THEN given.change->>'${column}' ELSE ${column} END`
