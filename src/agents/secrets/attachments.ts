/** Which secrets an agent gets: attached to it, and given to its gateway at its next start. */
import type { PoolClient } from 'pg'
import { type Pool, type Queryable, transaction } from '../../db/pool.ts'
import { badRequest, contractError, messages, notFound } from '../../errors.ts'
import { type Agent, isoMillis } from '../agent.ts'
import { insertOperation } from '../operate.ts'
import { describeConflict, providerOf } from './conflicts.ts'
import type { AgentSecret } from './schema.ts'
import { noSecret } from './service.ts'

/**
 * Together with {@link MAX_VALUE_BYTES} of each, less than the 2 MiB that Linux gives the arguments and the
 * environment of a program.
 */
const MAX_ATTACHED = 50

/** The secrets of an agent, by name. `synced`: the gateway runs, and was started with the value as it is now. */
export async function attachedSecrets(
  db: Queryable,
  agent: Pick<Agent, 'id' | 'status' | 'applied'>,
): Promise<AgentSecret[]> {
  const { rows } = await db.query<Omit<AgentSecret, 'synced'> & { version: number }>(
    `SELECT s.id, s.name, s.version, ${isoMillis('s.created_at')} AS "createdAt",
       ${isoMillis('s.updated_at')} AS "updatedAt"
     FROM agent_secret JOIN secret s ON s.id = secret_id WHERE agent_id = $1 ORDER BY s.name`,
    [agent.id],
  )
  return rows.map(({ version, ...secret }) => ({
    ...secret,
    synced: agent.status === 'running' && agent.applied[secret.id] === version,
  }))
}

/**
 * Attaches secrets of its workspace to an agent: all of them, or none.
 * @param client in a transaction, which keeps other changes of this agent's secrets waiting.
 * @param ids those that are attached already stay so.
 * @returns how many different ones `ids` has, and whether the agent got a credential of a model provider of which
 *   it had none.
 * @throws ApiError 404 for an agent or a secret that is not there, 409 for two credentials of one provider, 400 for
 *   more than {@link MAX_ATTACHED}.
 */
export async function attachSecrets(
  client: PoolClient,
  agent: Pick<Agent, 'id' | 'workspaceId'>,
  ids: readonly string[],
): Promise<{ attached: number; newProvider: boolean }> {
  const wanted = [...new Set(ids.map((id) => id.toLowerCase()))]
  if (wanted.length === 0) return { attached: 0, newProvider: false }
  await lockAgent(client, agent)
  // Locked as a reference would lock them: none is deleted before the commit.
  const found = await client.query<{ id: string; name: string }>(
    `SELECT id, name FROM secret WHERE workspace_id = $1 AND id::text = ANY($2) ORDER BY name FOR KEY SHARE`,
    [agent.workspaceId, wanted],
  )
  if (found.rows.length < wanted.length) throw noSecret()
  const { rows: before } = await client.query<{ id: string; name: string }>(
    'SELECT s.id, s.name FROM agent_secret JOIN secret s ON s.id = secret_id WHERE agent_id = $1 ORDER BY s.name',
    [agent.id],
  )
  const added = found.rows.filter(({ id }) => !before.some((secret) => secret.id === id))
  const names = [...before, ...added].map(({ name }) => name)
  if (names.length > MAX_ATTACHED)
    throw badRequest(`secretIds: an agent can have at most ${MAX_ATTACHED} secrets`)
  const conflict = describeConflict(names)
  if (conflict) throw contractError(409, 'conflicting_secrets', messages.conflictingSecrets, conflict)
  await client.query('INSERT INTO agent_secret (agent_id, secret_id) SELECT $1, unnest($2::uuid[])', [
    agent.id,
    added.map(({ id }) => id),
  ])
  return { attached: wanted.length, newProvider: added.some(({ name }) => providerOf(name) !== undefined) }
}

/**
 * Attaches secrets to an agent that is there, as {@link attachSecrets} does. A gateway gets to know them at its next
 * start; for the credential of a new model provider, it is started again (compatibility 2.5).
 * @returns the operation that does so, once it is committed.
 */
export function attachToAgent(
  pool: Pool,
  agent: Agent,
  ids: readonly string[],
): Promise<{ attached: number; operationId: string | undefined }> {
  return transaction(pool, async (client) => {
    const { attached, newProvider } = await attachSecrets(client, agent, ids)
    const operationId = newProvider ? await insertOperation(client, agent, 'agent.restart') : undefined
    return { attached, operationId }
  })
}

/** Detaches a secret from an agent. @throws ApiError 404 when it was not attached. */
export async function detachSecret(pool: Pool, agent: Pick<Agent, 'id'>, id: string): Promise<void> {
  const { rowCount } = await pool.query('DELETE FROM agent_secret WHERE agent_id = $1 AND secret_id = $2', [
    agent.id,
    id,
  ])
  if (!rowCount) throw notFound('The agent has no such secret')
}

/** Two requests that attach to one agent would each not see what the other one attaches. */
async function lockAgent(client: PoolClient, { id }: Pick<Agent, 'id'>): Promise<void> {
  const { rowCount } = await client.query(
    'SELECT FROM agent WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE',
    [id],
  )
  if (!rowCount) throw notFound(messages.noAgent)
}
