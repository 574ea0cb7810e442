import { z } from 'zod'
import { like, userId, withExample } from '../http/fields.ts'
import { pageOf, paging, readPage, toPage } from '../http/pages.ts'
import { type Route, routesOf } from '../http/route.ts'
import { nothing, pathId } from '../http/shapes.ts'
import { changeRole, listMembers, removeMember } from './members.ts'
import type { AccountServices } from './services.ts'
import { ROLES } from './workspace-routes.ts'

const route = routesOf('Members')
const MEMBERS = '/v0/workspaces/:workspaceId/members'
const MEMBER = `${MEMBERS}/:userId`
const params = z.object({ userId: pathId })
const LAST_OWNER = '409 for the last owner of a workspace.'

const memberRecord = z.object({ id: userId, name: like('Ada'), role: withExample(z.enum(ROLES), 'member') })

export function memberRoutes({ prisma, forgetKeys }: AccountServices): Route[] {
  return [
    route({
      method: 'get',
      path: MEMBERS,
      id: 'listMembers',
      summary: 'List members',
      scope: 'org:read',
      role: 'owner',
      query: z.object({
        role: z.enum(ROLES).optional(),
        ...paging(10, 250),
      }),
      success: {
        description: 'A page of members, the longest-standing users first.',
        body: pageOf('members', memberRecord),
      },
      async handle({ principal: { workspaceId }, query: { role, ...query } }) {
        const page = await readPage(query, (cursor) => listMembers(prisma, workspaceId, { role, ...cursor }))
        return { body: toPage('members', page) }
      },
    }),
    route({
      method: 'patch',
      path: MEMBER,
      id: 'changeMember',
      summary: 'Change a member’s role',
      description: `Applies to all of the member’s keys at once. ${LAST_OWNER}`,
      scope: 'admin',
      role: 'owner',
      params,
      body: z.object({ role: memberRecord.shape.role }),
      success: { description: 'The member.', body: z.object({ data: memberRecord }) },
      errors: [404, 409],
      async handle({ principal: { workspaceId, userId: by }, params: { userId }, body: { role } }) {
        const data = await changeRole(prisma, { workspaceId, userId, role, by })
        forgetKeys()
        return { body: { data } }
      },
    }),
    route({
      method: 'delete',
      path: MEMBER,
      id: 'removeMember',
      summary: 'Remove a member from the workspace',
      description: `The member’s keys for the workspace stop working at once, and stay revoked if the member rejoins. ${LAST_OWNER}`,
      scope: 'admin',
      role: 'owner',
      params,
      success: { description: 'Removed.', body: nothing },
      errors: [404, 409],
      async handle({ principal: { workspaceId, userId: by }, params: { userId } }) {
        await removeMember(prisma, workspaceId, userId, by)
        forgetKeys()
        return { body: { data: null } }
      },
    }),
  ]
}
