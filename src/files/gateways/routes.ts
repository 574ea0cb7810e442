import { z } from 'zod'
import { isUniqueViolation } from '../../db/errors.ts'
import type { PrismaClient } from '../../db/prisma.ts'
import { ApiError, forbidden, notFound } from '../../errors.ts'
import { type Route, route } from '../../http/route.ts'
import { nothing, pathId } from '../../http/shapes.ts'
import { pluginRoutes } from './plugin-routes.ts'
import { domain, gatewayRecord, gatewayRow } from './schema.ts'
import type { GatewayService } from './service.ts'
import { tokenRoutes } from './token-routes.ts'

export interface GatewayRouteServices {
  prisma: PrismaClient
  gateways: GatewayService
}

const TAG = 'Gateways'
const params = z.object({ id: pathId })
/** The list has no pages. */
const MAX_GATEWAYS = 100
const withTokens = { tokens: { select: { id: true, createdAt: true }, orderBy: { id: 'asc' } } } as const

interface GatewayRow {
  id: string
  domain: string
  createdAt: Date
  tokens: { id: string; createdAt: Date }[]
}

/** Gateways, their plugins and their access tokens (compatibility 1.9). */
export function gatewayRoutes({ prisma, gateways }: GatewayRouteServices): Route[] {
  const row = ({ id, domain, createdAt, tokens }: GatewayRow) => ({
    id,
    created_at: createdAt.toISOString(),
    domain,
    host: gateways.hostOf(domain),
    restrict: tokens.length > 0,
    custom_domains: [],
  })
  const record = (gateway: GatewayRow) => ({
    ...row(gateway),
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
    // Before the routes with an id in the place of `plugins`.
    ...pluginRoutes(prisma, gateways),
    route({
      method: 'post',
      path: '/v3/gateways',
      aliases: ['/v3/ipfs/gateways'],
      id: 'createGateway',
      tag: TAG,
      summary: 'Create a gateway',
      description: 'A new gateway has no plugins, and is open to everybody until it gets an access token.',
      scope: 'org:gateways:write',
      body: z.object({ domain }),
      success: { status: 200, description: 'The gateway.', body: z.object({ data: gatewayRecord }) },
      errors: [409],
      async handle({ principal: { workspaceId }, body }) {
        if ((await prisma.gateway.count({ where: { workspaceId } })) >= MAX_GATEWAYS) {
          throw forbidden(`Gateway limit reached: ${MAX_GATEWAYS}`, 'limit')
        }
        const data = { workspaceId, domain: body.domain }
        const created = await prisma.gateway.create({ data, include: withTokens }).catch((error) => {
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
      tag: TAG,
      summary: 'List gateways',
      scope: 'org:gateways:read',
      success: {
        status: 200,
        description: 'All gateways of the workspace, oldest first.',
        body: z.object({ data: z.object({ count: z.number(), rows: z.array(gatewayRow) }) }),
      },
      async handle({ principal: { workspaceId } }) {
        const found = await prisma.gateway.findMany({
          where: { workspaceId },
          include: withTokens,
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
      tag: TAG,
      summary: 'Find out whether the name of a gateway is taken',
      scope: 'org:gateways:read',
      params: z.object({ domain }),
      success: {
        status: 200,
        description: 'Whether any workspace has a gateway of this name.',
        body: z.object({ data: z.object({ exists: z.boolean() }) }),
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
      tag: TAG,
      summary: 'Get a gateway',
      scope: 'org:gateways:read',
      params,
      success: { status: 200, description: 'The gateway.', body: z.object({ data: gatewayRecord }) },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id } }) {
        const found = await prisma.gateway.findFirst({ where: { id, workspaceId }, include: withTokens })
        if (!found) throw gatewayNotFound()
        return { body: { data: record(found) } }
      },
    }),
    route({
      method: 'delete',
      path: '/v3/gateways/:id',
      aliases: ['/v3/ipfs/gateways/:id'],
      id: 'deleteGateway',
      tag: TAG,
      summary: 'Delete a gateway',
      description: 'Files and swaps stay. The name is free for anybody from then on.',
      scope: 'org:gateways:write',
      params,
      success: { status: 200, description: 'Deleted.', body: nothing },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id } }) {
        const { count } = await prisma.gateway.deleteMany({ where: { id, workspaceId } })
        if (count === 0) throw gatewayNotFound()
        gateways.forget()
        return { body: { data: null } }
      },
    }),
    ...tokenRoutes(prisma, gateways),
  ]
}

const gatewayNotFound = () => notFound('There is no such gateway')
