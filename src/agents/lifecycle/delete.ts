import { crashPoint } from '../../crash-point.ts'
import { type Pool, transaction } from '../../db/pool.ts'
import { messages, notFound } from '../../errors.ts'
import type { Agent } from '../agent.ts'
import { insertOperation } from '../operate.ts'
import { removeSnapshots } from '../snapshots/store.ts'
import { forgetArchived } from '../templates/submit.ts'

/**
 * Deletes an agent: from the commit on it is gone for readers, its sockets are closed, its secrets, skills and names are
 * free, and the content of its snapshots is released. What waited or ran for it is cancelled, and an operation removes
 * its container and volume.
 * @returns the operation's id. @throws ApiError 404 when it was deleted already.
 */
export async function deleteAgent(pool: Pool, agent: Agent): Promise<string> {
  return transaction(pool, async (client) => {
    // The agent's row is locked before its operations', as by every writer.
    const { rowCount } = await client.query(
      'SELECT FROM agent WHERE id = $1 AND deleted_at IS NULL FOR UPDATE',
      [agent.id],
    )
    if (!rowCount) throw notFound(messages.noAgent)
    await client.query(
      `WITH changed AS (
         UPDATE operation SET cancel_requested = true, version = version + 1,
           state = CASE state WHEN 'queued' THEN 'canceled' ELSE state END,
           finished_at = CASE state WHEN 'queued' THEN now() END
         WHERE exclusive_key = $1 AND state IN ('queued', 'running') RETURNING id)
       SELECT pg_notify('berth_operation', id::text) FROM changed`,
      [`agent:${agent.id}`],
    )
    const operationId = await insertOperation(client, agent, 'agent.delete')
    await client.query('UPDATE agent SET deleted_at = now() WHERE id = $1', [agent.id])
    await client.query('DELETE FROM agent_secret WHERE agent_id = $1', [agent.id])
    await client.query('DELETE FROM agent_skill WHERE agent_id = $1', [agent.id])
    await client.query('DELETE FROM agent_channel WHERE agent_id = $1', [agent.id])
    await removeSnapshots(client, agent)
    await forgetArchived(client, agent.workspaceId)
    // Its names are free for others at once.
    await client.query('DELETE FROM domain WHERE agent_id = $1', [agent.id])
    await client.query('DELETE FROM agent_route WHERE agent_id = $1', [agent.id])
    await client.query(`SELECT pg_notify('berth_agent', $1)`, [agent.agentId])
    crashPoint('before-commit')
    return operationId
  })
}
