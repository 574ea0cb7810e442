import { randomBytes } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import { z } from 'zod'
import { isUniqueViolation } from '../../db/database-errors.ts'
import { inTransaction, type PrismaClient } from '../../db/prisma.ts'
import { ApiError, forbidden, notFound } from '../../errors.ts'
import { like, timestamp, uuid } from '../../http/fields.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { nothing, pathId } from '../../http/shapes.ts'
import { domainFault } from '../gateway-domain.ts'
import type { FileServices } from '../services.ts'
import { customDomainRecord, DOMAIN_FIELDS, type GatewayDomain, toDomainRecord } from './domain-records.ts'
import { customDomainRoutes } from './domain-routes.ts'
import { type GatewayService, hashToken } from './gateways.ts'
import { pluginRoutes } from './plugin-routes.ts'
import { serving, servingRoutes } from './serving-routes.ts'

/** The left label of a gateway's host; DNS is case-insensitive. */
const domain = like('catalogues')
  .toLowerCase()
  .superRefine((value, context) => {
    const fault = domainFault(value)
    if (fault) context.addIssue(fault)
  })
  .meta({ format: 'gateway-name' })

const accessToken = z.object({
  id: uuid,
  value: like('q3V0bGU4c2hpcHMgZG9jayBhdCB0aGUgYmVydGggYXQgZGF3biBldmVyeSBkYXk').describe(
    'The token. It is shown only once, and empty in all other responses.',
  ),
  createdAt: timestamp,
})

/** A gateway in a list. */
const gatewayRow = z.object({
  id: uuid,
  created_at: timestamp,
  domain: like('catalogues').describe('The left label of its host.'),
  host: like('catalogues.gateway.localhost').describe('Its host; the scheme and port are the API’s.'),
  restrict: z
    .boolean()
    .describe('Whether it has access tokens, so that reading public content requires one of them.'),
  custom_domains: z.array(customDomainRecord),
})

const restrictions = z.object({
  accessTokens: z.array(accessToken),
  allowedHosts: z.array(z.unknown()).describe('Always empty.'),
  allowedIPAddresses: z.array(z.unknown()).describe('Always empty.'),
})

const gatewayRecord = gatewayRow.extend({
  ...serving,
  settings: z.object({ restriction_policies: restrictions }),
})

const route = routesOf('Gateways')
const params = z.object({ id: pathId })
/** The list is not paginated. */
const MAX_GATEWAYS = 100
const withParts = {
  tokens: { select: { id: true, createdAt: true }, orderBy: { id: 'asc' } },
  domains: { select: DOMAIN_FIELDS, orderBy: { id: 'asc' } },
} as const

interface GatewayRow {
  id: string
  domain: string
  createdAt: Date
  innerCids: boolean
  cidHosts: boolean
  tokens: { id: string; createdAt: Date }[]
  domains: GatewayDomain[]
}

/** Gateways, their plugins, access tokens and custom domains. */
export function gatewayRoutes(services: FileServices): Route[] {
  const { prisma, gateways, ownership } = services
  const row = ({ id, domain, createdAt, tokens, domains }: GatewayRow) => ({
    id,
    created_at: createdAt.toISOString(),
    domain,
    host: gateways.hostOf(domain),
    restrict: tokens.length > 0,
    custom_domains: domains.map((one) => toDomainRecord(ownership, gateways.hostOf(domain), one)),
  })
  const record = (gateway: GatewayRow) => ({
    ...row(gateway),
    inner_cids: gateway.innerCids,
    cid_hosts: gateway.cidHosts,
    settings: {
      restriction_policies: {
        accessTokens: gateway.tokens.map(({ id, createdAt }) => ({
          id,
          value: '',
          createdAt: createdAt.toISOString(),
        })),
        allowedHosts: [],
        allowedIPAddresses: [],
      },
    },
  })
  return [
    // Before the routes that have an id in place of `plugins`.
    ...pluginRoutes(services),
    route({
      method: 'post',
      path: '/v3/gateways',
      aliases: ['/v3/ipfs/gateways'],
      id: 'createGateway',
      summary: 'Create a gateway',
      description: 'A new gateway has no plugins, and is open to everyone until it has an access token.',
      scope: 'org:gateways:write',
      body: z.object({ domain }),
      success: { description: 'The gateway.', body: z.object({ data: gatewayRecord }) },
      errors: [409],
      async handle({ principal: { workspaceId }, body }) {
        const created = await inTransaction(prisma, async (tx) => {
          // The lock makes other additions to the workspace wait, so that none exceeds the limit.
          await tx.$queryRaw`SELECT FROM workspace WHERE id = ${workspaceId}::uuid FOR NO KEY UPDATE`
          if ((await tx.gateway.count({ where: { workspaceId } })) >= MAX_GATEWAYS)
            throw forbidden(`Gateway limit reached: ${MAX_GATEWAYS}`, 'limit')
          return tx.gateway.create({ data: { workspaceId, domain: body.domain }, include: withParts })
        }).catch((error) => {
          if (isUniqueViolation(error)) throw new ApiError(409, 'taken', 'domain: is taken')
          throw error
        })
        gateways.forget()
        return { body: { data: record(created) } }
      },
    }),
    route({
      method: 'get',
      path: '/v3/gateways',
      aliases: ['/v3/ipfs/gateways'],
      id: 'listGateways',
      summary: 'List gateways',
      scope: 'org:gateways:read',
      success: {
        description: 'All gateways of the workspace, oldest first.',
        body: z.object({ data: z.object({ count: like(1), rows: z.array(gatewayRow) }) }),
      },
      async handle({ principal: { workspaceId } }) {
        const found = await prisma.gateway.findMany({
          where: { workspaceId },
          include: withParts,
          orderBy: { id: 'asc' },
        })
        return { body: { data: { count: found.length, rows: found.map(row) } } }
      },
    }),
    route({
      method: 'get',
      path: '/v3/gateways/exists/:domain',
      aliases: ['/v3/ipfs/gateways/exists/:domain'],
      id: 'gatewayExists',
      summary: 'Check whether a gateway name is taken',
      scope: 'org:gateways:read',
      params: z.object({ domain }),
      success: {
        description: 'Whether any workspace has a gateway with this name.',
        body: z.object({ data: z.object({ exists: like(true) }) }),
      },
      async handle({ params }) {
        const taken = await prisma.gateway.count({ where: { domain: params.domain } })
        return { body: { data: { exists: taken > 0 } } }
      },
    }),
    route({
      method: 'get',
      path: '/v3/gateways/:id',
      aliases: ['/v3/ipfs/gateways/:id'],
      id: 'getGateway',
      summary: 'Get a gateway',
      scope: 'org:gateways:read',
      params,
      success: { description: 'The gateway.', body: z.object({ data: gatewayRecord }) },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id } }) {
        const found = await prisma.gateway.findFirst({ where: { id, workspaceId }, include: withParts })
        if (!found) throw gatewayNotFound()
        return { body: { data: record(found) } }
      },
    }),
    route({
      method: 'delete',
      path: '/v3/gateways/:id',
      aliases: ['/v3/ipfs/gateways/:id'],
      id: 'deleteGateway',
      summary: 'Delete a gateway',
      description: 'Files and swaps stay. The name is then free for anyone.',
      scope: 'org:gateways:write',
      params,
      success: { description: 'Deleted.', body: nothing },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id } }) {
        const { count } = await prisma.gateway.deleteMany({ where: { id, workspaceId } })
        if (count === 0) throw gatewayNotFound()
        gateways.forget()
        return { body: { data: null } }
      },
    }),
    ...servingRoutes(services),
    ...tokenRoutes(prisma, gateways),
    ...customDomainRoutes(services),
  ]
}

const gatewayNotFound = () => notFound('There is no such gateway')

const TOKEN_BYTES = 48
/** Every read through the gateway may compare with each of them. */
const MAX_TOKENS = 100

/** Access tokens: if a gateway has any, reading its public content requires one of them. */
function tokenRoutes(prisma: PrismaClient, gateways: GatewayService): Route[] {
  return [
    route({
      method: 'post',
      path: '/v3/gateways/:id/access_tokens',
      aliases: ['/v3/ipfs/gateways/:id/access_tokens'],
      id: 'createGatewayToken',
      summary: 'Create an access token of a gateway',
      description:
        'With its first token, a gateway becomes restricted: within two seconds, it serves public content only to clients that send a token ' +
        'as `?pinataGatewayToken=` or in `x-pinata-gateway-token`.',
      scope: 'org:gateways:write',
      params: z.object({ id: pathId }),
      success: { description: 'The token. It is shown only once.', body: z.object({ data: accessToken }) },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id: gatewayId } }) {
        const [id, value] = [uuidv7(), randomBytes(TOKEN_BYTES).toString('base64url')]
        const created = await inTransaction(prisma, async (tx) => {
          // The lock makes its deletion and other additions wait, so that none exceeds the limit.
          const found = await tx.$queryRaw<unknown[]>`
            SELECT FROM gateway WHERE id = ${gatewayId}::uuid AND workspace_id = ${workspaceId}::uuid FOR NO KEY UPDATE`
          if (found.length === 0) throw gatewayNotFound()
          if ((await tx.gatewayAccessToken.count({ where: { gatewayId } })) >= MAX_TOKENS)
            throw forbidden(`Access token limit reached: ${MAX_TOKENS}`, 'limit')
          return tx.gatewayAccessToken.create({ data: { id, gatewayId, tokenHash: hashToken(value) } })
        })
        gateways.forget()
        return { body: { data: { id, value, createdAt: created.createdAt.toISOString() } } }
      },
    }),
    route({
      method: 'delete',
      path: '/v3/gateways/:id/access_tokens/:item_id',
      aliases: ['/v3/ipfs/gateways/:id/access_tokens/:item_id'],
      id: 'deleteGatewayToken',
      summary: 'Revoke an access token of a gateway',
      description: 'Without its last token, a gateway is open to everyone: create the new token first.',
      scope: 'org:gateways:write',
      params: z.object({ id: pathId, item_id: pathId }),
      success: { description: 'Revoked.', body: nothing },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id: gatewayId, item_id: id } }) {
        const { count } = await prisma.gatewayAccessToken.deleteMany({
          where: { id, gatewayId, gateway: { workspaceId } },
        })
        if (count === 0) throw notFound('There is no such access token')
        gateways.forget()
        return { body: { data: null } }
      },
    }),
  ]
}
