/** The rows of an agent's path routes. */
import { crashPoint } from '../../crash-point.ts'
import { type Pool, type Queryable, transaction } from '../../db/pool.ts'
import { messages, notFound } from '../../errors.ts'
import type { Agent } from '../agent.ts'
import type { RouteMapping } from './schema.ts'

/** The path routes of an agent, by path. @param agentId id of the agent's row, not that of its host. */
export async function readRoutes(db: Queryable, agentId: string): Promise<RouteMapping[]> {
  const { rows } = await db.query<RouteMapping>(
    `SELECT port, path_prefix AS "pathPrefix", protected FROM agent_route WHERE agent_id = $1
     ORDER BY path_prefix COLLATE "C"`,
    [agentId],
  )
  return rows
}

/**
 * Replaces all path routes of an agent; what is open through one that is gone is closed.
 * @param db a transaction, or the change could be seen half done.
 * @param mappings as `newMappings` of schema.ts has them, at most one for each path.
 */
export async function replaceRoutes(
  db: Queryable,
  agent: Pick<Agent, 'id' | 'agentId'>,
  mappings: readonly RouteMapping[],
): Promise<void> {
  await db.query('DELETE FROM agent_route WHERE agent_id = $1', [agent.id])
  await db.query(
    `INSERT INTO agent_route (agent_id, path_prefix, port, protected)
     SELECT $1, * FROM unnest($2::text[], $3::int[], $4::bool[])`,
    [
      agent.id,
      mappings.map(({ pathPrefix }) => pathPrefix),
      mappings.map(({ port }) => port),
      mappings.map((mapping) => mapping.protected),
    ],
  )
  await db.query(`SELECT pg_notify('berth_agent', $1)`, [agent.agentId])
}

/** {@link replaceRoutes} for a live agent, one request after the other. @throws ApiError 404 when it was deleted. */
export async function setRoutes(
  pool: Pool,
  agent: Agent,
  mappings: readonly RouteMapping[],
): Promise<RouteMapping[]> {
  return transaction(pool, async (client) => {
    const { rowCount } = await client.query(
      'SELECT FROM agent WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE',
      [agent.id],
    )
    if (!rowCount) throw notFound(messages.noAgent)
    await replaceRoutes(client, agent, mappings)
    crashPoint('before-commit')
    return readRoutes(client, agent.id)
  })
}
