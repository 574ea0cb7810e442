/** The library of a workspace: its skills by name, each with its versions on IPFS. */
import { CID } from 'multiformats/cid'
import type { PoolClient } from 'pg'
import { uuidv7 } from 'uuidv7'
import type { Principal } from '../../accounts/authenticator.ts'
import { isForeignKeyViolation, isUniqueViolation } from '../../db/errors.ts'
import { type Pool, type Queryable, transaction } from '../../db/pool.ts'
import { ApiError, badRequest, contractError } from '../../errors.ts'
import { holdContent, releaseContent } from '../../files/held-content.ts'
import type { Storages } from '../../storage/open.ts'
import type { Network } from '../../storage/port.ts'
import { isoMillis } from '../agent.ts'
import { noSkill } from './attach.ts'
import type { EnvVar, SkillRecord, VersionRecord } from './schema.ts'

export type Owner = Pick<Principal, 'workspaceId' | 'userId'>
type Services = { pool: Pool; storages: Storages }

const SKILLS = `SELECT s.id AS "skillId", v.cid AS "skillCid", s.name, s.description, v.version, s.slug, v.network,
    ${isoMillis('s.created_at')} AS "createdAt", ${isoMillis('s.updated_at')} AS "updatedAt",
    s.user_id AS "userId", s.env_vars AS "envVars", v.file_id AS "fileId"
  FROM skill s CROSS JOIN LATERAL (
    SELECT * FROM skill_version WHERE skill_id = s.id ORDER BY id DESC LIMIT 1) v`

const VERSIONS = `SELECT v.skill_id AS "skillId", v.cid AS "skillCid", v.version, v.network, v.file_id AS "fileId",
    ${isoMillis('v.created_at')} AS "createdAt"
  FROM skill_version v`

/** A page of the skills of a workspace, the newest first. */
export async function listSkills(
  db: Queryable,
  workspaceId: string,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<SkillRecord[]> {
  const { rows } = await db.query<SkillRecord>(
    `${SKILLS} WHERE s.workspace_id = $1 AND ($2::uuid IS NULL OR s.id < $2) ORDER BY s.id DESC LIMIT $3`,
    [workspaceId, after ?? null, limit],
  )
  return rows
}

/** A skill of a workspace, by its id, its slug, or the canonical CID of any of its versions. */
export async function findSkill(
  db: Queryable,
  workspaceId: string,
  by: { skillId: string } | { cid: string } | { slug: string },
): Promise<SkillRecord | undefined> {
  const { skillId, cid, slug } = { skillId: null, cid: null, slug: null, ...by }
  const { rows } = await db.query<SkillRecord>(
    `${SKILLS} WHERE s.workspace_id = $1 AND (s.id = $2::uuid OR s.slug = $4
       OR s.id = (SELECT skill_id FROM skill_version WHERE workspace_id = $1 AND cid = $3))`,
    [workspaceId, skillId, cid, slug],
  )
  return rows[0]
}

/** The versions of a skill, the newest first. */
export async function listVersions(
  db: Queryable,
  skillId: string,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<(VersionRecord & { id: string })[]> {
  const { rows } = await db.query(
    `${VERSIONS.replace('SELECT', 'SELECT v.id,')} WHERE v.skill_id = $1 AND ($2::uuid IS NULL OR v.id < $2)
     ORDER BY v.id DESC LIMIT $3`,
    [skillId, after ?? null, limit],
  )
  return rows
}

/** A folder on IPFS, by its canonical CID, that was read and is a skill. */
export interface NewContent {
  cid: string
  network: Network
  version: string | null
  fileId?: string | undefined
}

/**
 * Adds a skill to the library of a workspace. One that has this content already is answered as it is.
 * @throws ApiError 409 where the name is another skill's, 400 for a file that is not of this content.
 */
export async function addSkill(
  services: Services,
  owner: Owner,
  skill: { name: string; description: string | null; slug: string | null; envVars: EnvVar[] },
  content: NewContent,
): Promise<SkillRecord> {
  const id = uuidv7()
  const added = transaction(services.pool, async (client) => {
    await client.query(
      `INSERT INTO skill (id, workspace_id, user_id, name, description, slug, env_vars)
       VALUES ($1, $2, $3, $4, $5, $6, $7)`,
      [
        id,
        owner.workspaceId,
        owner.userId,
        skill.name,
        skill.description,
        skill.slug,
        JSON.stringify(skill.envVars),
      ],
    )
    await insertVersion(client, services, owner, id, content)
  })
  await added.catch(async (error) => {
    const isName = isUniqueViolation(error, 'skill_name')
    if (!isName && !isUniqueViolation(error, 'skill_version_cid')) throw error
    // Two requests that add the same: the one that came later finds what the first one made.
    if (await findSkill(services.pool, owner.workspaceId, content)) return
    if (isName) throw nameTaken(skill.name)
    throw error
  })
  const found = await findSkill(services.pool, owner.workspaceId, content)
  if (!found) throw noSkill()
  return found
}

const nameTaken = (name: string) =>
  new ApiError(
    409,
    'duplicate_skill',
    `name: there is another skill ${name} in the library; add a version to it`,
  )

/**
 * Adds a version to a skill, which becomes its newest one. One with this content that it has is answered as it is.
 * @throws ApiError 409 where the version's number is taken, or its content is another skill's; 404 when the skill was
 *   deleted meanwhile; 400 for a file that is not of this content.
 */
export async function addVersion(
  services: Services,
  owner: Owner,
  skillId: string,
  content: NewContent,
): Promise<VersionRecord> {
  await transaction(services.pool, async (client) => {
    // One at a time: numbers are compared.
    const { rowCount } = await client.query(
      'SELECT FROM skill WHERE id = $1 AND workspace_id = $2 FOR NO KEY UPDATE',
      [skillId, owner.workspaceId],
    )
    if (!rowCount) throw noSkill()
    const { rows } = await client.query<{
      skillId: string
      name: string
      cid: string
      version: string | null
    }>(
      `SELECT s.id AS "skillId", s.name, v.cid, v.version FROM skill_version v JOIN skill s ON s.id = v.skill_id
       WHERE v.workspace_id = $1 AND (v.cid = $3 OR (v.skill_id = $2 AND v.version = $4))`,
      [owner.workspaceId, skillId, content.cid, content.version],
    )
    const same = rows.find(({ cid }) => cid === content.cid)
    if (same && same.skillId !== skillId)
      throw new ApiError(409, 'duplicate_skill', `skillCid: is in the library already, as ${same.name}`)
    if (same) return
    if (rows.length > 0)
      throw new ApiError(409, 'duplicate_version', `version: there is another version ${content.version}`)
    await insertVersion(client, services, owner, skillId, content)
    await client.query('UPDATE skill SET updated_at = clock_timestamp() WHERE id = $1', [skillId])
  })
  const { rows } = await services.pool.query<VersionRecord>(
    `${VERSIONS} WHERE v.skill_id = $1 AND v.cid = $2`,
    [skillId, content.cid],
  )
  if (!rows[0]) throw noSkill()
  return rows[0]
}

async function insertVersion(
  client: PoolClient,
  { storages }: Services,
  { workspaceId }: Owner,
  skillId: string,
  { cid, network, version, fileId }: NewContent,
): Promise<void> {
  await holdContent(client, storages[network], CID.parse(cid))
  const { rows } = await client.query<{ id: string }>(
    `SELECT id FROM file WHERE workspace_id = $1 AND cid_v1 = $2 AND removed_at IS NULL
       AND CASE WHEN $3::uuid IS NULL THEN network = $4 AND status = 'pinned' ELSE id = $3 END
     ORDER BY id DESC LIMIT 1`,
    [workspaceId, cid, fileId ?? null, network],
  )
  if (fileId && !rows[0]) throw badRequest('fileId: is no file of the workspace with this content')
  await client.query(
    `INSERT INTO skill_version (id, skill_id, workspace_id, network, cid, version, file_id)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [uuidv7(), skillId, workspaceId, network, cid, version, rows[0]?.id ?? null],
  )
}

/**
 * Deletes a skill with all its versions, and has their content released.
 * @returns false when it is not there.
 * @throws ApiError 409 while an agent has it.
 */
export async function deleteSkill(pool: Pool, workspaceId: string, skillId: string): Promise<boolean> {
  const deleted = transaction(pool, async (client) => {
    const { rowCount } = await client.query(
      'SELECT FROM skill WHERE id = $1 AND workspace_id = $2 FOR UPDATE',
      [skillId, workspaceId],
    )
    if (!rowCount) return false
    const { rows } = await client.query<{ network: Network; cid: string }>(
      'SELECT network, cid FROM skill_version WHERE skill_id = $1',
      [skillId],
    )
    await client.query('DELETE FROM skill WHERE id = $1', [skillId])
    await releaseContent(
      client,
      rows.map((content) => ({ workspaceId, ...content })),
    )
    return true
  })
  return deleted.catch(async (error) => {
    const references = ['agent_skill_skill_id_fkey', 'agent_skill_version_id_fkey']
    if (references.some((name) => isForeignKeyViolation(error, name)))
      throw await stillAttached(pool, skillId)
    throw error
  })
}

async function stillAttached(db: Queryable, skillId: string): Promise<ApiError> {
  const { rows } = await db.query<{ agentId: string; name: string }>(
    `SELECT a.agent_id AS "agentId", a.name FROM agent_skill held JOIN agent a ON a.id = held.agent_id
     WHERE skill_id = $1 ORDER BY a.id LIMIT 20`,
    [skillId],
  )
  const agents = rows.map(({ agentId, name }) => `${name} (${agentId})`).join(', ')
  return contractError(409, 'skill_attached', 'The skill is attached to an agent', `attached to ${agents}`)
}
