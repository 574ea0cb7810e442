import { join } from 'node:path'
import { z } from 'zod'
import { readDestinations } from '../../agent-proxy/destination.ts'
import { badRequest } from '../../errors.ts'
import { canonicalCid, parseCid } from '../../files/cid.ts'
import type { Principal } from '../../http/principal.ts'
import { type Context, type Route, route } from '../../http/route.ts'
import { nextPageHeaders, PAGED_BY_HEADER } from '../../http/shapes.ts'
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
import { categoriesOf, listCategories, listTemplates, placeOf, requireTemplate } from './template-store.ts'

const TAG = 'Templates'
const TEMPLATES = '/v0/templates'
/** Most names in a list of branches or tags. */
const MAX_REFS = 1000
const REPOSITORY =
  'A repository is read while the client waits, for at most a minute: one commit, without its history, submodules and ' +
  'LFS; at most 1000 files and 32 MiB, and no link that leads out of it. It has to be public, on https, and on the ' +
  'internet; 400 says why one cannot be read, 502 and 504 that its server failed or was too slow, 429 that too many ' +
  'are being read.'
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

  /** The snapshot that a body names, for who may make templates of that agent. */
  const ofAgent = async (
    principal: Principal,
    { agentId, snapshotCid }: { agentId: string; snapshotCid?: string | undefined },
    signal: AbortSignal,
  ): Promise<TemplateSource> => {
    const agent = await access.authorize(principal, agentId, [])
    const cid = snapshotCid === undefined ? undefined : canonicalCid(parseCid(snapshotCid, 'snapshotCid'))
    return inspectSnapshot(services, agent, cid, signal)
  }

  /** The source of a template that a body names; undefined where it names none. */
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
      tag: TAG,
      summary: 'List templates',
      description:
        'Those that ship with Berth, then the workspace’s own, by slug; the templates of other workspaces are not ' +
        `seen. ${PAGED_BY_HEADER} ` +
        '`featured` are those that ship with Berth; `submittedBy=me` are those that the caller made.',
      scope: 'org:agents:read',
      callers: ['workspace'],
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
          ...nextPageHeaders(last ? Buffer.from(placeOf(last)).toString('base64') : ''),
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
      origins: 'any',
      success: { status: 200, description: 'The templates.', body: templateList },
      async handle() {
        const templates = await bundledTemplates()
        return { body: { templates: templates.map(toTemplateRecord), categories: categoriesOf(templates) } }
      },
    }),
    route({
      method: 'get',
      path: `${TEMPLATES}/:templateId`,
      id: 'getTemplate',
      tag: TAG,
      summary: 'Get a template by its slug',
      scope: 'org:agents:read',
      callers: ['workspace'],
      params: z.object({ templateId: z.string().describe('The slug.') }),
      success: { status: 200, description: 'The template.', body: oneTemplate },
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
      tag: TAG,
      summary: 'Get a template by its id',
      scope: 'org:agents:read',
      callers: ['workspace'],
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
      summary: 'Make a template of an agent’s snapshot, or of a public repository',
      description:
        'Of a snapshot (`agentId`), or of the newest commit of a branch (`gitUrl`). It ' +
        'has `manifest.json`, `README.md` and `workspace/`; the manifest says what the body does not: its ' +
        '`template` has slug, category and tags, its `agent` name and description. Agents of this workspace can be ' +
        'made from the template at once. Its files are those of the snapshot, all of them: what nobody else in the ' +
        'workspace shall see is to be removed first.\n\n' +
        `${REPOSITORY}\n\n` +
        '400 `Validation failed: …` has the first fault, and `Error-Detail` all of them. A slug is taken within the ' +
        'workspace: 409 where a template of its own, or one that ships with Berth, has it.',
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
      tag: TAG,
      summary: 'Check whether a snapshot or a public repository can be a template',
      description: `\`errors\` has all that keeps it from being one. ${REPOSITORY}`,
      scope: 'org:agents:read',
      body: validation,
      success: { status: 200, description: 'What is in it, and what is wrong with it.', body: validated },
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
      tag: TAG,
      summary: 'List the branches of a public repository',
      scope: 'org:agents:read',
      body: ofRepository,
      success: { status: 200, description: 'Its branches, by name.', body: branchList },
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
      tag: TAG,
      summary: 'List the branches and tags of a public repository',
      scope: 'org:agents:read',
      body: refSearch,
      success: { status: 200, description: 'Its branches and tags, by name.', body: refList },
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
      tag: TAG,
      summary: 'Change a template, or give it new files',
      description:
        'With `agentId` (and `snapshotCid`) its files become those of that snapshot, with `gitUrl`, `branch`, `ref` or ' +
        '`path` those of that repository, where what is not given stays as it was. An empty body reads the repository ' +
        'again that the template is of. `version` grows with each; agents that are there already stay as they are. 403 ' +
        'for templates that ship with Berth.',
      scope: 'org:agents:write',
      params: byId,
      body: templateChange,
      success: { status: 200, description: 'The template.', body: submitted },
      errors: [404, 409, 502, 504, 507],
      async handle(asked) {
        const { principal, params, body } = asked
        const { details } = await requireTemplate(pool, principal.workspaceId, params.templateId, 'id')
        const isAsked = body.agentId !== undefined || namesRepository(body) || Object.keys(body).length === 0
        const source = isAsked ? await inspect(asked, details.git) : undefined
        if (!source && namesRepository(body))
          throw badRequest('gitUrl: must be given, since the template is of no repository')
        const template = await changeTemplate(services, principal, params.templateId, { given: body, source })
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
