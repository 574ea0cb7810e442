import { z } from 'zod'
import type { Prisma } from '../db/prisma.ts'
import { badRequest, forbidden, messages, notFound } from '../errors.ts'
import { apiKey, like, timestamp, userId, uuid, withExample } from '../http/fields.ts'
import { grants, isScope, type Principal, SCOPES, type Scope } from '../http/principal.ts'
import { type Route, routesOf } from '../http/route.ts'
import { text, visibleText } from '../http/shapes.ts'
import type { KeyService } from './keys.ts'
import type { AccountServices } from './services.ts'

const PAGE = 100
const HOUR_MS = 3_600_000
const route = routesOf('API keys')
const flag = z.enum(['true', 'false']).transform((value) => value === 'true')

/** Switches of the legacy permissions, and the scope that each corresponds to. */
const LEGACY: Record<'data' | 'pinning', Record<string, Scope>> = {
  data: { pinList: 'org:files:read', userPinnedDataTotal: 'org:files:read' },
  pinning: {
    pinJobs: 'org:files:read',
    hashMetadata: 'org:files:write',
    hashPinPolicy: 'org:files:write',
    pinByHash: 'org:files:write',
    pinFileToIPFS: 'org:files:write',
    pinJSONToIPFS: 'org:files:write',
    unpin: 'org:files:write',
    userPinPolicy: 'org:files:write',
  },
}
const LEGACY_SCOPES = new Map(Object.values(LEGACY).flatMap((group) => Object.entries(group)))
const switches = z.record(z.string(), z.boolean())

const newKey = z.object({
  keyName: withExample(visibleText(255), 'website'),
  permissions: z.object({
    admin: z.boolean().optional(),
    resources: z
      .array(
        z
          .string()
          .refine(isScope, 'is no scope')
          .meta({ enum: [...SCOPES] }),
      )
      // Checked before the entries: a kilobyte of gzip may hold half a million, each of which would be an issue.
      .max(SCOPES.length, `must have at most ${SCOPES.length} entries`)
      .optional()
      .meta({ examples: [['org:files:read', 'org:groups:read']] }),
    endpoints: z.object({ data: switches.optional(), pinning: switches.optional() }).optional(),
  }),
  maxUses: z.number().int().min(1).max(2_147_483_647).optional(),
  expiresInHours: z
    .number()
    .int()
    .min(1)
    .max(87_600)
    .optional()
    .describe('Default: the key expires with the key that creates it.'),
})

const keyItem = z.object({
  id: uuid,
  name: like('website'),
  key: like('5f0c2b7be1d94a30a7e6'),
  secret: like('').describe('Always empty: a secret is shown once, when its key is created.'),
  max_uses: z.number().nullable(),
  uses: like(0),
  user_id: userId.nullable(),
  scopes: z
    .object({
      admin: z.boolean(),
      resources: withExample(z.array(z.string()), ['org:files:read', 'org:groups:read']),
      endpoints: z
        .object({ data: switches, pinning: switches })
        .describe('What the key may do, as switches.'),
    })
    .describe('Same format as `permissions` of a new key.'),
  revoked: z.boolean(),
  createdAt: timestamp,
  updatedAt: timestamp,
})

/**
 * API keys over HTTP, on the paths of the SDK and of the documentation.
 * @param forgetKeys makes this process refuse the key at once; other processes are notified.
 */
export function keyRoutes({ keys, searches, forgetKeys }: AccountServices): Route[] {
  const params = z.object({ key: text(64).describe("The key's public half, or its id.") })
  const revoke = (method: 'put' | 'delete', path: string, id: string) =>
    route({
      method,
      path,
      id,
      summary: 'Revoke an API key',
      description:
        'A key can revoke itself, and other keys whose scopes it has. Members can revoke their own keys, owners all keys.',
      scope: 'org:write',
      params,
      success: { description: 'The key is revoked, effective immediately.', body: z.literal('Revoked') },
      errors: [404],
      async handle({ principal, params }) {
        await revokeFor(keys, principal, params.key)
        forgetKeys()
        return { body: 'Revoked' }
      },
    })
  return [
    route({
      method: 'post',
      path: '/v3/pinata/keys',
      aliases: ['/v3/api_keys'],
      id: 'createKey',
      summary: 'Create an API key',
      description:
        'A key may grant no more than the key that creates it, and expires no later. A key created in a dashboard session outlives the session. Keys with a limited number of uses cannot create keys.',
      scope: 'org:write',
      body: newKey,
      success: {
        description: 'The key. It is shown only once.',
        body: z.object({
          JWT: apiKey,
          pinata_api_key: like('5f0c2b7be1d94a30a7e6'),
          pinata_api_secret: like('c1f0e2d3a4b5968778695a4b3c2d1e0f'),
        }),
      },
      async handle({ principal, body }) {
        const scopes = requestedScopes(body.permissions)
        if (scopes.length === 0) throw badRequest('permissions: must grant something')
        if (principal.maxUses !== null) throw forbidden(messages.permissionDenied)
        requireScopes(principal, scopes)
        const { token, publicKey, secret } = await keys.create({
          workspaceId: principal.workspaceId,
          userId: principal.userId,
          name: body.keyName,
          scopes,
          maxUses: body.maxUses ?? null,
          expiresAt: expiryOf(principal, body.expiresInHours),
        })
        return { body: { JWT: token, pinata_api_key: publicKey, pinata_api_secret: secret } }
      },
    }),
    route({
      method: 'get',
      path: '/v3/pinata/keys',
      aliases: ['/v3/api_keys'],
      id: 'listKeys',
      summary: 'List API keys',
      description: 'Owners see all keys of the workspace, others their own.',
      scope: 'org:read',
      query: z.object({
        revoked: flag.optional(),
        limitedUse: flag.optional(),
        exhausted: flag.optional(),
        name: text(255).optional().describe('Part of the name, case-insensitive.'),
        offset: z
          .string()
          .regex(/^\d{1,9}$/, 'must be a whole number')
          .transform(Number)
          .pipe(z.number().max(999_999_999))
          .default(0),
      }),
      success: {
        description: `Up to ${PAGE} keys, newest first, and how many match.`,
        body: z.object({ keys: z.array(keyItem), count: like(1) }),
      },
      async handle({ principal, query, signal }) {
        const filter = { ...query, ...visibleTo(principal), limit: PAGE }
        const list = (db?: Prisma.TransactionClient) => keys.list(principal.workspaceId, filter, db)
        const found = await (query.name === undefined ? list() : searches.run(principal, signal, list))
        const items = found.keys.map((key) => ({
          id: key.id,
          name: key.name,
          key: key.publicKey,
          secret: '',
          max_uses: key.maxUses,
          uses: key.uses,
          user_id: key.userId,
          scopes: toPermissions(key.scopes),
          revoked: key.revokedAt !== null,
          createdAt: key.createdAt.toISOString(),
          updatedAt: key.updatedAt.toISOString(),
        }))
        return { body: { keys: items, count: found.count } }
      },
    }),
    revoke('put', '/v3/pinata/keys/:key', 'revokeKey'),
    revoke('delete', '/v3/api_keys/:key', 'deleteKey'),
  ]
}

/**
 * When a new key expires: no later than the key that creates it. Keys that a session creates outlive it, because a
 * session stands for a person.
 */
function expiryOf({ expiresAt, isSession }: Principal, hours: number | undefined): Date | null {
  const latest = isSession ? null : expiresAt
  if (hours === undefined) return latest
  const asked = new Date(Date.now() + hours * HOUR_MS)
  return latest && latest < asked ? latest : asked
}

/** The keys that a caller sees: owners see all keys of the workspace, others their own. */
export const visibleTo = ({ role, userId }: Principal) => (role === 'owner' ? {} : { userId })

/**
 * Revokes a key, by its id or its public half. @throws ApiError 404; 403 if it has scopes that the caller's key lacks.
 */
export async function revokeFor(keys: KeyService, principal: Principal, key: string): Promise<void> {
  const found = await keys.find(key, principal.workspaceId)
  if (!found || (principal.role !== 'owner' && found.userId !== principal.userId))
    throw notFound('There is no such API key')
  requireScopes(principal, found.scopes as Scope[])
  await keys.revoke(found.id)
}

/** @throws ApiError 403 if the caller's key lacks one of the scopes. */
function requireScopes({ scopes }: Principal, needed: Scope[]): void {
  if (!needed.every((scope) => grants(scopes, scope))) throw forbidden(messages.permissionDenied)
}

function requestedScopes({ admin, resources, endpoints }: z.output<typeof newKey>['permissions']): Scope[] {
  if (admin) return ['admin']
  const legacy = Object.entries({ ...endpoints?.data, ...endpoints?.pinning })
    .filter(([, on]) => on)
    .flatMap(([name]) => LEGACY_SCOPES.get(name) ?? [])
  return [...new Set([...((resources ?? []) as Scope[]), ...legacy])]
}

function toPermissions(scopes: string[]): z.output<typeof keyItem>['scopes'] {
  const switchesOf = (group: Record<string, Scope>) =>
    Object.fromEntries(Object.entries(group).map(([name, scope]) => [name, grants(scopes, scope)]))
  return {
    admin: scopes.includes('admin'),
    resources: scopes.filter((scope) => scope !== 'admin'),
    endpoints: { data: switchesOf(LEGACY.data), pinning: switchesOf(LEGACY.pinning) },
  }
}
