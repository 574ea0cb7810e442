import { z } from 'zod'
import type { Principal } from '../../accounts/authenticator.ts'
import type { Pool } from '../../db/pool.ts'
import { notFound } from '../../errors.ts'
import { type Route, route } from '../../http/route.ts'
import { network, nextPageToken, nothing, pathId, readPageToken } from '../../http/shapes.ts'
import type { Network } from '../../storage/port.ts'
import { deleteGroup } from './delete.ts'
import { addToGroup, type Missing, removeFromGroup } from './members.ts'
import { groupChanges, groupPage, groupQuery, groupRecord, newGroup } from './schema.ts'
import { createGroup, findGroup, type GroupOwner, listGroups, updateGroup } from './service.ts'

const TAG = 'Groups'
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

function requireBoth(missing: Missing): void {
  if (missing === 'group') throw groupNotFound()
  if (missing === 'file') throw notFound('There is no such file')
}

/** Groups of files (compatibility 1.5). */
export function groupRoutes(pool: Pool): Route[] {
  return [
    route({
      method: 'post',
      path: GROUPS,
      id: 'createGroup',
      tag: TAG,
      summary: 'Create a group',
      description: 'It takes files of its own network only.',
      scope: 'org:groups:write',
      params: z.object({ network }),
      body: newGroup,
      success: { status: 200, description: 'The group.', body: one },
      async handle({ principal, params, body }) {
        return { body: { data: await createGroup(pool, owner(principal, params), body) } }
      },
    }),
    route({
      method: 'get',
      path: GROUPS,
      id: 'listGroups',
      tag: TAG,
      summary: 'List groups',
      scope: 'org:groups:read',
      params: z.object({ network }),
      query: groupQuery,
      success: { status: 200, description: 'A page of groups, newest first.', body: groupPage },
      async handle({ principal, params, query: { name, isPublic, limit, pageToken } }) {
        const groups = await listGroups(pool, owner(principal, params), {
          name,
          isPublic: isPublic === undefined ? undefined : isPublic === 'true',
          after: readPageToken(pageToken),
          limit: limit + 1,
        })
        return {
          body: { data: { groups: groups.slice(0, limit), next_page_token: nextPageToken(groups, limit) } },
        }
      },
    }),
    route({
      method: 'get',
      path: GROUP,
      id: 'getGroup',
      tag: TAG,
      summary: 'Get a group',
      scope: 'org:groups:read',
      params,
      success: { status: 200, description: 'The group.', body: one },
      errors: [404],
      async handle({ principal, params }) {
        const group = await findGroup(pool, owner(principal, params), params.id)
        if (!group) throw groupNotFound()
        return { body: { data: group } }
      },
    }),
    route({
      method: 'put',
      path: GROUP,
      id: 'updateGroup',
      tag: TAG,
      summary: "Change a group's name, or whether it is public",
      description: 'What is left out stays as it is.',
      scope: 'org:groups:write',
      params,
      body: groupChanges,
      success: { status: 200, description: 'The group as it is now.', body: one },
      errors: [404],
      async handle({ principal, params, body }) {
        const group = await updateGroup(pool, owner(principal, params), params.id, body)
        if (!group) throw groupNotFound()
        return { body: { data: group } }
      },
    }),
    route({
      method: 'delete',
      path: GROUP,
      id: 'deleteGroup',
      tag: TAG,
      summary: 'Delete a group; its files stay',
      scope: 'org:groups:write',
      params,
      success: { status: 200, description: 'Deleted.', body: nothing },
      errors: [404],
      async handle({ principal, params }) {
        if (!(await findGroup(pool, owner(principal, params), params.id))) throw groupNotFound()
        await deleteGroup(pool, params.id)
        return { body: { data: null } }
      },
    }),
    route({
      method: 'put',
      path: MEMBER,
      id: 'addFileToGroup',
      tag: TAG,
      summary: 'Put a file into a group',
      description: 'A file is in one group or none: it leaves the one that it was in.',
      scope: 'org:groups:write',
      params: memberParams,
      success: { status: 200, description: 'It is in the group.', body: nothing },
      errors: [404],
      async handle({ principal, params }) {
        requireBoth(await addToGroup(pool, owner(principal, params), params.id, params.fileId))
        return { body: { data: null } }
      },
    }),
    route({
      method: 'delete',
      path: MEMBER,
      id: 'removeFileFromGroup',
      tag: TAG,
      summary: 'Take a file out of a group',
      description: 'The file stays. One that is not in the group is left where it is.',
      scope: 'org:groups:write',
      params: memberParams,
      success: { status: 200, description: 'It is not in the group.', body: nothing },
      errors: [404],
      async handle({ principal, params }) {
        requireBoth(await removeFromGroup(pool, owner(principal, params), params.id, params.fileId))
        return { body: { data: null } }
      },
    }),
  ]
}
