import { z } from 'zod'
import { changeWorkspace, createWorkspace } from '../accounts/workspaces.ts'
import { newestFirst } from '../db/cursor.ts'
import { AGENT_COUNT_LIMIT, readUsages } from '../db/statements/files.ts'
import { notFound } from '../errors.ts'
import { apiKey, like, timestamp, withExample, workspaceId } from '../http/fields.ts'
import { pageOf, paging, readPage, toPage } from '../http/pages.ts'
import type { Route } from '../http/route.ts'
import { oneOrMore, pathId, text, visibleText } from '../http/shapes.ts'
import { type AdminServices, route } from './services.ts'

const WORKSPACES = '/v0/admin/workspaces'
const WORKSPACE = `${WORKSPACES}/:id`
const params = z.object({ id: pathId })
const name = withExample(visibleText(255), 'catalogues')
const plan = withExample(text(255), 'pro')

const workspaceRecord = z.object({
  id: workspaceId,
  name: like('catalogues'),
  plan: like('pro'),
  createdAt: timestamp,
  usage: z.object({
    files: like(128),
    bytes: like(734_003_200).describe('Total size of the content on both networks.'),
    agents: like(3).describe(`${AGENT_COUNT_LIMIT} means that many or more.`),
  }),
})
const one = z.object({ data: workspaceRecord })
const noWorkspace = () => notFound('There is no such workspace')

const changes = z
  .object({ name: name.optional(), plan: plan.optional() })
  .refine(({ name, plan }) => name !== undefined || plan !== undefined, 'must have a name or plan')
  .meta(oneOrMore('name', 'plan'))

/** The workspaces of the instance. */
export function workspaceRoutes({ pool, prisma, keys, forgetKeys }: AdminServices): Route[] {
  type Row = { id: string; name: string; planName: string; createdAt: Date }
  const toRecords = async (rows: Row[]): Promise<z.output<typeof workspaceRecord>[]> => {
    const usages = (
      await readUsages.run(
        pool,
        rows.map(({ id }) => id),
      )
    ).rows
    const usageOf = new Map(usages.map(({ id, ...usage }) => [id, usage]))
    const none = { files: 0, bytes: 0, agents: 0 }
    return rows.map(({ id, name, planName, createdAt }) => ({
      id,
      name,
      plan: planName,
      createdAt: createdAt.toISOString(),
      usage: usageOf.get(id) ?? none,
    }))
  }
  const read = async (id: string) => {
    const row = await prisma.workspace.findUnique({ where: { id } })
    const [record] = row ? await toRecords([row]) : []
    if (!record) throw noWorkspace()
    return record
  }
  return [
    route({
      method: 'get',
      path: WORKSPACES,
      id: 'listAllWorkspaces',
      summary: 'List the workspaces of the instance with their usage',
      scope: 'instance:read',
      query: z.object({
        name: text(255).optional().describe('Only the workspace with this name.'),
        plan: plan.optional().describe('Only workspaces on this plan.'),
        ...paging(10, 100),
      }),
      success: {
        description: 'A page of workspaces, newest first.',
        body: pageOf('workspaces', workspaceRecord),
      },
      async handle({ query: { name, plan, ...query } }) {
        const where = { ...(name !== undefined && { name }), ...(plan !== undefined && { planName: plan }) }
        const { items, next } = await readPage(query, (cursor) =>
          prisma.workspace.findMany(newestFirst(cursor, where)),
        )
        return { body: toPage('workspaces', { items: await toRecords(items), next }) }
      },
    }),
    route({
      method: 'post',
      path: WORKSPACES,
      id: 'createWorkspace',
      summary: 'Create a workspace',
      description:
        'Also creates a gateway, and a key with `admin` for the user who owns the workspace. 409 if another workspace has the name.',
      scope: 'instance:write',
      body: z.object({
        name,
        plan: plan.default('free'),
        owner: withExample(name, 'Ada').describe(
          'The name of a user, who is created if no user has that name.',
        ),
      }),
      success: {
        status: 201,
        description: 'The workspace, with the token of the key. It is shown only once.',
        body: z.object({
          data: workspaceRecord.extend({
            token: apiKey,
          }),
        }),
      },
      errors: [409],
      async handle({ body }) {
        const { id, more: key } = await createWorkspace(prisma, body, (tx, { id, ownerId }) =>
          keys.create({ workspaceId: id, userId: ownerId, name: 'first key', scopes: ['admin'] }, tx),
        )
        return { body: { data: { ...(await read(id)), token: key?.token } } }
      },
    }),
    route({
      method: 'get',
      path: WORKSPACE,
      id: 'getAnyWorkspace',
      summary: 'Get a workspace and its usage',
      scope: 'instance:read',
      params,
      success: { description: 'The workspace.', body: one },
      errors: [404],
      async handle({ params: { id } }) {
        return { body: { data: await read(id) } }
      },
    }),
    route({
      method: 'patch',
      path: WORKSPACE,
      id: 'changeWorkspace',
      summary: 'Put a workspace on another plan, or rename it',
      description:
        'Omitted fields stay unchanged. A new plan applies at once to all keys of the workspace. 409 if another workspace has the name.',
      scope: 'instance:write',
      params,
      body: changes,
      success: { description: 'The updated workspace.', body: one },
      errors: [404, 409],
      async handle({ params: { id }, body }) {
        if (!(await changeWorkspace(prisma, id, body))) throw noWorkspace()
        forgetKeys()
        return { body: { data: await read(id) } }
      },
    }),
  ]
}
