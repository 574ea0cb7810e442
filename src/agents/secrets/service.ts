/** The vault of a workspace: secrets by name, their values sealed. */
import { uuidv7 } from 'uuidv7'
import type { Principal } from '../../accounts/authenticator.ts'
import { isForeignKeyViolation, isUniqueViolation } from '../../db/errors.ts'
import { type Pool, type Queryable, transaction } from '../../db/pool.ts'
import { ApiError, contractError, forbidden, messages, notFound } from '../../errors.ts'
import type { Sealer } from '../../sealer.ts'
import { isoMillis } from '../agent.ts'
import type { ListedSecret, NewSecret, SecretRecord } from './schema.ts'

export const noSecret = () => notFound('There is no such secret')

const COLUMNS = `s.id, s.user_id AS "userId", s.name, s.type, ${isoMillis('s.created_at')} AS "createdAt",
  ${isoMillis('s.updated_at')} AS "updatedAt"`

/** A secret without its value. */
type Row = Omit<SecretRecord, 'value'>

/** Every secret of a workspace, the newest first, with the agents that have it. */
export async function listSecrets(
  db: Queryable,
  sealer: Sealer,
  workspaceId: string,
): Promise<ListedSecret[]> {
  const { rows } = await db.query<Row & { sealed: Buffer | null; agents: ListedSecret['agents'] }>(
    `SELECT ${COLUMNS}, CASE s.type WHEN 'variable' THEN s.sealed END AS sealed,
       coalesce((SELECT json_agg(json_build_object('agentId', a.agent_id, 'name', a.name) ORDER BY a.id)
                 FROM agent_secret held JOIN agent a ON a.id = held.agent_id
                 WHERE secret_id = s.id), '[]') AS agents
     FROM secret s WHERE s.workspace_id = $1 ORDER BY s.id DESC`,
    [workspaceId],
  )
  return rows.map(({ sealed, agents, ...secret }) => ({
    ...secret,
    ...(sealed && { value: openOrNull(sealer, workspaceId, secret.id, sealed) }),
    agents,
  }))
}

/** One value that no longer opens must not hide all the others. */
function openOrNull(sealer: Sealer, workspaceId: string, id: string, sealed: Buffer): string | null {
  try {
    return sealer.open(workspaceId, id, sealed)
  } catch {
    return null
  }
}

/**
 * Adds a secret to the caller's workspace.
 * @throws ApiError 503 without a key to seal with, 409 for a name that is there, 403 at the plan's limit.
 */
export async function createSecret(
  pool: Pool,
  sealer: Sealer,
  { workspaceId, userId }: Pick<Principal, 'workspaceId' | 'userId'>,
  { name, value, type }: NewSecret,
): Promise<SecretRecord> {
  requireKey(sealer)
  const id = uuidv7()
  const sealed = sealer.seal(workspaceId, id, value)
  try {
    return await transaction(pool, async (client) => {
      await requireRoom(client, workspaceId, name)
      const { rows } = await client.query<Row>(
        `INSERT INTO secret AS s (id, workspace_id, user_id, name, type, sealed)
         VALUES ($1, $2, $3, $4, $5, $6) RETURNING ${COLUMNS}`,
        [id, workspaceId, userId, name, type, sealed],
      )
      return toRecord(rows[0] as Row, value)
    })
  } catch (error) {
    if (isUniqueViolation(error, 'secret_name')) throw duplicate(name)
    throw error
  }
}

const duplicate = (name: string) =>
  contractError(409, 'duplicate_secret', messages.duplicateSecret, `name: there is a secret ${name} already`)

/**
 * Keeps others who add to the workspace waiting, so that none gets past the limit. A name that is there is not one
 * more: it is left to the index, also at the limit.
 */
async function requireRoom(db: Queryable, workspaceId: string, name: string): Promise<void> {
  const { rows } = await db.query<{ limit: number | null }>(
    `SELECT p.secret_limit AS limit FROM workspace w JOIN plan p ON p.name = w.plan
     WHERE w.id = $1 FOR NO KEY UPDATE OF w`,
    [workspaceId],
  )
  const limit = rows[0]?.limit ?? null
  if (limit === null) return
  const counted = await db.query<{ isFull: boolean }>(
    `SELECT count(*) >= $2 AND NOT coalesce(bool_or(name = $3), false) AS "isFull" FROM secret WHERE workspace_id = $1`,
    [workspaceId, limit, name],
  )
  if (counted.rows[0]?.isFull) throw forbidden(messages.secretLimit, 'secret_limit')
}

/** Gives a secret another value. @throws ApiError 503 without a key to seal with, 404 when it is not there. */
export async function updateSecret(
  db: Queryable,
  sealer: Sealer,
  workspaceId: string,
  id: string,
  value: string,
): Promise<SecretRecord> {
  requireKey(sealer)
  const { rows } = await db.query<Row>(
    `UPDATE secret s SET sealed = $3, version = version + 1, updated_at = clock_timestamp()
     WHERE workspace_id = $1 AND id = $2 RETURNING ${COLUMNS}`,
    [workspaceId, id, sealer.seal(workspaceId, id, value)],
  )
  if (!rows[0]) throw noSecret()
  return toRecord(rows[0], value)
}

/** Deletes a secret that no agent has. @throws ApiError 404 when it is not there, 409 while it is attached. */
export async function deleteSecret(pool: Pool, workspaceId: string, id: string): Promise<void> {
  try {
    const { rowCount } = await pool.query('DELETE FROM secret WHERE workspace_id = $1 AND id = $2', [
      workspaceId,
      id,
    ])
    if (!rowCount) throw noSecret()
  } catch (error) {
    if (isForeignKeyViolation(error, 'agent_secret_secret_id_fkey')) throw await stillAttached(pool, id)
    throw error
  }
}

async function stillAttached(db: Queryable, id: string): Promise<ApiError> {
  const { rows } = await db.query<{ agentId: string; name: string }>(
    `SELECT a.agent_id AS "agentId", a.name FROM agent_secret held JOIN agent a ON a.id = held.agent_id
     WHERE secret_id = $1 ORDER BY a.id LIMIT 20`,
    [id],
  )
  const agents = rows.map(({ agentId, name }) => `${name} (${agentId})`).join(', ')
  return contractError(409, 'secret_attached', 'The secret is attached to an agent', `attached to ${agents}`)
}

/** @throws ApiError 503 without a key to seal with. */
export function requireKey(sealer: Sealer): void {
  if (!sealer.configured) throw new ApiError(503, 'secrets_not_configured', messages.secretsNotConfigured)
}

const toRecord = (secret: Row, value: string): SecretRecord =>
  secret.type === 'variable' ? { ...secret, value } : secret
