/** The library of a workspace: its skills by name, each with its versions on IPFS. */

import { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import type { Cursor } from '../../db/cursor.ts'
import { isForeignKeyViolation, isUniqueViolation } from '../../db/database-errors.ts'
import type { Queryable } from '../../db/pool.ts'
import { inTransaction, type Prisma, type PrismaClient, type Transaction } from '../../db/prisma.ts'
import { findSkillRow, listSkillRows, listVersionRows } from '../../db/statements/skills.ts'
import { ApiError, badRequest } from '../../errors.ts'
import { ensurePinned, releaseContent } from '../../files/held-content.ts'
import type { Principal } from '../../http/principal.ts'
import type { Network } from '../../storage/port.ts'
import { NAMED_AGENTS, stillAttached } from '../agent.ts'
import type { AgentServices } from '../agent-route.ts'
import { idAfter } from '../snapshots/index.ts'
import { noSkill } from './attach.ts'
import type { EnvVar, SkillRecord, VersionRecord } from './skill-schema.ts'

export type Owner = Pick<Principal, 'workspaceId' | 'userId'>
type Services = Pick<AgentServices, 'pool' | 'prisma' | 'storages'>

/** A page of the skills of a workspace, newest first. */
export async function listSkills(
  db: Queryable,
  workspaceId: string,
  { after, limit }: Cursor,
): Promise<SkillRecord[]> {
  return (await listSkillRows.run(db, workspaceId, after ?? null, limit)).rows
}

/** A skill of a workspace, by its id, its slug, or the canonical CID of any of its versions. */
export function findSkill(
  db: Queryable,
  workspaceId: string,
  by: { skillId: string } | { cid: string } | { slug: string },
): Promise<SkillRecord | undefined> {
  const { skillId, cid, slug } = { skillId: null, cid: null, slug: null, ...by }
  return findSkillRow.first(db, workspaceId, skillId, cid, slug)
}

/** The versions of a skill, newest first. */
export async function listVersions(
  db: Queryable,
  skillId: string,
  { after, limit }: Cursor,
): Promise<(VersionRecord & { id: string })[]> {
  return (await listVersionRows.run(db, skillId, after ?? null, limit)).rows
}

const toVersion = (row: Prisma.SkillVersionGetPayload<object>): VersionRecord => ({
  skillId: row.skillId,
  skillCid: row.cid,
  version: row.version,
  network: row.network as Network,
  fileId: row.fileId,
  createdAt: row.createdAt.toISOString(),
})

/** A folder on IPFS, by its canonical CID, that was read and validated as a skill. */
export interface NewContent {
  cid: string
  network: Network
  version: string | null
  fileId?: string | undefined
}

/**
 * Adds a skill to the library of a workspace. If a skill already has this content, returns that skill unchanged.
 * @throws ApiError 409 if another skill has the name, 400 for a file that does not have this content.
 */
export async function addSkill(
  services: Services,
  owner: Owner,
  skill: { name: string; description: string | null; slug: string | null; envVars: EnvVar[] },
  content: NewContent,
): Promise<SkillRecord> {
  const id = uuidv7()
  const { workspaceId, userId } = owner
  const added = inTransaction(services.prisma, async (tx) => {
    await tx.skill.create({ data: { id, workspaceId, userId, ...skill } })
    await insertVersion(tx, services, owner, id, content)
  })
  await added.catch(async (error) => {
    const isName = isUniqueViolation(error, 'skill_name')
    if (!isName && !isUniqueViolation(error, 'skill_version_cid')) throw error
    // Two requests added the same skill: the later one finds the earlier result.
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
 * Adds a version to a skill. If it has a version with the same content, returns that one unchanged.
 * @throws ApiError 409 if the version's number is taken, or its content is another skill's; 404 if the skill has been
 *   deleted; 400 for a file that does not have this content.
 */
export async function addVersion(
  services: Services,
  owner: Owner,
  skillId: string,
  content: NewContent,
): Promise<VersionRecord> {
  const { workspaceId } = owner
  const { cid, version } = content
  await inTransaction(services.prisma, async (tx) => {
    // Locks the skill, so that two requests do not add the same version number.
    const isThere = await tx.$executeRaw`
      SELECT FROM skill WHERE id = ${skillId}::uuid AND workspace_id = ${workspaceId}::uuid FOR NO KEY UPDATE`
    if (!isThere) throw noSkill()
    const found = await tx.skillVersion.findMany({
      where: { workspaceId, OR: [{ cid }, ...(version === null ? [] : [{ skillId, version }])] },
      include: { skill: { select: { name: true } } },
    })
    const same = found.find((one) => one.cid === cid)
    if (same && same.skillId !== skillId)
      throw new ApiError(409, 'duplicate_skill', `skillCid: is already in the library, as ${same.skill.name}`)
    if (same) return
    if (found.length > 0)
      throw new ApiError(409, 'duplicate_version', `version: there is another version ${version}`)
    await insertVersion(tx, services, owner, skillId, content)
    await tx.skill.update({ where: { id: skillId }, data: { updatedAt: new Date() } })
  })
  const added = await services.prisma.skillVersion.findFirst({ where: { skillId, cid } })
  if (!added) throw noSkill()
  return toVersion(added)
}

async function insertVersion(
  tx: Transaction,
  { storages }: Services,
  { workspaceId }: Owner,
  skillId: string,
  { cid, network, version, fileId }: NewContent,
): Promise<void> {
  await ensurePinned(tx, storages[network], CID.parse(cid))
  const file = await tx.file.findFirst({
    where: {
      workspaceId,
      cidV1: cid,
      removedAt: null,
      ...(fileId ? { id: fileId } : { network, status: 'pinned' }),
    },
    orderBy: { id: 'desc' },
    select: { id: true },
  })
  if (fileId && !file) throw badRequest('fileId: is not a file of the workspace with this content')
  const fileOfContent = file?.id ?? null
  const last = await tx.skillVersion.findFirst({
    where: { skillId },
    orderBy: { id: 'desc' },
    select: { id: true },
  })
  // The highest id is the newest of equal versions, even if a clock was set back.
  const id = idAfter(last?.id)
  await tx.skillVersion.create({
    data: { id, skillId, workspaceId, network, cid, version, fileId: fileOfContent },
  })
}

/**
 * Deletes a skill with all its versions, and releases their content.
 * @returns false if it does not exist.
 * @throws ApiError 409 while an agent uses it.
 */
export async function deleteSkill(
  prisma: PrismaClient,
  workspaceId: string,
  skillId: string,
): Promise<boolean> {
  const deleted = inTransaction(prisma, async (tx) => {
    const isThere = await tx.$executeRaw`
      SELECT FROM skill WHERE id = ${skillId}::uuid AND workspace_id = ${workspaceId}::uuid FOR UPDATE`
    if (!isThere) return false
    const versions = await tx.skillVersion.findMany({ where: { skillId } })
    await tx.skill.delete({ where: { id: skillId } })
    await releaseContent(
      tx,
      versions.map(({ network, cid }) => ({ workspaceId, network: network as Network, cid })),
    )
    return true
  })
  return deleted.catch(async (error) => {
    const references = ['agent_skill_skill_id_fkey', 'agent_skill_version_id_fkey']
    if (references.some((name) => isForeignKeyViolation(error, name)))
      throw stillAttached('skill', await prisma.agentSkill.findMany({ where: { skillId }, ...NAMED_AGENTS }))
    throw error
  })
}
