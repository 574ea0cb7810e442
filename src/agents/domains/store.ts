/** The rows of domains. Each change is told to the web processes, which route by them. */
import { isUniqueViolation } from '../../db/errors.ts'
import type { Queryable } from '../../db/pool.ts'
import { ApiError, notFound } from '../../errors.ts'
import { type Agent, isoMillis } from '../agent.ts'
import type { DomainChange } from './schema.ts'

/** A domain of an agent. */
export interface Domain {
  id: string
  agentId: string
  workspaceId: string
  userId: string
  subdomain: string | null
  customDomain: string | null
  targetPort: number
  protected: boolean
  status: 'pending_ownership' | 'verified'
  createdAt: string
  updatedAt: string
}

const COLUMNS = `domain.id, agent.agent_id AS "agentId", domain.workspace_id AS "workspaceId",
  domain.user_id AS "userId", domain.subdomain, domain.custom_domain AS "customDomain",
  domain.target_port AS "targetPort", domain.protected, domain.status,
  ${isoMillis('domain.created_at')} AS "createdAt", ${isoMillis('domain.updated_at')} AS "updatedAt"`

export const noDomain = () => notFound('The agent has no such domain')
export const takenSubdomain = () => new ApiError(409, 'subdomain_taken', 'This subdomain is taken')
export const takenDomain = () =>
  new ApiError(409, 'domain_taken', 'This domain is already registered and verified')

/** The domains of an agent, the oldest first. */
export async function listDomains(db: Queryable, agent: Pick<Agent, 'id'>): Promise<Domain[]> {
  const { rows } = await db.query<Domain>(
    `SELECT ${COLUMNS} FROM domain JOIN agent ON agent.id = domain.agent_id
     WHERE domain.agent_id = $1 ORDER BY domain.id`,
    [agent.id],
  )
  return rows
}

/** @throws ApiError 404 for one that is not on this agent. */
export async function readDomain(db: Queryable, agent: Pick<Agent, 'id'>, id: string): Promise<Domain> {
  const found = (await listDomains(db, agent)).find((domain) => domain.id === id)
  if (!found) throw noDomain()
  return found
}

/** Whether a custom domain is verified, on whichever agent. */
export async function isVerified(db: Queryable, customDomain: string): Promise<boolean> {
  const { rows } = await db.query(`SELECT FROM domain WHERE custom_domain = $1 AND status = 'verified'`, [
    customDomain,
  ])
  return rows.length > 0
}

/** @throws ApiError 409 for a subdomain that is taken. */
export async function insertDomain(
  db: Queryable,
  agent: Pick<Agent, 'id' | 'agentId'>,
  domain: Omit<Domain, 'agentId' | 'createdAt' | 'updatedAt'>,
): Promise<void> {
  try {
    await db.query(
      `INSERT INTO domain (id, agent_id, workspace_id, user_id, subdomain, custom_domain, target_port, protected,
         status, verified_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, CASE $9 WHEN 'verified' THEN now() END)`,
      [
        domain.id,
        agent.id,
        domain.workspaceId,
        domain.userId,
        domain.subdomain,
        domain.customDomain,
        domain.targetPort,
        domain.protected,
        domain.status,
      ],
    )
  } catch (error) {
    throw isUniqueViolation(error, 'domain_subdomain') ? takenSubdomain() : error
  }
  await tell(db, agent)
}

/** Changes what is given. @throws ApiError 404 */
export async function updateDomain(
  db: Queryable,
  agent: Pick<Agent, 'id' | 'agentId'>,
  id: string,
  change: DomainChange,
): Promise<void> {
  const { rowCount } = await db.query(
    `UPDATE domain SET target_port = coalesce($3, target_port), protected = coalesce($4, protected),
       updated_at = clock_timestamp() WHERE id = $2 AND agent_id = $1`,
    [agent.id, id, change.targetPort, change.protected],
  )
  if (!rowCount) throw noDomain()
  await tell(db, agent)
}

/**
 * A domain whose owner has proven it. Of several who do so at once, one has it. One that is verified stays as it is.
 * @throws ApiError 409 when another one has it; 404 when it was deleted.
 */
export async function markVerified(
  db: Queryable,
  { id, agentId }: Pick<Domain, 'id' | 'agentId'>,
): Promise<void> {
  try {
    const { rowCount } = await db.query(
      `UPDATE domain SET verified_at = coalesce(verified_at, now()), checked_at = now(),
         updated_at = CASE status WHEN 'verified' THEN updated_at ELSE clock_timestamp() END, status = 'verified'
       WHERE id = $1`,
      [id],
    )
    if (!rowCount) throw noDomain()
  } catch (error) {
    throw isUniqueViolation(error, 'domain_verified') ? takenDomain() : error
  }
  await tell(db, { agentId })
}

/** @throws ApiError 404 */
export async function deleteDomain(
  db: Queryable,
  agent: Pick<Agent, 'id' | 'agentId'>,
  id: string,
): Promise<void> {
  const { rowCount } = await db.query('DELETE FROM domain WHERE id = $2 AND agent_id = $1', [agent.id, id])
  if (!rowCount) throw noDomain()
  await tell(db, agent)
}

/**
 * Takes the domains that are due for another look: a minute after the last one at first, later more and more rarely,
 * and not at all any more when a domain is two weeks old. Two processes never take the same.
 */
export async function takeDue(db: Queryable, most: number): Promise<Domain[]> {
  const { rows } = await db.query<Domain>(
    `UPDATE domain SET checked_at = now() FROM agent
     WHERE agent.id = domain.agent_id AND domain.id IN (
       SELECT id FROM domain
       WHERE status = 'pending_ownership' AND created_at > now() - interval '14 days'
         AND coalesce(checked_at, created_at) < now() - greatest(interval '1 minute', (now() - created_at) / 20)
       ORDER BY checked_at NULLS FIRST LIMIT $1 FOR UPDATE SKIP LOCKED)
     RETURNING ${COLUMNS}`,
    [most],
  )
  return rows
}

const tell = (db: Queryable, { agentId }: Pick<Agent, 'agentId'>) =>
  db.query(`SELECT pg_notify('berth_agent', $1)`, [agentId])
