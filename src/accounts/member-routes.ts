import { z } from 'zod'
import type { PrismaClient } from '../db/prisma.ts'
import { type Route, route } from '../http/route.ts'
import { nothing, pageOf, paging, pathId, readPageToken, toPage } from '../http/shapes.ts'
import { changeRole, listMembers, removeMember } from './members.ts'
import { ROLES } from './workspace-routes.ts'

const TAG = 'Members'
const MEMBERS = '/v0/workspaces/:workspaceId/members'
const MEMBER = `${MEMBERS}/:userId`
const params = z.object({ userId: pathId })
const LAST_OWNER = '409 for the last owner, whom a workspace keeps.'

const memberRecord = z.object({ id: z.string(), name: z.string(), role: z.enum(ROLES) })

/** @param forgetKeys makes this process read its cached keys again; the others learn of it by notification. */
export function memberRoutes(prisma: PrismaClient, forgetKeys: () => void): Route[] {
  return [
    route({
      method: 'get',
      path: MEMBERS,
      id: 'listMembers',
      tag: TAG,
      summary: 'List members',
      scope: 'org:read',
      role: 'owner',
      query: z.object({
        role: z.enum(ROLES).optional(),
        ...paging(10, 250),
      }),
      success: {
        status: 200,
        description: 'A page of members, those who have been users the longest first.',
        body: pageOf('members', memberRecord),
      },
      async handle({ principal, query: { role, limit, pageToken } }) {
        const after = readPageToken(pageToken)
        const found = await listMembers(prisma, principal.workspaceId, { role, after, limit: limit + 1 })
        return { body: toPage('members', found, limit) }
      },
    }),
    route({
      method: 'patch',
      path: MEMBER,
      id: 'changeMember',
      tag: TAG,
      summary: 'Give a member another role',
      description: `At once for all of the member’s keys. ${LAST_OWNER}`,
      scope: 'admin',
      role: 'owner',
      params,
      body: z.object({ role: z.enum(ROLES) }),
      success: { status: 200, description: 'The member.', body: z.object({ data: memberRecord }) },
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
      tag: TAG,
      summary: 'Take a member out of the workspace',
      description: `The member’s keys of it end at once, and stay without use where the member comes back. ${LAST_OWNER}`,
      scope: 'admin',
      role: 'owner',
      params,
      success: { status: 200, description: 'Removed.', body: nothing },
      errors: [404, 409],
      async handle({ principal: { workspaceId, userId: by }, params: { userId } }) {
        await removeMember(prisma, workspaceId, userId, by)
        forgetKeys()
        return { body: { data: null } }
      },
    }),
  ]
}
