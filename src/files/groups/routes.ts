import { z } from 'zod'
import { escapeLike } from '../../db/like.ts'
import type { PrismaClient } from '../../db/prisma.ts'
import { notFound } from '../../errors.ts'
import { type Route, route } from '../../http/route.ts'
import { limit, nextPageToken, nothing, pathId, readPageToken, text } from '../../http/shapes.ts'
import { deleteGroup } from './delete.ts'

const group = z.object({ id: z.string(), name: z.string(), is_public: z.boolean(), created_at: z.string() })
const params = z.object({ id: pathId })
const name = text(255).trim().min(1, 'must not be empty')
const TAG = 'Groups'
const NETWORK = 'public'

interface GroupRow {
  id: string
  name: string
  isPublic: boolean
  createdAt: Date
}

/** Groups of files on the public network (compatibility 1.5). */
export function groupRoutes(prisma: PrismaClient): Route[] {
  const view = ({ id, name, isPublic, createdAt }: GroupRow) => ({
    id,
    name,
    is_public: isPublic,
    created_at: createdAt.toISOString(),
  })
  const find = async (workspaceId: string, id: string) => {
    const found = await prisma.group.findFirst({ where: { id, workspaceId, network: NETWORK } })
    if (!found) throw notFound('There is no such group')
    return found
  }
  return [
    route({
      method: 'post',
      path: '/v3/groups/public',
      id: 'createGroup',
      tag: TAG,
      summary: 'Create a group',
      scope: 'org:groups:write',
      body: z.object({ name, is_public: z.boolean().optional() }),
      success: { status: 200, description: 'The group.', body: z.object({ data: group }) },
      async handle({ principal, body }) {
        const { workspaceId } = principal
        const data = { workspaceId, network: NETWORK, name: body.name, isPublic: body.is_public ?? false }
        return { body: { data: view(await prisma.group.create({ data })) } }
      },
    }),
    route({
      method: 'get',
      path: '/v3/groups/public',
      id: 'listGroups',
      tag: TAG,
      summary: 'List groups',
      scope: 'org:groups:read',
      query: z.object({
        name: text(255).optional().describe('Part of the name, in any case.'),
        isPublic: z.enum(['true', 'false']).optional(),
        limit: limit(10, 1000),
        pageToken: text(255).optional(),
      }),
      success: {
        status: 200,
        description: 'A page of groups, newest first.',
        body: z.object({ data: z.object({ groups: z.array(group), next_page_token: z.string() }) }),
      },
      async handle({ principal, query }) {
        const after = readPageToken(query.pageToken)
        const groups = await prisma.group.findMany({
          where: {
            workspaceId: principal.workspaceId,
            network: NETWORK,
            ...(query.name && { name: { contains: escapeLike(query.name), mode: 'insensitive' } }),
            ...(query.isPublic && { isPublic: query.isPublic === 'true' }),
            ...(after && { id: { lt: after } }),
          },
          orderBy: { id: 'desc' },
          take: query.limit + 1,
        })
        const page = groups.slice(0, query.limit).map(view)
        return { body: { data: { groups: page, next_page_token: nextPageToken(groups, query.limit) } } }
      },
    }),
    route({
      method: 'get',
      path: '/v3/groups/public/:id',
      id: 'getGroup',
      tag: TAG,
      summary: 'Get a group',
      scope: 'org:groups:read',
      params,
      success: { status: 200, description: 'The group.', body: z.object({ data: group }) },
      errors: [404],
      async handle({ principal, params }) {
        return { body: { data: view(await find(principal.workspaceId, params.id)) } }
      },
    }),
    route({
      method: 'delete',
      path: '/v3/groups/public/:id',
      id: 'deleteGroup',
      tag: TAG,
      summary: 'Delete a group; its files stay',
      scope: 'org:groups:write',
      params,
      success: { status: 200, description: 'Deleted.', body: nothing },
      errors: [404],
      async handle({ principal, params }) {
        const { id } = await find(principal.workspaceId, params.id)
        await deleteGroup(prisma, id)
        return { body: { data: null } }
      },
    }),
  ]
}
