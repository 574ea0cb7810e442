/** Skills of an agent. The rows say which ones it should have; `workers/agents/skills.ts` makes the agent's folders so. */
import type { Queryable } from '../../db/pool.ts'
import type { Transaction } from '../../db/prisma.ts'
import { attachedSkillRows, lockVersions } from '../../db/statements/skills.ts'
import { ApiError, badRequest, notFound } from '../../errors.ts'
import { canonicalCid, parseCid } from '../../files/cid.ts'
import { type Agent, lockAgent } from '../agent.ts'
import { type AgentSkill, MAX_ATTACHED, SKILL_NAME } from './skill-schema.ts'

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
export const attachedSkills = async (db: Queryable, agent: Pick<Agent, 'id'>): Promise<AgentSkill[]> =>
  (await attachedSkillRows.run(db, agent.id)).rows

/**
 * Attaches skills of its workspace's library to an agent: all of them, or none. What a slug names that is not in the
 * library must be installed before, see `installMissing` of `../clawhub/install.ts`.
 * @param tx keeps other changes of this agent's skills waiting.
 * @param asked CIDs (that version), or slugs and names (the newest one). What is attached already stays as it is.
 * @returns the names of the skills in `asked`, each once.
 * @throws ApiError 404 for an agent or a skill that is not there, 400 for more than {@link MAX_ATTACHED} and for what
 *   is no CID, slug or name, 409 for another version of a skill that is attached.
 */
export async function attachSkills(
  tx: Transaction,
  agent: Pick<Agent, 'id' | 'workspaceId'>,
  asked: readonly string[],
): Promise<string[]> {
  const wanted = [...new Set(asked.map(toKey))]
  if (wanted.length === 0) return []
  await lockAgent(tx, agent)
  const found = await findVersions(tx, agent.workspaceId, wanted)
  const before = await tx.agentSkill.findMany({ where: { agentId: agent.id } })
  const added = new Map<string, Found>()
  for (const skill of found) {
    const there = before.find(({ skillId }) => skillId === skill.skillId) ?? added.get(skill.skillId)
    if (!there) added.set(skill.skillId, skill)
    else if (skill.exact && there.versionId !== skill.versionId)
      throw versionConflict(`the agent has another version of ${skill.name}; update it to have this one`)
  }
  if (before.length + added.size > MAX_ATTACHED)
    throw badRequest(`skillCids: an agent can have at most ${MAX_ATTACHED} skills`)
  const rows = [...added.values()].map(({ skillId, versionId }) => ({
    agentId: agent.id,
    skillId,
    versionId,
  }))
  await tx.agentSkill.createMany({ data: rows })
  return [...new Set(found.map(({ name }) => name))]
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

/**
 * Detaches a skill from an agent.
 * @returns its name.
 * @throws ApiError 404 when it was not attached.
 */
export async function detachSkill(
  tx: Transaction,
  agent: Pick<Agent, 'id'>,
  skillId: string,
): Promise<string> {
  await lockAgent(tx, agent)
  const { name } = await requireAttached(tx, agent, skillId)
  await tx.agentSkill.deleteMany({ where: { agentId: agent.id, skillId } })
  return name
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

/** The versions that keys name, in their order; none is deleted before the commit. @throws ApiError 404 */
async function findVersions(tx: Transaction, workspaceId: string, keys: string[]): Promise<Found[]> {
  const { rows } = await lockVersions.run(tx, workspaceId, keys)
  return keys.map((asked) => {
    const exact = rows.find(({ cid }) => cid === asked)
    const found = exact ?? rows.find(({ slug }) => slug === asked) ?? rows.find(({ name }) => name === asked)
    if (!found) throw noSkill(asked)
    return { ...found, exact: exact !== undefined }
  })
}
