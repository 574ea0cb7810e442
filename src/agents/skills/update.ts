/** The version of a skill that an agent has: whether there is a newer one, and changing it. */
import type { PoolClient } from 'pg'
import type { z } from 'zod'
import type { SkillFolder } from '../../../agentd/protocol.ts'
import type { Queryable } from '../../db/pool.ts'
import { notFound } from '../../errors.ts'
import { canonicalCid, parseCid } from '../../files/cid.ts'
import type { Agent } from '../agent.ts'
import { lockAgent, requireAttached, versionConflict } from './attach.ts'
import type { AgentSkill, SkillUpdate, skillUpdates } from './schema.ts'

type Update = z.output<typeof skillUpdates>['updates'][number]

/**
 * The skills of an agent beside the newest versions in the library.
 * @param folders as they are in the agent; undefined while it does not answer.
 */
export async function findUpdates(
  db: Queryable,
  agent: Pick<Agent, 'id'>,
  folders: SkillFolder[] | undefined,
): Promise<Update[]> {
  const { rows } = await db.query<Omit<Update, 'updateAvailable' | 'folder'>>(
    `SELECT s.id AS "skillId", s.name, v.cid AS "skillCid", v.version, newest.cid AS "latestSkillCid",
       newest.version AS "latestVersion"
     FROM agent_skill held JOIN skill s ON s.id = held.skill_id JOIN skill_version v ON v.id = held.version_id
       CROSS JOIN LATERAL (SELECT cid, version FROM skill_version WHERE skill_id = s.id ORDER BY id DESC LIMIT 1) newest
     WHERE held.agent_id = $1 ORDER BY s.name`,
    [agent.id],
  )
  return rows.map((skill) => ({
    ...skill,
    updateAvailable: skill.latestSkillCid !== skill.skillCid,
    folder: folders ? folderState(skill, folders) : null,
  }))
}

/** How the folder of a skill is, beside the version that is attached. */
export function folderState(
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
 * Gives an agent the version of a skill that `update` names, the newest where it names none.
 * @param folders as they are in the agent; undefined while it does not answer: then a conflict shows when it starts.
 * @throws ApiError 404 where the skill is not attached, or has no such version; 409 where another version is attached
 *   than the caller expects, or the agent has changed its folder and `update` does not say what becomes of that.
 */
export async function changeVersion(
  client: PoolClient,
  agent: Pick<Agent, 'id'>,
  skillId: string,
  update: SkillUpdate,
  folders: SkillFolder[] | undefined,
): Promise<AgentSkill> {
  await lockAgent(client, agent)
  const before = await requireAttached(client, agent, skillId)
  const { skillCid, name } = before
  const expected = update.expectedSkillCid && toCid(update.expectedSkillCid, 'expectedSkillCid')
  if (expected && expected !== skillCid)
    throw versionConflict(`${skillCid} of ${name} is attached, not ${expected}`)
  const target = await findVersion(client, skillId, update)
  if (folders && !update.resolution) {
    const state = folderState(before, folders)
    const isChanged = state === 'modified' || state === 'other'
    // As it is what it is to become, nothing would be lost.
    const isDone = folders.some(
      ({ name, cid, state }) => name === before.name && cid === target.cid && state === 'same',
    )
    if (isChanged && !isDone)
      throw versionConflict(
        `the agent has changed ${name}; say by "resolution" whether to replace or to keep its folder`,
      )
  }
  await client.query('UPDATE agent_skill SET version_id = $3 WHERE agent_id = $1 AND skill_id = $2', [
    agent.id,
    skillId,
    target.id,
  ])
  return requireAttached(client, agent, skillId)
}

const toCid = (text: string, field: string) => canonicalCid(parseCid(text, field))

async function findVersion(
  client: PoolClient,
  skillId: string,
  { version, skillCid }: SkillUpdate,
): Promise<{ id: string; cid: string }> {
  const { rows } = await client.query<{ id: string; cid: string }>(
    `SELECT id, cid FROM skill_version
     WHERE skill_id = $1 AND ($2::text IS NULL OR version = $2) AND ($3::text IS NULL OR cid = $3)
     ORDER BY id DESC LIMIT 1 FOR KEY SHARE`,
    [skillId, version ?? null, skillCid === undefined ? null : toCid(skillCid, 'skillCid')],
  )
  if (!rows[0]) throw notFound('The skill has no such version')
  return rows[0]
}
