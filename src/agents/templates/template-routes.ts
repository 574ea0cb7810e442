import { join } from 'node:path'
import { z } from 'zod'
import { readDestinations } from '../../agent-proxy/destination.ts'
import { badRequest } from '../../errors.ts'
import { canonicalCid, parseCid } from '../../files/cid.ts'
import { nextPageHeaders, PAGED_BY_HEADER, readPage } from '../../http/pages.ts'
import type { Principal } from '../../http/principal.ts'
import { type Context, type Route, routesOf } from '../../http/route.ts'
import type { AgentServices } from '../agent-route.ts'
import { bundledTemplates } from './bundled.ts'
import { GitHosts, type GitOrigin } from './git/hosts.ts'
import { inspectRepository } from './git/inspect.ts'
import { namesRepository, ofRepository, originOf } from './git/origin.ts'
import { inspectSnapshot } from './inspect.ts'
import type { TemplateSource } from './source.ts'
import { archiveTemplate, changeTemplate, makeTemplate } from './submit.ts'
import { toTemplateRecord } from './template.ts'
import {
  archived,
  branchList,
  newTemplate,
  oneTemplate,
  refList,
  refSearch,
  submitted,
  templateChange,
  templateList,
  templateQuery,
  type Validation,
  validated,
  validation,
} from './template-schema.ts'
import {
  categoriesOf,
  listCategories,
  listTemplates,
  requireTemplate,
  templateOrder,
} from './template-store.ts'

const route = routesOf('Templates')
const TEMPLATES = '/v0/templates'
/** Maximum number of names in a list of branches or tags. */
const MAX_REFS = 1000
const REPOSITORY =
  'Reading a repository takes at most a minute, during which the client waits. Only one commit is read, ' +
  'without its history, submodules and LFS; at most 1000 files and 32 MiB, and no link that leads out of ' +
  'it. The repository has to be public, on https and on the internet. 400 explains why it cannot be read; ' +
  '502 and 504, that its server failed or was too slow; 429, that too many are being read.'
const byId = z.object({ templateId: z.string() })

type Asked = Pick<Context<unknown, unknown, Validation>, 'principal' | 'body' | 'req' | 'signal'>

/** Templates of agents: those that ship with Berth, and the workspace's own (contract 4.3). */
export function templateRoutes(services: AgentServices): Route[] {
  const { pool, access, config, bounds } = services

  const hosts = new GitHosts({
    dir: join(config.BERTH_DATA_DIR, 'git'),
    allowed: readDestinations(config.BERTH_GIT_ALLOW, 'BERTH_GIT_ALLOW'),
    bounds,
  })

  /** The snapshot that a body names, for callers who may create templates from that agent. */
  const ofAgent = async (
    principal: Principal,
    { agentId, snapshotCid }: { agentId: string; snapshotCid?: string | undefined },
    signal: AbortSignal,
  ): Promise<TemplateSource> => {
    const agent = await access.authorize(principal, agentId, [])
    const cid = snapshotCid === undefined ? undefined : canonicalCid(parseCid(snapshotCid, 'snapshotCid'))
    return inspectSnapshot(services, agent, cid, signal)
  }

  /** The source of a template that a body names; undefined if it names none. */
  const inspect = async (
    { principal, body, req, signal }: Asked,
    before?: GitOrigin | null,
  ): Promise<TemplateSource | undefined> => {
    const { agentId, snapshotCid } = body
    if (agentId) return ofAgent(principal, { agentId, snapshotCid }, signal)
    const origin = originOf(body, before)
    return origin && inspectRepository(services, hosts, origin, { holder: principal, log: req.log, signal })
  }

  return [
    route({
      method: 'get',
      path: TEMPLATES,
      id: 'listTemplates',
      summary: 'List templates',
      description:
        'First those that ship with Berth, then the workspace’s own, by slug. Templates of other ' +
        `workspaces are not included. ${PAGED_BY_HEADER} \`featured\` selects those that ship with Berth; ` +
        '`submittedBy=me` selects those that the caller created.',
      scope: 'org:agents:read',
      callers: ['workspace'],
      query: templateQuery,
      success: { description: 'The templates.', body: templateList },
      async handle({ principal: { workspaceId, userId }, query }) {
        const { category, featured } = query
        const filter = { category, featured, submittedBy: query.submittedBy && userId }
        const [page, categories] = await Promise.all([
          readPage(query, (cursor) => listTemplates(pool, workspaceId, filter, cursor), templateOrder),
          listCategories(pool, workspaceId),
        ])
        return { ...nextPageHeaders(page), body: { templates: page.items.map(toTemplateRecord), categories } }
      },
    }),
    route({
      method: 'get',
      path: '/v0/public-templates',
      id: 'listPublicTemplates',
      summary: 'List the templates that ship with Berth, without a key',
      scope: null,
      origins: 'any',
      success: { description: 'The templates.', body: templateList },
      async handle() {
        const templates = await bundledTemplates()
        return { body: { templates: templates.map(toTemplateRecord), categories: categoriesOf(templates) } }
      },
    }),
    route({
      method: 'get',
      path: `${TEMPLATES}/:templateId`,
      id: 'getTemplate',
      summary: 'Get a template by its slug',
      scope: 'org:agents:read',
      callers: ['workspace'],
      params: z.object({ templateId: z.string().describe('The slug.') }),
      success: { description: 'The template.', body: oneTemplate },
      errors: [404],
      async handle({ principal: { workspaceId }, params }) {
        const template = await requireTemplate(pool, workspaceId, params.templateId, 'slug')
        return { body: { template: toTemplateRecord(template) } }
      },
    }),
    route({
      method: 'get',
      path: `${TEMPLATES}/id/:templateId`,
      id: 'getTemplateById',
      summary: 'Get a template by its id',
      scope: 'org:agents:read',
      callers: ['workspace'],
      params: byId,
      success: { description: 'The template.', body: oneTemplate },
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
      summary: 'Create a template from an agent’s snapshot, or from a public repository',
      description:
        'From a snapshot (`agentId`), or from the newest commit of a branch (`gitUrl`). ' +
        'The source contains `manifest.json`, `README.md` and `workspace/`. The manifest ' +
        'supplies fields that the body omits: its `template` has slug, category and ' +
        'tags, its `agent` name and description. Agents of this workspace can use the ' +
        'template at once. It contains all files of the source: remove anything first ' +
        `that others in the workspace must not see.\n\n${REPOSITORY}\n\n400 \`Validation ` +
        'failed: …` names the first fault, and `Error-Detail` all of them. 409 if ' +
        'another template of the workspace, or one that ships with Berth, has the slug.',
      scope: 'org:agents:write',
      callers: ['workspace'],
      body: newTemplate,
      success: { status: 201, description: 'The template.', body: submitted },
      errors: [404, 409, 502, 504, 507],
      async handle(asked) {
        const source = (await inspect(asked)) as TemplateSource
        const template = await makeTemplate(services, asked.principal, source, asked.body)
        return { body: { success: true, template: toTemplateRecord(template) } }
      },
    }),
    route({
      method: 'post',
      path: `${TEMPLATES}/validate`,
      id: 'validateTemplate',
      summary: 'Check whether a snapshot or a public repository can be a template',
      description: `\`errors\` lists every obstacle. ${REPOSITORY}`,
      scope: 'org:agents:read',
      body: validation,
      success: { description: 'Its contents, and its faults.', body: validated },
      errors: [404, 502, 504],
      async handle(asked) {
        const source = (await inspect(asked)) as TemplateSource
        const { described, readme, commitSha } = source
        const errors = 'errors' in described ? described.errors : []
        return {
          body: {
            valid: errors.length === 0,
            errors,
            manifest: 'manifest' in described ? described.manifest : null,
            readme,
            files: await source.paths(),
            commitSha,
          },
        }
      },
    }),
    route({
      method: 'post',
      path: `${TEMPLATES}/branches`,
      id: 'listTemplateBranches',
      summary: 'List the branches of a public repository',
      scope: 'org:agents:read',
      body: ofRepository,
      success: { description: 'Its branches, by name.', body: branchList },
      errors: [502, 504],
      async handle({ principal, body: { gitUrl }, req, signal }) {
        const { branches } = await hosts.refs(gitUrl, { holder: principal, log: req.log, signal })
        return { body: { branches: branches.slice(0, MAX_REFS) } }
      },
    }),
    route({
      method: 'post',
      path: `${TEMPLATES}/refs`,
      id: 'listTemplateRefs',
      summary: 'List the branches and tags of a public repository',
      scope: 'org:agents:read',
      body: refSearch,
      success: { description: 'Its branches and tags, by name.', body: refList },
      errors: [502, 504],
      async handle({ principal, body: { gitUrl, search = '' }, req, signal }) {
        const { branches, tags, defaultBranch } = await hosts.refs(gitUrl, {
          holder: principal,
          log: req.log,
          signal,
        })
        const found = (names: string[]) =>
          names.filter((name) => name.toLowerCase().includes(search.toLowerCase())).slice(0, MAX_REFS)
        return { body: { branches: found(branches), tags: found(tags), defaultBranch } }
      },
    }),
    route({
      method: 'put',
      path: `${TEMPLATES}/:templateId`,
      id: 'updateTemplate',
      summary: 'Change a template, or give it new files',
      description:
        'With `agentId` (and `snapshotCid`) its files become those of that snapshot. With `gitUrl`, ' +
        '`branch`, `ref` or `path` they become those of that repository, and omitted fields keep their ' +
        'value. An empty body reads the template’s repository again. `version` grows with each change of ' +
        'files; existing agents stay unchanged. 403 for templates that ship with Berth.',
      scope: 'org:agents:write',
      params: byId,
      body: templateChange,
      success: { description: 'The template.', body: submitted },
      errors: [404, 409, 502, 504, 507],
      async handle(asked) {
        const { principal, params, body } = asked
        const { details } = await requireTemplate(pool, principal.workspaceId, params.templateId, 'id')
        const isAsked = body.agentId !== undefined || namesRepository(body) || Object.keys(body).length === 0
        const source = isAsked ? await inspect(asked, details.git) : undefined
        if (!source && namesRepository(body))
          throw badRequest('gitUrl: must be given, since the template does not come from a repository')
        const template = await changeTemplate(services, principal, params.templateId, { given: body, source })
        return { body: { success: true, template: toTemplateRecord(template) } }
      },
    }),
    route({
      method: 'delete',
      path: `${TEMPLATES}/:templateId`,
      id: 'archiveTemplate',
      summary: 'Archive a template',
      description:
        'It is no longer found, and its slug is free; agents made from it keep running. It may be ' +
        'submitted again. 403 for templates that ship with Berth.',
      scope: 'org:agents:write',
      params: byId,
      success: { description: 'The template is archived.', body: archived },
      errors: [404],
      async handle({ principal, params }) {
        const { name } = await archiveTemplate(services, principal, params.templateId)
        return { body: { success: true, message: `Template ${name} archived` } }
      },
    }),
  ]
}
