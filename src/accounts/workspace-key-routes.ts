import { z } from 'zod'
import type { Prisma } from '../db/prisma.ts'
import { like, timestamp, userId, uuid, withExample } from '../http/fields.ts'
import { pageOf, paging, readPage, toPage } from '../http/pages.ts'
import { type Route, routesOf } from '../http/route.ts'
import { nothing, pathId, text } from '../http/shapes.ts'
import { revokeFor, visibleTo } from './key-routes.ts'
import type { AccountServices } from './services.ts'

const route = routesOf('API keys')
const KEYS = '/v0/workspaces/:workspaceId/keys'

const time = z.string().nullable()
const keyRecord = z.object({
  id: uuid,
  name: like('website'),
  publicKey: like('5f0c2b7be1d94a30a7e6'),
  user: z
    .object({ id: userId, name: like('Ada') })
    .nullable()
    .describe('The user it acts for; null if it acts for no user.'),
  scopes: withExample(z.array(z.string()), ['org:files:read', 'org:groups:read']),
  audience: z
    .enum(['mcp'])
    .nullable()
    .describe(
      '`mcp`: it works only at `/mcp`, for a client that a user gave access. Null: it works everywhere.',
    ),
  maxUses: z.number().nullable(),
  uses: like(0).describe('Counted only if uses are limited.'),
  createdAt: timestamp,
  expiresAt: time,
  revokedAt: time,
  lastUsedAt: time.describe('To the minute; null if the key was never used.'),
})

/** Keys with their last use. `/v3/pinata/keys` does not report it, because its responses match the public service's. */
export function workspaceKeyRoutes({ keys, searches, forgetKeys }: AccountServices): Route[] {
  return [
    route({
      method: 'get',
      path: KEYS,
      id: 'listWorkspaceKeys',
      summary: 'List API keys with their last use',
      description: 'Owners see all keys of the workspace, others their own.',
      scope: 'org:read',
      query: z.object({
        name: text(255).optional().describe('Part of the name, case-insensitive.'),
        revoked: z
          .enum(['true', 'false'])
          .transform((value) => value === 'true')
          .optional(),
        userId: pathId.optional().describe('Only keys of this user.'),
        ...paging(10, 250),
      }),
      success: { description: 'A page of keys, newest first.', body: pageOf('keys', keyRecord) },
      async handle({ principal, query: { limit, pageToken, ...filter }, signal }) {
        const page = await readPage({ limit, pageToken }, (cursor) => {
          const asked = { ...filter, ...visibleTo(principal), ...cursor }
          const list = (db?: Prisma.TransactionClient) => keys.page(principal.workspaceId, asked, db)
          return filter.name === undefined ? list() : searches.run(principal, signal, list)
        })
        const view = (key: (typeof page.items)[number]) => ({
          id: key.id,
          name: key.name,
          publicKey: key.publicKey,
          user: key.userId && key.user ? { id: key.userId, name: key.user.name } : null,
          scopes: key.scopes,
          audience: key.audience === 'mcp' ? ('mcp' as const) : null,
          maxUses: key.maxUses,
          uses: key.uses,
          createdAt: key.createdAt.toISOString(),
          expiresAt: key.expiresAt?.toISOString() ?? null,
          revokedAt: key.revokedAt?.toISOString() ?? null,
          lastUsedAt: key.lastUsedAt?.toISOString() ?? null,
        })
        return { body: toPage('keys', page, view) }
      },
    }),
    route({
      method: 'delete',
      path: `${KEYS}/:keyId`,
      id: 'revokeWorkspaceKey',
      summary: 'Revoke an API key, by its id',
      description:
        'A key can revoke itself, and other keys whose scopes it has. Members can revoke their own keys, owners all keys.',
      scope: 'org:write',
      params: z.object({ keyId: pathId }),
      success: { description: 'The key is revoked, effective immediately.', body: nothing },
      errors: [404],
      async handle({ principal, params }) {
        await revokeFor(keys, principal, params.keyId)
        forgetKeys()
        return { body: { data: null } }
      },
    }),
  ]
}
