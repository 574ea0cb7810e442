/**
 * Skills of an agent. The rows define which skills it should have; `workers/agents/skills.ts` updates the agent's
 * folders accordingly.
 */
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

/** An agent's copy of a skill differs from the version that the request assumes (contract 7.1). */
export const versionConflict = (detail: string) =>
  new ApiError(409, 'skill_version_conflict', `Skill version conflict: ${detail}`)

/** A version of a skill in the library of a workspace. */
interface Found {
  skillId: string
  versionId: string
  name: string
  /** True if the caller named exactly this version, by its CID. */
  exact: boolean
}

/** The skills attached to an agent, by name. */
export const attachedSkills = async (db: Queryable, agent: Pick<Agent, 'id'>): Promise<AgentSkill[]> =>
  (await attachedSkillRows.run(db, agent.id)).rows

/**
 * Attaches skills of its workspace's library to an agent: all of them, or none. Skills named by a slug must already be
 * in the library, see `installMissing` of `../clawhub/install.ts`.
 * @param tx makes other changes of this agent's skills wait.
 * @param asked CIDs (that version), or slugs and names (the newest version). Skills that are already attached stay
 *   unchanged.
 * @returns the names of the skills in `asked`, each once.
 * @throws ApiError 404 if the agent or a skill does not exist; 400 for more than {@link MAX_ATTACHED}, or for an
 *   invalid CID, slug or name; 409 if another version of a skill is attached.
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

/** A skill of an agent. @throws ApiError 404 if it is not attached. */
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
 * @throws ApiError 404 if it was not attached.
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

/** The search key for a skill: a slug or name verbatim, a CID in canonical form. @throws ApiError 400 */
function toKey(asked: string): string {
  if (asked.startsWith('@')) {
    if (!SKILL_NAME.test(asked)) throw badRequest(`skillCids: ${asked} is not a slug`)
    return asked
  }
  try {
    return canonicalCid(parseCid(asked, 'skillCids'))
  } catch (error) {
    if (SKILL_NAME.test(asked)) return asked
    throw error
  }
}

/** The versions for the keys, in the same order; none can be deleted before the commit. @throws ApiError 404 */
async function findVersions(tx: Transaction, workspaceId: string, keys: string[]): Promise<Found[]> {
  const { rows } = await lockVersions.run(tx, workspaceId, keys)
  return keys.map((asked) => {
    const exact = rows.find(({ cid }) => cid === asked)
    const found = exact ?? rows.find(({ slug }) => slug === asked) ?? rows.find(({ name }) => name === asked)
    if (!found) throw noSkill(asked)
    return { ...found, exact: exact !== undefined }
  })
}
