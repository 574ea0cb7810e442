import { z } from 'zod'
import type { Prisma } from '../db/prisma.ts'
import type { Searches } from '../db/searches.ts'
import { type Route, route } from '../http/route.ts'
import { nextPageToken, nothing, pageOf, paging, pathId, readPageToken, text } from '../http/shapes.ts'
import { revokeFor, visibleTo } from './key-routes.ts'
import type { KeyService } from './keys.ts'

const TAG = 'API keys'
const KEYS = '/v0/workspaces/:workspaceId/keys'

const time = z.string().nullable()
const keyRecord = z.object({
  id: z.string(),
  name: z.string(),
  publicKey: z.string(),
  user: z
    .object({ id: z.string(), name: z.string() })
    .nullable()
    .describe('For whom it acts; null for a key that acts for nobody.'),
  scopes: z.array(z.string()),
  maxUses: z.number().nullable(),
  uses: z.number().describe('Counted where they are limited.'),
  createdAt: z.string(),
  expiresAt: time,
  revokedAt: time,
  lastUsedAt: time.describe('To the minute; null for a key that was not used.'),
})

/** Keys with their last use: what `/v3/pinata/keys`, whose answers are those of the public service, does not tell. */
export function workspaceKeyRoutes(keys: KeyService, searches: Searches, onRevoked: () => void): Route[] {
  return [
    route({
      method: 'get',
      path: KEYS,
      id: 'listWorkspaceKeys',
      tag: TAG,
      summary: 'List API keys with their last use',
      description: 'Owners see all keys of the workspace, others their own.',
      scope: 'org:read',
      query: z.object({
        name: text(255).optional().describe('Part of the name, in any case.'),
        revoked: z
          .enum(['true', 'false'])
          .transform((value) => value === 'true')
          .optional(),
        userId: pathId.optional().describe('Only keys of this user.'),
        ...paging(10, 250),
      }),
      success: {
        status: 200,
        description: 'A page of keys, newest first.',
        body: pageOf('keys', keyRecord),
      },
      async handle({ principal, query: { limit, pageToken, ...filter }, signal }) {
        const paged = { after: readPageToken(pageToken), limit: limit + 1 }
        const asked = { ...filter, ...visibleTo(principal), ...paged }
        const list = (db?: Prisma.TransactionClient) => keys.page(principal.workspaceId, asked, db)
        const found = await (filter.name === undefined ? list() : searches.run(principal, signal, list))
        const records = found.slice(0, limit).map((key) => ({
          id: key.id,
          name: key.name,
          publicKey: key.publicKey,
          user: key.userId && key.user ? { id: key.userId, name: key.user.name } : null,
          scopes: key.scopes,
          maxUses: key.maxUses,
          uses: key.uses,
          createdAt: key.createdAt.toISOString(),
          expiresAt: key.expiresAt?.toISOString() ?? null,
          revokedAt: key.revokedAt?.toISOString() ?? null,
          lastUsedAt: key.lastUsedAt?.toISOString() ?? null,
        }))
        return { body: { data: { keys: records, next_page_token: nextPageToken(found, limit) } } }
      },
    }),
    route({
      method: 'delete',
      path: `${KEYS}/:keyId`,
      id: 'revokeWorkspaceKey',
      tag: TAG,
      summary: 'Revoke an API key, by its id',
      description:
        'Another key than the own one only where the own one has all of its scopes. Members see to keys of their own, owners to all.',
      scope: 'org:write',
      params: z.object({ keyId: pathId }),
      success: { status: 200, description: 'Revoked, from this moment on.', body: nothing },
      errors: [404],
      async handle({ principal, params }) {
        await revokeFor(keys, principal, params.keyId)
        onRevoked()
        return { body: { data: null } }
      },
    }),
  ]
}
