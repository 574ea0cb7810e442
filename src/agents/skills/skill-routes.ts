import { z } from 'zod'
import { badRequest } from '../../errors.ts'
import { canonicalCid, parseCid, parseContentCid } from '../../files/cid.ts'
import { startPin } from '../../files/retrieve.ts'
import { like, userId, uuid } from '../../http/fields.ts'
import { nextPageHeaders, PAGED_BY_HEADER, paging, readPage } from '../../http/pages.ts'
import type { Principal } from '../../http/principal.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { text } from '../../http/shapes.ts'
import { isUuid } from '../../lib/read.ts'
import { operationRoutes, type Unsuccessful } from '../../operations/operation-route.ts'
import type { AgentServices } from '../agent-route.ts'
import { noSkill } from './attach.ts'
import { findContent, type SkillContent } from './content.ts'
import { addSkill, addVersion, deleteSkill, findSkill, listSkills, listVersions } from './library.ts'
import { BadSkill } from './skill-md.ts'
import { newSkill, newVersion, type SkillRecord, skillRecord, versionRecord } from './skill-schema.ts'

const TAG = 'Skills'
const route = routesOf(TAG)
const SKILLS = '/v0/skills'
const SKILL = `${SKILLS}/:skillId`
const VERSIONS = `${SKILL}/versions`
const success = z.literal(true)
const params = z.object({
  skillId: text(512).meta({ format: 'skill-id' }).describe('Its id, or the CID of one of its versions.'),
})
const page = z.object({ ...paging(1000, 1000) })
const pending = {
  description: 'Its content is being retrieved.',
  body: z.object({
    message: like('The content is being retrieved: repeat the request when the operation has ended'),
  }),
}
const CONTENT =
  'The content is a folder with SKILL.md, whose front matter has `name` and `description`; at most 500 files and 8 ' +
  'MiB, without links. It is read from the public network, or from the private one if it is a file of this ' +
  'workspace. Content that is not stored here is pinned first, as by `POST /v3/files/public/pin_by_cid` and under ' +
  'its conditions (scope `org:files:write`). If that takes longer than 25 seconds, the response is 202 with the ' +
  'pin’s operation; repeat the request when it has ended. Berth keeps the content as long as the skill.'
const NEWEST =
  'The newest version is the highest release by Semantic Versioning, even if a lower one is published ' +
  'later. Prereleases count if there is no release, and versions without a number if no version has one.'

/** The library of a workspace (contract 4.3). */
export function skillRoutes(services: AgentServices): Route[] {
  const { pool, prisma, operations } = services
  const operationRoute = operationRoutes(operations, TAG)

  /** @throws ApiError 404 */
  async function requireSkill(workspaceId: string, named: string): Promise<SkillRecord> {
    const found = await findSkill(pool, workspaceId, nameOf(named))
    if (!found) throw noSkill()
    return found
  }

  /**
   * Adds a skill by its content, which is retrieved first if it is not stored here.
   * @throws ApiError 400 if the content is not a skill, or cannot be retrieved.
   */
  async function addContent<T>(
    { principal, signal }: { principal: Principal; signal: AbortSignal },
    skill: { cid: string; name: string },
    add: (content: SkillContent) => Promise<T>,
  ) {
    const find = () =>
      findContent(services, principal.workspaceId, skill.cid, signal).catch((error) => {
        throw error instanceof BadSkill ? badRequest(`skillCid: ${error.message}`) : error
      })
    const missing = (reason = 'the pin was withdrawn') =>
      badRequest(`skillCid: its content could not be retrieved: ${reason}`)
    const content = await find()
    if (content) return { body: await add(content) }
    return {
      operationId: await startPin(pool, principal, skill),
      pending: {
        message: 'The content is being retrieved: repeat the request when the operation has ended',
      },
      async done() {
        const content = await find()
        if (!content) throw missing()
        return add(content)
      },
      failed(ended: Unsuccessful) {
        throw missing(ended.state === 'failed' ? ended.error : undefined)
      },
    }
  }

  return [
    route({
      method: 'get',
      path: SKILLS,
      id: 'listSkills',
      summary: 'List the skills in the library',
      description: `Newest first. ${PAGED_BY_HEADER}`,
      scope: 'org:agents:read',
      callers: ['workspace'],
      query: page,
      success: {
        description: 'The skills of the workspace.',
        body: z.object({ skills: z.array(skillRecord), currentUserId: userId }),
      },
      async handle({ principal, query }) {
        const { workspaceId, userId: currentUserId } = principal
        const page = await readPage(query, (cursor) => listSkills(pool, workspaceId, cursor), {
          placeOf: ({ skillId }) => skillId,
        })
        return { ...nextPageHeaders(page), body: { skills: page.items, currentUserId } }
      },
    }),
    operationRoute('pin.add', {
      method: 'post',
      path: SKILLS,
      id: 'addSkill',
      summary: 'Add a skill to the library',
      description:
        `${CONTENT}\n\nFor a CID that is already in the library, returns that skill unchanged. 409 if ` +
        'another skill has the name: add a version to it instead.',
      scope: 'org:agents:write',
      body: newSkill,
      success: { description: 'The skill.', body: z.object({ skill: skillRecord }) },
      pending,
      errors: [409],
      async begin({ principal, body, signal }) {
        const { name, description, envVars, fileId, skillCid } = body
        if (name.startsWith('@berth/')) throw badRequest('name: @berth is for skills that ship with Berth')
        const cid = canonicalCid(parseContentCid(skillCid, 'skillCid'))
        const there = await findSkill(pool, principal.workspaceId, { cid })
        if (there) return { body: { skill: there } }
        return addContent({ principal, signal }, { cid, name }, async ({ about, network }) => {
          const skill = { name, description: description ?? about.description, slug: null, envVars }
          const content = { cid, network, version: about.version, fileId }
          return { skill: await addSkill(services, principal, skill, content) }
        })
      },
    }),
    route({
      method: 'get',
      path: VERSIONS,
      id: 'listSkillVersions',
      summary: 'List the versions of a skill',
      description: `Newest first; agents get the first one. ${NEWEST} ${PAGED_BY_HEADER}`,
      scope: 'org:agents:read',
      callers: ['workspace'],
      params,
      query: page,
      success: {
        description: 'The versions.',
        body: z.object({ skillId: uuid, versions: z.array(versionRecord) }),
      },
      errors: [404],
      async handle({ principal, params, query }) {
        const { skillId } = await requireSkill(principal.workspaceId, params.skillId)
        const page = await readPage(query, (cursor) => listVersions(pool, skillId, cursor))
        const versions = page.items.map(({ id: _, ...version }) => version)
        return { ...nextPageHeaders(page), body: { skillId, versions } }
      },
    }),
    operationRoute('pin.add', {
      method: 'post',
      path: VERSIONS,
      id: 'addSkillVersion',
      summary: 'Add a version to a skill',
      description:
        `${CONTENT}\n\n${NEWEST} Agents that use the skill get it through an update. For a CID that the skill already ` +
        'has, returns that version. 409 if the version’s number is taken, or the content is another skill’s.',
      scope: 'org:agents:write',
      params,
      body: newVersion,
      success: { description: 'The version.', body: z.object({ version: versionRecord }) },
      pending,
      errors: [404, 409],
      async begin({ principal, params, body, signal }) {
        const { skillId, name } = await requireSkill(principal.workspaceId, params.skillId)
        const cid = canonicalCid(parseContentCid(body.skillCid, 'skillCid'))
        return addContent({ principal, signal }, { cid, name }, async ({ about, network }) => {
          const content = { cid, network, version: body.version ?? about.version, fileId: body.fileId }
          return { version: await addVersion(services, principal, skillId, content) }
        })
      },
    }),
    route({
      method: 'delete',
      path: SKILL,
      id: 'deleteSkill',
      summary: 'Delete a skill from the library',
      description:
        'Also deletes all its versions and releases their content. 409 while an agent uses it; ' +
        '`Error-Detail` names the agents. A skill that does not exist is not an error.',
      scope: 'org:agents:write',
      params,
      success: {
        description: 'The skill is not in the library.',
        body: z.object({ success, message: like('Skill invoices deleted'), wasInLibrary: like(true) }),
      },
      errors: [409],
      async handle({ principal: { workspaceId }, params }) {
        const skill = await findSkill(pool, workspaceId, nameOf(params.skillId))
        const wasInLibrary = skill ? await deleteSkill(prisma, workspaceId, skill.skillId) : false
        const message =
          skill && wasInLibrary ? `Skill ${skill.name} deleted` : 'The skill was not in the library'
        return { body: { success: true, message, wasInLibrary } }
      },
    }),
  ]
}

/** @throws ApiError 400 if it is neither an id nor a CID. */
const nameOf = (named: string) =>
  isUuid(named) ? { skillId: named.toLowerCase() } : { cid: canonicalCid(parseCid(named, 'skillId')) }
