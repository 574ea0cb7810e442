/** Groups of files. A group and its files are on one network; a file is in at most one group. */

import { uuidv7 } from 'uuidv7'
import { z } from 'zod'
import { isForeignKeyViolation } from '../db/database-errors.ts'
import type { Pool, Queryable } from '../db/pool.ts'
import type { PrismaClient } from '../db/prisma.ts'
import { findGroup, GROUP_COLUMNS, insertGroup, takeFilesOut, updateGroup } from '../db/statements/groups.ts'
import { escapeLike } from '../db/statements/statement.ts'
import { notFound } from '../errors.ts'
import { like, timestamp, uuid, withExample } from '../http/fields.ts'
import { pageOf, paging, readPage, toPage } from '../http/pages.ts'
import type { Principal } from '../http/principal.ts'
import { type Route, routesOf } from '../http/route.ts'
import { network, nothing, oneOrMore, pathId, text, visibleText } from '../http/shapes.ts'
import type { Network } from '../storage/port.ts'
import { PINNED } from './held-content.ts'
import type { FileServices } from './services.ts'

const groupRecord = z.object({
  id: uuid,
  name: like('Catalogues'),
  is_public: z.boolean(),
  created_at: timestamp,
})
type GroupRecord = z.output<typeof groupRecord>

const name = withExample(visibleText(255), 'Catalogues')

const newGroup = z.object({ name, is_public: z.boolean().default(false) })

/** Absent fields stay unchanged. */
const groupChanges = z
  .object({ name: name.optional(), is_public: z.boolean().optional() })
  .refine(
    (changes) => Object.values(changes).some((value) => value !== undefined),
    'must have a name or is_public',
  )
  .meta(oneOrMore('name', 'is_public'))

const groupQuery = z.object({
  name: text(255).optional().describe('Part of the name, case-insensitive.'),
  isPublic: z.enum(['true', 'false']).optional(),
  ...paging(10, 1000),
})

const groupPage = pageOf('groups', groupRecord)

const route = routesOf('Groups')
const GROUPS = '/v3/groups/:network'
const GROUP = `${GROUPS}/:id`
const MEMBER = `${GROUP}/ids/:fileId`
const params = z.object({ network, id: pathId })
const memberParams = params.extend({ fileId: pathId })
const one = z.object({ data: groupRecord })

const owner = ({ workspaceId }: Principal, { network }: { network: Network }): GroupOwner => ({
  workspaceId,
  network,
})
const groupNotFound = () => notFound('There is no such group')

export function groupRoutes(services: FileServices): Route[] {
  const { pool, prisma, searches } = services
  return [
    route({
      method: 'post',
      path: GROUPS,
      id: 'createGroup',
      summary: 'Create a group',
      description: 'A group contains only files of its own network.',
      scope: 'org:groups:write',
      params: z.object({ network }),
      body: newGroup,
      success: { description: 'The group.', body: one },
      async handle({ principal: { workspaceId }, params, body: { name, is_public } }) {
        const data = await insertGroup.one(pool, uuidv7(), workspaceId, params.network, name, is_public)
        return { body: { data } }
      },
    }),
    route({
      method: 'get',
      path: GROUPS,
      id: 'listGroups',
      summary: 'List groups',
      scope: 'org:groups:read',
      params: z.object({ network }),
      query: groupQuery,
      success: { description: 'A page of groups, newest first.', body: groupPage },
      async handle({ principal, params, query: { name, isPublic, ...query }, signal }) {
        const filter = { name, isPublic: isPublic === undefined ? undefined : isPublic === 'true' }
        const page = await readPage(query, (cursor) => {
          const list = (db: Queryable) => listGroups(db, owner(principal, params), { ...filter, ...cursor })
          return name === undefined ? list(pool) : searches.run(principal, signal, list)
        })
        return { body: toPage('groups', page) }
      },
    }),
    route({
      method: 'get',
      path: GROUP,
      id: 'getGroup',
      summary: 'Get a group',
      scope: 'org:groups:read',
      params,
      success: { description: 'The group.', body: one },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id, network } }) {
        const group = await findGroup.first(pool, id, workspaceId, network)
        if (!group) throw groupNotFound()
        return { body: { data: group } }
      },
    }),
    route({
      method: 'put',
      path: GROUP,
      id: 'updateGroup',
      summary: "Change a group's name, or whether it is public",
      description: 'Omitted fields stay unchanged.',
      scope: 'org:groups:write',
      params,
      body: groupChanges,
      success: { description: 'The updated group.', body: one },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id, network }, body }) {
        const { name = null, is_public = null } = body
        const group = await updateGroup.first(pool, id, workspaceId, network, name, is_public)
        if (!group) throw groupNotFound()
        return { body: { data: group } }
      },
    }),
    route({
      method: 'delete',
      path: GROUP,
      id: 'deleteGroup',
      summary: 'Delete a group; its files stay',
      scope: 'org:groups:write',
      params,
      success: { description: 'Deleted.', body: nothing },
      errors: [404],
      async handle({ principal, params }) {
        await requireGroup(prisma, owner(principal, params), params.id)
        await deleteGroup(services, params.id)
        return { body: { data: null } }
      },
    }),
    route({
      method: 'put',
      path: MEMBER,
      id: 'addFileToGroup',
      summary: 'Put a file into a group',
      description: 'A file is in at most one group: it leaves its previous group.',
      scope: 'org:groups:write',
      params: memberParams,
      success: { description: 'The file is in the group.', body: nothing },
      errors: [404],
      async handle({ principal, params }) {
        await addToGroup(prisma, owner(principal, params), params.id, params.fileId)
        return { body: { data: null } }
      },
    }),
    route({
      method: 'delete',
      path: MEMBER,
      id: 'removeFileFromGroup',
      summary: 'Take a file out of a group',
      description: 'The file itself stays. Nothing changes if it is not in the group.',
      scope: 'org:groups:write',
      params: memberParams,
      success: { description: 'The file is not in the group.', body: nothing },
      errors: [404],
      async handle({ principal, params }) {
        await removeFromGroup(prisma, owner(principal, params), params.id, params.fileId)
        return { body: { data: null } }
      },
    }),
  ]
}

/** The owner and the network of groups. */
interface GroupOwner {
  workspaceId: string
  network: Network
}

/**
 * Checks that a group exists and belongs to the owner.
 * @param missing makes the error. @throws ApiError 404
 */
export async function requireGroup(
  prisma: PrismaClient,
  { workspaceId, network }: GroupOwner,
  id: string,
  missing = groupNotFound,
): Promise<void> {
  if ((await prisma.fileGroup.count({ where: { id, workspaceId, network } })) === 0) throw missing()
}

interface GroupFilter {
  /** Part of the name. */
  name?: string | undefined
  isPublic?: boolean | undefined
  /** Only groups older than the one with this id. */
  after?: string | undefined
  limit: number
}

/**
 * A page of groups, newest first. Not prepared, because each filter has its own plan. BETWEEN is an equality that the
 * planner does not recognise as one. So ordering by the network as well matches only the list's index. Ordered by id
 * only, the planner would use the primary key and scan every tenant's newer groups.
 */
async function listGroups(
  db: Queryable,
  { workspaceId, network }: GroupOwner,
  { name, isPublic, after, limit }: GroupFilter,
): Promise<GroupRecord[]> {
  const { rows } = await db.query<GroupRecord>(
    `SELECT ${GROUP_COLUMNS} FROM file_group WHERE workspace_id = $1 AND network BETWEEN $2 AND $2
       AND ($3::text IS NULL OR name ILIKE $3) AND ($4::boolean IS NULL OR is_public = $4)
       AND ($5::uuid IS NULL OR id < $5)
     ORDER BY network DESC, id DESC LIMIT $6`,
    [workspaceId, network, name === undefined ? null : `%${escapeLike(name)}%`, isPublic, after, limit],
  )
  return rows
}

/** How many files one statement takes out of a group, so that it ends long before the statement timeout. */
const BATCH = 5000

/**
 * Deletes a group; its files stay, without a group. This is not one transaction: if it ends halfway, the group has
 * fewer files, and the next call continues.
 */
export async function deleteGroup(
  { pool, prisma }: { pool: Pool; prisma: PrismaClient },
  id: string,
): Promise<void> {
  while ((await takeFilesOut.run(pool, id, BATCH)).rowCount === BATCH);
  // The reference's ON DELETE SET NULL handles files that were added late or were being written.
  await prisma.fileGroup.deleteMany({ where: { id } })
}

const pinned = (owner: GroupOwner, id: string) => ({ id, ...owner, ...PINNED })
const fileNotFound = () => notFound('There is no such file')

/**
 * Puts a file into a group and out of its previous one. Idempotent.
 * @throws ApiError 404 if the group or the file does not exist.
 */
export async function addToGroup(
  prisma: PrismaClient,
  owner: GroupOwner,
  groupId: string,
  fileId: string,
): Promise<void> {
  await requireGroup(prisma, owner, groupId)
  const { count } = await prisma.file
    .updateMany({ where: pinned(owner, fileId), data: { groupId } })
    .catch((error) => {
      // The group was deleted between the check and the change.
      throw isForeignKeyViolation(error, 'file_group_id_fkey') ? groupNotFound() : error
    })
  if (count === 0) throw fileNotFound()
}

/**
 * Takes a file out of a group; does nothing if it is not in the group. Idempotent.
 * @throws ApiError 404 if the group or the file does not exist.
 */
async function removeFromGroup(
  prisma: PrismaClient,
  owner: GroupOwner,
  groupId: string,
  fileId: string,
): Promise<void> {
  await requireGroup(prisma, owner, groupId)
  const where = pinned(owner, fileId)
  const { count } = await prisma.file.updateMany({ where: { ...where, groupId }, data: { groupId: null } })
  if (count === 0 && (await prisma.file.count({ where })) === 0) throw fileNotFound()
}
