import { z } from 'zod'
import { type Route, routesOf } from '../../http/route.ts'
import { joinSegments, text } from '../../http/shapes.ts'
import type { AgentServices } from '../agent-route.ts'
import { hubDetail, hubPage, hubQuery, installed, slugOf } from './clawhub-schema.ts'
import { findInHub, listHub, toRecords } from './hub.ts'
import { installSkill } from './install.ts'

const route = routesOf('ClawHub')
const HUB = '/v0/clawhub'
const params = z.object({
  slug: z
    .preprocess(joinSegments, text(512))
    .describe('Its slug, plain or percent-encoded (`%40owner%2Fname`), or its `hubSkillId`.'),
})

/** The hub of skills (contract 4.3). */
export function clawhubRoutes(services: AgentServices): Route[] {
  const { prisma, config } = services
  return [
    route({
      method: 'get',
      path: HUB,
      id: 'listHub',
      summary: 'List the skills of the hub',
      description:
        'First the skills that ship with Berth and its operator’s, then, on further pages, those of the ' +
        'hub in the settings, in its order. Pass `nextCursor` as `cursor`; it is null on the last page.',
      scope: 'org:agents:read',
      callers: ['workspace'],
      query: hubQuery,
      success: { description: 'A page of the hub.', body: hubPage },
      async handle({ query }) {
        return { body: await listHub(prisma, config, query) }
      },
    }),
    route({
      method: 'get',
      path: `${HUB}/:slug`,
      aliases: [`${HUB}/*slug`],
      id: 'getHubSkill',
      summary: 'Get a skill of the hub',
      scope: 'org:agents:read',
      callers: ['workspace'],
      params,
      success: { description: 'The skill.', body: hubDetail },
      errors: [404],
      async handle({ params }) {
        const [skill] = await toRecords(prisma, [await findInHub(config, slugOf(params.slug))])
        return { body: { skill } }
      },
    }),
    route({
      method: 'post',
      path: `${HUB}/:slug/install`,
      aliases: [`${HUB}/*slug/install`],
      id: 'installHubSkill',
      summary: 'Install a skill of the hub into the library',
      description:
        'Stores its folder on the public network. An installed skill gets the hub’s version if that is new, and ' +
        'otherwise stays unchanged; agents get it through an update. 502 for a skill that is not safe to unpack.',
      scope: 'org:agents:write',
      callers: ['workspace'],
      params,
      success: { description: 'The skill in the library.', body: installed },
      errors: [404, 409, 502, 507],
      async handle({ principal, params, signal }) {
        const skill = await installSkill(services, principal, slugOf(params.slug), signal)
        return { body: { success: true, skill } }
      },
    }),
  ]
}
