import { uuidv7 } from 'uuidv7'
import { z } from 'zod'
import { inTransaction } from '../../db/prisma.ts'
import { checkCustomDomain, orFault } from '../../domains/names.ts'
import {
  checkTxtRecord,
  isVerified,
  lookAtNew,
  requirePlan,
  takenDomain,
} from '../../domains/verification.ts'
import { ApiError, badRequest, notFound } from '../../errors.ts'
import { withExample } from '../../http/fields.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { nothing, oneOrMore, pathId, text } from '../../http/shapes.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import type { FileServices } from '../services.ts'
import { customDomainRecord, DOMAIN_FIELDS, toDomainRecord } from './domain-records.ts'

const route = routesOf('Gateways')
const DOMAINS = '/v3/gateways/:id/custom_domain'
const DOMAIN = `${DOMAINS}/:custom_domain_id`
const older = (path: string) => [path.replace('/v3/', '/v3/ipfs/')]
const params = z.object({ id: pathId })
const domainParams = z.object({ id: pathId, custom_domain_id: pathId })
const MAX_DOMAINS = 5

const name = text(1000).meta({ format: 'domain-name' })
const newDomain = z
  .object({
    domain: withExample(name, 'files.example.com')
      .optional()
      .describe('Your own domain, such as `files.example.com`.'),
    custom_domain: name.optional().describe('The same.'),
  })
  .meta(oneOrMore('domain', 'custom_domain'))
const success = { description: 'The domain.', body: z.object({ data: customDomainRecord }) }

/** Custom domains that lead to a gateway, proven in the same way as those of agents. */
export function customDomainRoutes(services: FileServices): Route[] {
  const { prisma, gateways, ownership, config } = services

  async function read(workspaceId: string, gatewayId: string, id: string) {
    const found = await prisma.domain.findFirst({
      where: { id, gatewayId, workspaceId },
      select: { ...DOMAIN_FIELDS, gateway: { select: { domain: true } } },
    })
    if (!found?.gateway || found.customDomain === null) throw notFound('The gateway has no such domain')
    const host = gateways.hostOf(found.gateway.domain)
    const claimed = { id, workspaceId, customDomain: found.customDomain, agentId: null }
    return { ...claimed, status: found.status, body: { data: toDomainRecord(ownership, host, found) } }
  }

  /** Atomic: two concurrent additions would not see each other. */
  const insert = (workspaceId: string, userId: string, gatewayId: string, customDomain: string) =>
    inTransaction(prisma, async (tx) => {
      const [gateway] = await tx.$queryRaw<unknown[]>`
        SELECT FROM gateway WHERE id = ${gatewayId}::uuid AND workspace_id = ${workspaceId}::uuid FOR UPDATE`
      if (!gateway) throw notFound('There is no such gateway')
      const before = await tx.domain.findMany({ where: { gatewayId }, select: { customDomain: true } })
      if (before.some((domain) => domain.customDomain === customDomain))
        throw new ApiError(409, 'domain_taken', 'The gateway has this domain already')
      if (await isVerified(tx, customDomain)) throw takenDomain()
      if (before.length >= MAX_DOMAINS) throw badRequest(`A gateway can have at most ${MAX_DOMAINS} domains`)
      const id = uuidv7()
      const status = 'pending_ownership'
      await tx.domain.create({ data: { id, gatewayId, workspaceId, userId, customDomain, status } })
      crashPoint('before-commit')
      return id
    })

  return [
    route({
      method: 'post',
      path: DOMAINS,
      aliases: older(DOMAINS),
      id: 'addGatewayDomain',
      summary: 'Add a custom domain to a gateway',
      description:
        'At most 5 per gateway. The domain is `pending` until its TXT record (`txt_name`, `txt_value`) is seen: immediately if it ' +
        'already exists, otherwise with `verifyGatewayDomain` or by automatic checks, which become less frequent and end after two ' +
        'weeks. The record is the same as for agents of the workspace. The first workspace to prove a name gets it: others get 409 from then ' +
        'on. A name must not contain or look like the service’s names, or be one of its hosts. Custom domains are not part of the ' +
        'free plan.',
      scope: 'org:gateways:write',
      params,
      body: newDomain,
      success,
      errors: [404, 409],
      async handle({ principal, params: { id: gatewayId }, body }) {
        const { workspaceId, userId } = principal
        const spelled = body.domain ?? body.custom_domain
        if (spelled === undefined) throw badRequest('domain: is required')
        const customDomain = orFault('domain', checkCustomDomain(spelled, config))
        requirePlan(principal)
        const id = await insert(workspaceId, userId, gatewayId, customDomain)
        await lookAtNew(services, { id, workspaceId, customDomain, agentId: null }, async () => {
          await prisma.domain.deleteMany({ where: { id, gatewayId } })
        })
        gateways.forget()
        const { body: added } = await read(workspaceId, gatewayId, id)
        return { body: added }
      },
    }),
    route({
      method: 'get',
      path: DOMAIN,
      aliases: older(DOMAIN),
      id: 'getGatewayDomain',
      summary: 'Get a custom domain of a gateway',
      scope: 'org:gateways:read',
      params: domainParams,
      success,
      errors: [404],
      async handle({ principal, params }) {
        const { body } = await read(principal.workspaceId, params.id, params.custom_domain_id)
        return { body }
      },
    }),
    route({
      method: 'post',
      path: `${DOMAIN}/verify`,
      id: 'verifyGatewayDomain',
      summary: 'Check the TXT record of a custom domain now',
      description:
        '409 if someone else has already proven the domain. 503 if no DNS server responds; the domain then stays pending.',
      scope: 'org:gateways:write',
      params: domainParams,
      success,
      errors: [404, 409],
      async handle({ principal: { workspaceId }, params }) {
        const domain = await read(workspaceId, params.id, params.custom_domain_id)
        if (domain.status === 'verified' || !(await checkTxtRecord(services, domain)))
          return { body: domain.body }
        gateways.forget()
        const { body } = await read(workspaceId, params.id, params.custom_domain_id)
        return { body }
      },
    }),
    route({
      method: 'delete',
      path: DOMAIN,
      aliases: older(DOMAIN),
      id: 'deleteGatewayDomain',
      summary: 'Delete a custom domain of a gateway',
      description: 'The name is then free for anyone; web processes serve it for at most two more seconds.',
      scope: 'org:gateways:write',
      params: domainParams,
      success: { description: 'Deleted.', body: nothing },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id: gatewayId, custom_domain_id: id } }) {
        const { count } = await prisma.domain.deleteMany({ where: { id, gatewayId, workspaceId } })
        if (count === 0) throw notFound('The gateway has no such domain')
        gateways.forget()
        return { body: { data: null } }
      },
    }),
  ]
}
