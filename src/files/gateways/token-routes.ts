import { randomBytes } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import { z } from 'zod'
import type { PrismaClient } from '../../db/prisma.ts'
import { forbidden, notFound } from '../../errors.ts'
import { type Route, route } from '../../http/route.ts'
import { nothing, pathId } from '../../http/shapes.ts'
import { accessToken } from './schema.ts'
import { type GatewayService, hashToken } from './service.ts'

const TAG = 'Gateways'
const TOKEN_BYTES = 48
/** Every read of the gateway may compare with each of them. */
const MAX_TOKENS = 100

/** Access tokens: a gateway that has some is read with one of them only. */
export function tokenRoutes(prisma: PrismaClient, gateways: GatewayService): Route[] {
  return [
    route({
      method: 'post',
      path: '/v3/gateways/:id/access_tokens',
      aliases: ['/v3/ipfs/gateways/:id/access_tokens'],
      id: 'createGatewayToken',
      tag: TAG,
      summary: 'Create an access token of a gateway',
      description:
        'With its first token a gateway becomes restricted: within two seconds it answers only those who send a token ' +
        'as `?pinataGatewayToken=` or in `x-pinata-gateway-token`.',
      scope: 'org:gateways:write',
      params: z.object({ id: pathId }),
      success: {
        status: 200,
        description: 'The token. It is shown this once.',
        body: z.object({ data: accessToken }),
      },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id: gatewayId } }) {
        if (
          (await prisma.gatewayToken.count({ where: { gatewayId, gateway: { workspaceId } } })) >= MAX_TOKENS
        ) {
          throw forbidden(`Access token limit reached: ${MAX_TOKENS}`, 'limit')
        }
        const [id, value] = [uuidv7(), randomBytes(TOKEN_BYTES).toString('base64url')]
        // A gateway that is deleted meanwhile is not found here, or not deleted before this is done.
        const [created] = await prisma.$queryRaw<{ createdAt: Date }[]>`
          WITH gateway AS (
            SELECT id FROM gateway WHERE id = ${gatewayId}::uuid AND workspace_id = ${workspaceId}::uuid
            FOR KEY SHARE)
          INSERT INTO gateway_token (id, gateway_id, token_hash)
          SELECT ${id}::uuid, id, ${hashToken(value)} FROM gateway
          RETURNING created_at AS "createdAt"`
        if (!created) throw notFound('There is no such gateway')
        gateways.forget()
        return { body: { data: { id, value, createdAt: created.createdAt.toISOString() } } }
      },
    }),
    route({
      method: 'delete',
      path: '/v3/gateways/:id/access_tokens/:item_id',
      aliases: ['/v3/ipfs/gateways/:id/access_tokens/:item_id'],
      id: 'deleteGatewayToken',
      tag: TAG,
      summary: 'Revoke an access token of a gateway',
      description: 'Without its last token a gateway is open to everybody: create the new one first.',
      scope: 'org:gateways:write',
      params: z.object({ id: pathId, item_id: pathId }),
      success: { status: 200, description: 'Revoked.', body: nothing },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id: gatewayId, item_id: id } }) {
        const { count } = await prisma.gatewayToken.deleteMany({
          where: { id, gatewayId, gateway: { workspaceId } },
        })
        if (count === 0) throw notFound('There is no such access token')
        gateways.forget()
        return { body: { data: null } }
      },
    }),
  ]
}
