import { z } from 'zod'
import { readUsage } from '../db/statements/files.ts'
import { notFound } from '../errors.ts'
import { like, timestamp, withExample, workspaceId } from '../http/fields.ts'
import { pageOf } from '../http/pages.ts'
import type { Principal } from '../http/principal.ts'
import { type Route, routesOf } from '../http/route.ts'
import { visibleText } from '../http/shapes.ts'
import { planRecord, toPlanRecord } from './plans.ts'
import type { AccountServices } from './services.ts'
import { renameWorkspace } from './workspaces.ts'

const route = routesOf('Workspaces')
export const ROLES = ['owner', 'member', 'viewer'] as const
const workspaceName = withExample(visibleText(255), 'catalogues')

const workspaceRecord = z.object({
  id: workspaceId,
  name: like('catalogues'),
  createdAt: timestamp,
  plan: planRecord,
  role: z.enum(ROLES).describe('The role of the key’s user.'),
  usage: z.object({ files: like(128), bytes: like(734_003_200) }).describe('Its files on both networks.'),
})
const one = z.object({ data: workspaceRecord })

export function workspaceRoutes({ pool, prisma, forgetKeys }: AccountServices): Route[] {
  const read = async ({ workspaceId, role }: Principal): Promise<z.output<typeof workspaceRecord>> => {
    const [found, usage] = await Promise.all([
      prisma.workspace.findUnique({ where: { id: workspaceId }, include: { plan: true } }),
      readUsage.one(pool, workspaceId),
    ])
    if (!found) throw notFound('There is no such workspace')
    const { id, name, createdAt, plan } = found
    return { id, name, createdAt: createdAt.toISOString(), plan: toPlanRecord(plan), role, usage }
  }
  return [
    route({
      method: 'get',
      path: '/v0/workspaces',
      id: 'listWorkspaces',
      summary: 'List the key’s workspaces',
      description: 'A key belongs to one workspace; use this to learn its id.',
      scope: 'org:read',
      success: { description: 'The workspace.', body: pageOf('workspaces', workspaceRecord) },
      async handle({ principal }) {
        return { body: { data: { workspaces: [await read(principal)], next_page_token: '' } } }
      },
    }),
    route({
      method: 'get',
      path: '/v0/workspaces/:workspaceId',
      id: 'getWorkspace',
      summary: 'Get the workspace, its plan and its usage',
      scope: 'org:read',
      success: { description: 'The workspace.', body: one },
      async handle({ principal }) {
        return { body: { data: await read(principal) } }
      },
    }),
    route({
      method: 'patch',
      path: '/v0/workspaces/:workspaceId',
      id: 'renameWorkspace',
      summary: 'Rename the workspace',
      description: 'Its gateways keep their names. If another workspace has the name, a number is appended.',
      scope: 'admin',
      role: 'owner',
      body: z.object({ name: workspaceName }),
      success: { description: 'The updated workspace.', body: one },
      async handle({ principal, body: { name } }) {
        await renameWorkspace(prisma, principal.workspaceId, name)
        forgetKeys()
        return { body: { data: await read(principal) } }
      },
    }),
  ]
}
