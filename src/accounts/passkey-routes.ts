import { isIP } from 'node:net'
import type { Request } from 'express'
import { z } from 'zod'
import { notFound } from '../errors.ts'
import { like, timestamp, uuid, withExample } from '../http/fields.ts'
import { type Route, routesOf } from '../http/route.ts'
import { requireSameOrigin } from '../http/session-cookie.ts'
import { nothing, pathId, text, visibleText } from '../http/shapes.ts'
import {
  beginRegistration,
  beginSignIn,
  deletePasskey,
  listPasskeys,
  type PasskeyRecord,
  type RelyingParty,
  registerPasskey,
  renamePasskey,
  signInByPasskey,
} from './passkeys.ts'
import type { AccountServices } from './services.ts'
import { dashboardUrl, opened, signIn, signInWorkspace } from './sign-in.ts'

const route = routesOf('Passkeys')

const base64url = (max: number, example: string) =>
  withExample(text(max), example).regex(/^[\w-]+$/, 'must be base64url')
const credentialId = base64url(1400, 'pH3r0aW1nXyQk8mT5uVbZw')
/** A credential in the format of the browser's `toJSON()`; other fields are ignored. */
const credential = <Shape extends z.ZodRawShape>(response: Shape) =>
  z.object({
    id: credentialId,
    rawId: credentialId,
    type: z.literal('public-key'),
    response: z.object({
      clientDataJSON: base64url(4096, 'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoi4oCmIn0'),
      ...response,
    }),
    clientExtensionResults: z.object({}).default({}),
  })
const assertion = credential({
  authenticatorData: base64url(4096, 'SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MdAAAAAg'),
  signature: base64url(8192, 'MEUCIQDx3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrAiBk'),
  userHandle: base64url(100, 'AZOhsEQQf26NJ8BbnmGj8g'),
})
const attestation = credential({
  attestationObject: base64url(65_536, 'o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVik'),
  transports: z.array(text(40)).max(20).optional(),
})

/** Options for `navigator.credentials`, as WebAuthn names them. */
const options = z.looseObject({ challenge: like('VZk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYr') })
const passkeyName = withExample(visibleText(100), 'Laptop')
const passkeyRecord = z.object({
  id: uuid,
  name: like('Laptop'),
  synced: like(true).describe('Whether the device syncs it to the owner’s other devices.'),
  createdAt: timestamp,
  lastUsedAt: timestamp.nullable(),
})
const one = z.object({ data: passkeyRecord })
const params = z.object({ passkeyId: pathId })

const view = ({ id, name, synced, createdAt, lastUsedAt }: PasskeyRecord) => ({
  ...{ id, name, synced },
  createdAt: createdAt.toISOString(),
  lastUsedAt: lastUsedAt?.toISOString() ?? null,
})

/**
 * The relying party for passkeys in this request: the host of PUBLIC_URL, or else the requested host. Undefined if
 * browsers do not allow passkeys there: on plain http except for this machine's own names, at an IP address, or at
 * another host than PUBLIC_URL's.
 */
export function relyingParty(req: Request, publicUrl: string | undefined): RelyingParty | undefined {
  const url = dashboardUrl(req, publicUrl)
  if (!url || url.host !== req.host?.toLowerCase() || isIP(url.hostname.replace(/^\[|\]$/g, '')))
    return undefined
  const isSecure = url.protocol === 'https:' || /^(.+\.)?localhost$/.test(url.hostname)
  return isSecure ? { id: url.hostname, origin: url.origin } : undefined
}

export function passkeyRoutes(services: AccountServices): Route[] {
  const { prisma, config } = services
  const partyOf = (req: Request): RelyingParty => {
    const party = relyingParty(req, config.PUBLIC_URL)
    if (party) return party
    throw notFound(
      'Passkeys do not work at this address: they need https and a host name, which must be PUBLIC_URL’s if it is set',
    )
  }
  return [
    route({
      method: 'post',
      path: '/v0/login/passkey/options',
      id: 'beginPasskeyLogin',
      summary: 'Begin a sign-in with a passkey',
      description:
        'Pass the result through `PublicKeyCredential.parseRequestOptionsFromJSON` to `navigator.credentials.get` as `publicKey`. Its challenge is valid once, for 5 minutes.',
      scope: null,
      audited: false,
      success: { description: 'The options.', body: z.object({ data: options }) },
      errors: [403, 404],
      async handle({ req }) {
        requireSameOrigin(req)
        return { body: { data: await beginSignIn(prisma, partyOf(req)) } }
      },
    }),
    route({
      method: 'post',
      path: '/v0/login/passkey',
      id: 'loginWithPasskey',
      summary: 'Sign in with a passkey',
      description: 'The response sets the session cookie. 403 if the user is not a member of the workspace.',
      scope: null,
      body: z.object({ credential: assertion, workspaceId: signInWorkspace }),
      success: { description: 'The session.', body: z.object({ data: opened }) },
      errors: [401, 403, 404],
      handle: ({ body: { credential, workspaceId }, req, res }) =>
        signIn(services, { req, res, via: 'session' }, (browser) =>
          signInByPasskey(prisma, partyOf(req), { credential, workspaceId }, browser),
        ),
    }),
    route({
      method: 'get',
      path: '/v0/passkeys',
      id: 'listPasskeys',
      summary: 'List the passkeys of the user',
      description: 'They are the same in all workspaces. Newest first, 20 at most.',
      scope: 'org:read',
      session: true,
      success: {
        description: 'The passkeys.',
        body: z.object({ data: z.object({ passkeys: z.array(passkeyRecord) }) }),
      },
      async handle({ principal }) {
        const passkeys = (await listPasskeys(prisma, principal.userId)).map(view)
        return { body: { data: { passkeys } } }
      },
    }),
    route({
      method: 'post',
      path: '/v0/passkeys/options',
      id: 'beginPasskey',
      summary: 'Begin registering a passkey',
      description:
        'Pass the result through `PublicKeyCredential.parseCreationOptionsFromJSON` to `navigator.credentials.create` as `publicKey`. Its challenge is valid once, for 5 minutes. Requires a session: 403 for keys, and for users who have 20 passkeys.',
      scope: 'any',
      session: true,
      success: { description: 'The options.', body: z.object({ data: options }) },
      errors: [404],
      async handle({ principal, req }) {
        return { body: { data: await beginRegistration(prisma, partyOf(req), principal.userId) } }
      },
    }),
    route({
      method: 'post',
      path: '/v0/passkeys',
      id: 'createPasskey',
      summary: 'Register a passkey',
      description: 'Requires a session: 403 for keys. 409 if the passkey is already registered.',
      scope: 'any',
      session: true,
      body: z.object({ name: passkeyName, credential: attestation }),
      success: { status: 201, description: 'The passkey.', body: one },
      errors: [404, 409],
      async handle({ principal, body: { name, credential }, req }) {
        const { userId } = principal
        const party = partyOf(req)
        // A browser may name transports that the library's types do not know yet.
        const made = credential as Parameters<typeof registerPasskey>[2]['credential']
        return {
          body: { data: view(await registerPasskey(prisma, party, { userId, name, credential: made })) },
        }
      },
    }),
    route({
      method: 'patch',
      path: '/v0/passkeys/:passkeyId',
      id: 'renamePasskey',
      summary: 'Rename a passkey',
      description: 'Requires a session: 403 for keys.',
      scope: 'any',
      session: true,
      params,
      body: z.object({ name: passkeyName }),
      success: { description: 'The renamed passkey.', body: one },
      errors: [404],
      async handle({ principal, params: { passkeyId: id }, body: { name } }) {
        return { body: { data: view(await renamePasskey(prisma, { id, userId: principal.userId, name })) } }
      },
    }),
    route({
      method: 'delete',
      path: '/v0/passkeys/:passkeyId',
      id: 'deletePasskey',
      summary: 'Delete a passkey',
      description:
        'The passkey no longer signs anyone in; sessions that it opened continue. Requires a session: 403 for keys.',
      scope: 'any',
      session: true,
      params,
      success: { description: 'It is gone.', body: nothing },
      errors: [404],
      async handle({ principal, params: { passkeyId: id } }) {
        await deletePasskey(prisma, { id, userId: principal.userId })
        return { body: { data: null } }
      },
    }),
  ]
}
