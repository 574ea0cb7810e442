/** The version of a skill that an agent has: checks for newer ones, and changes it. */
import type { z } from 'zod'
import type { SkillFolder } from '../../../agentd/protocol.ts'
import type { Queryable } from '../../db/pool.ts'
import type { Transaction } from '../../db/prisma.ts'
import { lockVersion, readNewestVersions } from '../../db/statements/skills.ts'
import { notFound } from '../../errors.ts'
import { canonicalCid, parseCid } from '../../files/cid.ts'
import { type Agent, lockAgent } from '../agent.ts'
import { requireAttached, versionConflict } from './attach.ts'
import type { AgentSkill, SkillUpdate, skillUpdates } from './skill-schema.ts'

type Update = z.output<typeof skillUpdates>['updates'][number]

/**
 * Compares the skills of an agent with the newest versions in the library.
 * @param folders the agent's current folders; undefined while it does not respond.
 */
export async function findUpdates(
  db: Queryable,
  agent: Pick<Agent, 'id'>,
  folders: SkillFolder[] | undefined,
): Promise<Update[]> {
  const { rows } = await readNewestVersions.run(db, agent.id)
  return rows.map((skill) => ({
    ...skill,
    folder: folders ? folderState(skill, folders) : null,
  }))
}

/** Compares the folder of a skill with the attached version. */
function folderState(
  { name, skillCid }: { name: string; skillCid: string },
  folders: SkillFolder[],
): NonNullable<Update['folder']> {
  const folder = folders.find((one) => one.name === name)
  if (!folder) return 'missing'
  return folder.cid !== null && folder.cid !== skillCid
    ? 'other'
    : folder.cid === null
      ? 'other'
      : folder.state
}

/**
 * Gives an agent the version of a skill that `update` names. If it names none, the agent gets the newest one, unless it
 * already has a higher one, such as a prerelease.
 * @param folders the agent's current folders; undefined while it does not respond, in which case a conflict appears
 *   when it starts.
 * @throws ApiError 404 if the skill is not attached, or has no such version. 409 if another version is attached than
 *   the caller expects, or if the agent has changed its folder and `update` does not say what to do with it.
 */
export async function changeVersion(
  tx: Transaction,
  agent: Pick<Agent, 'id'>,
  skillId: string,
  update: SkillUpdate,
  folders: SkillFolder[] | undefined,
): Promise<AgentSkill> {
  await lockAgent(tx, agent)
  const before = await requireAttached(tx, agent, skillId)
  const { skillCid, name } = before
  const expected = update.expectedSkillCid && toCid(update.expectedSkillCid, 'expectedSkillCid')
  if (expected && expected !== skillCid)
    throw versionConflict(`${skillCid} of ${name} is attached, not ${expected}`)
  const target = await findVersion(tx, skillId, await namedVersion(tx, agent, skillId, update))
  if (folders && !update.resolution) {
    const state = folderState(before, folders)
    const isChanged = state === 'modified' || state === 'other'
    // A folder that already has the target content loses nothing.
    const isDone = folders.some(
      ({ name, cid, state }) => name === before.name && cid === target.cid && state === 'same',
    )
    if (isChanged && !isDone)
      throw versionConflict(
        `the agent has changed ${name}; set "resolution" to replace or to keep its folder`,
      )
  }
  const where = { agentId: agent.id, skillId }
  await tx.agentSkill.updateMany({ where, data: { versionId: target.id } })
  return requireAttached(tx, agent, skillId)
}

const toCid = (text: string, field: string) => canonicalCid(parseCid(text, field))

async function namedVersion(
  tx: Transaction,
  agent: Pick<Agent, 'id'>,
  skillId: string,
  { version, skillCid }: SkillUpdate,
): Promise<Pick<SkillUpdate, 'version' | 'skillCid'>> {
  if (version !== undefined || skillCid !== undefined) return { version, skillCid }
  const { rows } = await readNewestVersions.run(tx, agent.id)
  const skill = rows.find((row) => row.skillId === skillId)
  return { skillCid: skill?.updateAvailable ? skill.latestSkillCid : skill?.skillCid }
}

async function findVersion(
  tx: Transaction,
  skillId: string,
  { version, skillCid }: Pick<SkillUpdate, 'version' | 'skillCid'>,
): Promise<{ id: string; cid: string }> {
  const cid = skillCid === undefined ? null : toCid(skillCid, 'skillCid')
  const found = await lockVersion.first(tx, skillId, version ?? null, cid)
  if (!found) throw notFound('The skill has no such version')
  return found
}
