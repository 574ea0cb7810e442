/** Which skills an agent has. The rows are what should be; `workers/agents/skills.ts` makes the agent's folders so. */
import type { PoolClient } from 'pg'
import type { Queryable } from '../../db/pool.ts'
import { ApiError, badRequest, messages, notFound } from '../../errors.ts'
import { canonicalCid, parseCid } from '../../files/cid.ts'
import { type Agent, isoMillis } from '../agent.ts'
import { type AgentSkill, MAX_ATTACHED, SKILL_NAME } from './schema.ts'

export const noSkill = (detail?: string) =>
  notFound(
    detail ? `There is no such skill in the library: ${detail}` : 'There is no such skill in the library',
  )

/** An agent's copy of a skill is another one than the request goes out from (contract 7.1). */
export const versionConflict = (detail: string) =>
  new ApiError(409, 'skill_version_conflict', `Skill version conflict: ${detail}`)

/** A version of a skill in the library of a workspace. */
interface Found {
  skillId: string
  versionId: string
  name: string
  /** The caller named this very version, by its CID. */
  exact: boolean
}

/** The skills that are attached to an agent, by name. */
export async function attachedSkills(db: Queryable, agent: Pick<Agent, 'id'>): Promise<AgentSkill[]> {
  const { rows } = await db.query<AgentSkill>(
    `SELECT a.agent_id AS "agentId", s.id AS "skillId", v.cid AS "skillCid",
       ${isoMillis('held.attached_at')} AS "attachedAt", s.name, s.description, v.version, s.slug
     FROM agent_skill held JOIN agent a ON a.id = held.agent_id JOIN skill s ON s.id = held.skill_id
       JOIN skill_version v ON v.id = held.version_id
     WHERE held.agent_id = $1 ORDER BY s.name`,
    [agent.id],
  )
  return rows
}

/**
 * Attaches skills of its workspace's library to an agent: all of them, or none. What a slug names that is not in the
 * library must be installed before, see `installMissing` of `../clawhub/install.ts`.
 * @param client in a transaction, which keeps other changes of this agent's skills waiting.
 * @param asked CIDs (that version), or slugs and names (the newest one). What is attached already stays as it is.
 * @returns how many different skills `asked` has.
 * @throws ApiError 404 for an agent or a skill that is not there, 400 for more than {@link MAX_ATTACHED} and for what
 *   is no CID, slug or name, 409 for another version of a skill that is attached.
 */
export async function attachSkills(
  client: PoolClient,
  agent: Pick<Agent, 'id' | 'workspaceId'>,
  asked: readonly string[],
): Promise<number> {
  const wanted = [...new Set(asked.map(toKey))]
  if (wanted.length === 0) return 0
  await lockAgent(client, agent)
  const found = await findVersions(client, agent.workspaceId, wanted)
  const before = await client.query<{ skillId: string; versionId: string }>(
    'SELECT skill_id AS "skillId", version_id AS "versionId" FROM agent_skill WHERE agent_id = $1',
    [agent.id],
  )
  const added = new Map<string, Found>()
  for (const skill of found) {
    const there = before.rows.find(({ skillId }) => skillId === skill.skillId) ?? added.get(skill.skillId)
    if (!there) added.set(skill.skillId, skill)
    else if (skill.exact && there.versionId !== skill.versionId)
      throw versionConflict(`the agent has another version of ${skill.name}; update it to have this one`)
  }
  if (before.rows.length + added.size > MAX_ATTACHED)
    throw badRequest(`skillCids: an agent can have at most ${MAX_ATTACHED} skills`)
  const rows = [...added.values()]
  await client.query(
    'INSERT INTO agent_skill (agent_id, skill_id, version_id) SELECT $1, * FROM unnest($2::uuid[], $3::uuid[])',
    [agent.id, rows.map(({ skillId }) => skillId), rows.map(({ versionId }) => versionId)],
  )
  return new Set(found.map(({ skillId }) => skillId)).size
}

/** A skill of an agent. @throws ApiError 404 when it is not attached. */
export async function requireAttached(
  db: Queryable,
  agent: Pick<Agent, 'id'>,
  skillId: string,
): Promise<AgentSkill> {
  const found = (await attachedSkills(db, agent)).find((skill) => skill.skillId === skillId)
  if (!found) throw notFound('The agent has no such skill')
  return found
}

/** Detaches a skill from an agent. @throws ApiError 404 when it was not attached. */
export async function detachSkill(
  client: PoolClient,
  agent: Pick<Agent, 'id'>,
  skillId: string,
): Promise<void> {
  await lockAgent(client, agent)
  const { rowCount } = await client.query('DELETE FROM agent_skill WHERE agent_id = $1 AND skill_id = $2', [
    agent.id,
    skillId,
  ])
  if (!rowCount) throw notFound('The agent has no such skill')
}

/** Two requests that change one agent's skills would each not see what the other one changes. */
export async function lockAgent(client: PoolClient, { id }: Pick<Agent, 'id'>): Promise<void> {
  const { rowCount } = await client.query(
    'SELECT FROM agent WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE',
    [id],
  )
  if (!rowCount) throw notFound(messages.noAgent)
}

/** How a skill is looked for: a slug or a name as it is, a CID in its one form. @throws ApiError 400 */
function toKey(asked: string): string {
  if (asked.startsWith('@')) {
    if (!SKILL_NAME.test(asked)) throw badRequest(`skillCids: ${asked} is no slug`)
    return asked
  }
  try {
    return canonicalCid(parseCid(asked, 'skillCids'))
  } catch (error) {
    if (SKILL_NAME.test(asked)) return asked
    throw error
  }
}

/**
 * The versions that keys name, in their order; locked as a reference would lock them, so that none is deleted before
 * the commit.
 * @throws ApiError 404
 */
async function findVersions(client: PoolClient, workspaceId: string, keys: string[]): Promise<Found[]> {
  const { rows } = await client.query<Found & { cid: string; slug: string | null }>(
    `SELECT s.id AS "skillId", s.name, s.slug, v.id AS "versionId", v.cid
     FROM skill s JOIN skill_version v ON v.skill_id = s.id
     WHERE s.workspace_id = $1 AND (s.slug = ANY($2) OR s.name = ANY($2) OR v.cid = ANY($2))
     ORDER BY s.id, v.id DESC FOR KEY SHARE`,
    [workspaceId, keys],
  )
  return keys.map((asked) => {
    const exact = rows.find(({ cid }) => cid === asked)
    const found = exact ?? rows.find(({ slug }) => slug === asked) ?? rows.find(({ name }) => name === asked)
    if (!found) throw noSkill(asked)
    return { ...found, exact: exact !== undefined }
  })
}
