import { z } from 'zod'
import type { Principal } from '../../accounts/authenticator.ts'
import { badRequest } from '../../errors.ts'
import { canonicalCid, parseCid } from '../../files/cid.ts'
import { type Route, route } from '../../http/route.ts'
import type { Agent } from '../agent.ts'
import type { AgentServices } from '../services.ts'
import { bundledTemplates } from './bundled.ts'
import { type Inspected, inspectSnapshot, listFiles } from './inspect.ts'
import {
  archived,
  newTemplate,
  oneTemplate,
  submitted,
  templateChange,
  templateList,
  templateQuery,
  validated,
  validation,
} from './schema.ts'
import { categoriesOf, listCategories, listTemplates, placeOf, requireTemplate } from './store.ts'
import { archiveTemplate, changeTemplate, makeTemplate } from './submit.ts'
import { toTemplateRecord } from './template.ts'

const TAG = 'Templates'
const TEMPLATES = '/v0/templates'
const byId = z.object({ templateId: z.string() })

/** Templates of agents: those that ship with Berth, and the workspace's own (contract 4.3, compatibility 2.2, 2.14). */
export function templateRoutes(services: AgentServices): Route[] {
  const { pool, access } = services

  /** The snapshot that a body names, for who may make templates of that agent. */
  const inspect = async (
    principal: Principal,
    { agentId, snapshotCid }: { agentId: string; snapshotCid?: string | undefined },
    signal: AbortSignal,
  ): Promise<{ agent: Agent; inspected: Inspected }> => {
    const agent = await access.admit(principal, agentId, 'owner')
    const cid = snapshotCid === undefined ? undefined : canonicalCid(parseCid(snapshotCid, 'snapshotCid'))
    return { agent, inspected: await inspectSnapshot(services, agent, cid, signal) }
  }

  return [
    route({
      method: 'get',
      path: TEMPLATES,
      id: 'listTemplates',
      tag: TAG,
      summary: 'List templates',
      description:
        'Those that ship with Berth, then the workspace’s own, by slug; the templates of other workspaces are not ' +
        'seen. Where there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page. ' +
        '`featured` are those that ship with Berth; `submittedBy=me` are those that the caller made.',
      scope: 'org:agents:read',
      query: templateQuery,
      success: { status: 200, description: 'The templates.', body: templateList },
      async handle({ principal: { workspaceId, userId }, query }) {
        const { category, featured, limit } = query
        const page = { after: readPlace(query.pageToken), limit: limit + 1 }
        const filter = { category, featured, submittedBy: query.submittedBy && userId }
        const [found, categories] = await Promise.all([
          listTemplates(pool, workspaceId, filter, page),
          listCategories(pool, workspaceId),
        ])
        const templates = found.slice(0, limit)
        const last = found.length > limit && templates.at(-1)
        return {
          ...(last && { headers: { 'Next-Page-Token': Buffer.from(placeOf(last)).toString('base64') } }),
          body: { templates: templates.map(toTemplateRecord), categories },
        }
      },
    }),
    route({
      method: 'get',
      path: '/v0/public-templates',
      id: 'listPublicTemplates',
      tag: TAG,
      summary: 'List what ships with Berth, without a key',
      scope: null,
      success: { status: 200, description: 'The templates.', body: templateList },
      async handle() {
        const templates = await bundledTemplates()
        return { body: { templates: templates.map(toTemplateRecord), categories: categoriesOf(templates) } }
      },
    }),
    route({
      method: 'get',
      path: `${TEMPLATES}/:slug`,
      id: 'getTemplate',
      tag: TAG,
      summary: 'Get a template by its slug',
      scope: 'org:agents:read',
      params: z.object({ slug: z.string() }),
      success: { status: 200, description: 'The template.', body: oneTemplate },
      errors: [404],
      async handle({ principal: { workspaceId }, params }) {
        const template = await requireTemplate(pool, workspaceId, params.slug, 'slug')
        return { body: { template: toTemplateRecord(template) } }
      },
    }),
    route({
      method: 'get',
      path: `${TEMPLATES}/id/:templateId`,
      id: 'getTemplateById',
      tag: TAG,
      summary: 'Get a template by its id',
      scope: 'org:agents:read',
      params: byId,
      success: { status: 200, description: 'The template.', body: oneTemplate },
      errors: [404],
      async handle({ principal: { workspaceId }, params }) {
        const template = await requireTemplate(pool, workspaceId, params.templateId, 'id')
        return { body: { template: toTemplateRecord(template) } }
      },
    }),
    route({
      method: 'post',
      path: TEMPLATES,
      id: 'createTemplate',
      tag: TAG,
      summary: 'Make a template of an agent’s snapshot',
      description:
        'The snapshot has `manifest.json`, `README.md` and `workspace/`; the manifest says what the body does not: its ' +
        '`template` has slug, category and tags, its `agent` name and description. Agents of this workspace can be ' +
        'made from the template at once. Its files are those of the snapshot, all of them: what nobody else in the ' +
        'workspace shall see is to be removed first.\n\n' +
        '400 `Validation failed: …` has the first fault, and `Error-Detail` all of them. A slug is taken within the ' +
        'workspace: 409 where a template of its own, or one that ships with Berth, has it.',
      scope: 'org:agents:write',
      body: newTemplate,
      success: { status: 201, description: 'The template.', body: submitted },
      errors: [404, 409],
      async handle({ principal, body, signal }) {
        const source = await inspect(principal, body, signal)
        const template = await makeTemplate(services, principal, { ...source, told: body })
        return { body: { success: true, template: toTemplateRecord(template) } }
      },
    }),
    route({
      method: 'post',
      path: `${TEMPLATES}/validate`,
      id: 'validateTemplate',
      tag: TAG,
      summary: 'Check whether a snapshot can be a template',
      scope: 'org:agents:read',
      body: validation,
      success: { status: 200, description: 'What is in it, and what is wrong with it.', body: validated },
      errors: [404],
      async handle({ principal, body, signal }) {
        const { inspected } = await inspect(principal, body, signal)
        const { described, readme, snapshot } = inspected
        const errors = 'errors' in described ? described.errors : []
        return {
          body: {
            valid: errors.length === 0,
            errors,
            manifest: 'manifest' in described ? described.manifest : null,
            readme,
            files: await listFiles(services, snapshot, signal),
            commitSha: snapshot.commitSha,
          },
        }
      },
    }),
    route({
      method: 'put',
      path: `${TEMPLATES}/:templateId`,
      id: 'updateTemplate',
      tag: TAG,
      summary: 'Change a template, or give it a new snapshot',
      description:
        'With `agentId` (and `snapshotCid`) its files become those of that snapshot, and `version` grows; agents that ' +
        'are there already stay as they are. 403 for templates that ship with Berth.',
      scope: 'org:agents:write',
      params: byId,
      body: templateChange,
      success: { status: 200, description: 'The template.', body: submitted },
      errors: [404, 409],
      async handle({ principal, params: { templateId }, body, signal }) {
        await requireTemplate(pool, principal.workspaceId, templateId, 'id')
        const { agentId, snapshotCid } = body
        const source = agentId ? await inspect(principal, { agentId, snapshotCid }, signal) : undefined
        const template = await changeTemplate(services, principal, templateId, { told: body, source })
        return { body: { success: true, template: toTemplateRecord(template) } }
      },
    }),
    route({
      method: 'delete',
      path: `${TEMPLATES}/:templateId`,
      id: 'archiveTemplate',
      tag: TAG,
      summary: 'Archive a template',
      description:
        'It is found no more, and its slug is free; agents that were made from it go on. It may be submitted again. ' +
        '403 for templates that ship with Berth.',
      scope: 'org:agents:write',
      params: byId,
      success: { status: 200, description: 'It is archived.', body: archived },
      errors: [404],
      async handle({ principal, params }) {
        const { name } = await archiveTemplate(services, principal, params.templateId)
        return { body: { success: true, message: `Template ${name} archived` } }
      },
    }),
  ]
}

/** @throws ApiError 400 for a token that we cannot have made. */
function readPlace(token: string | undefined): string | undefined {
  if (!token) return undefined
  const place = Buffer.from(token, 'base64').toString('latin1')
  if (/^[01][a-z0-9-]+$/.test(place)) return place
  throw badRequest('pageToken: not a token of this API')
}
