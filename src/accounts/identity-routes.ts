import type { Request, Response } from 'express'
import { z } from 'zod'
import { badRequest, notFound } from '../errors.ts'
import { like, timestamp, uuid, withExample } from '../http/fields.ts'
import { type Route, routesOf } from '../http/route.ts'
import { oidcCookieOf, requireSameOrigin, setOidcCookie } from '../http/session-cookie.ts'
import { nothing, pathId, text } from '../http/shapes.ts'
import {
  beginAtProvider,
  type IdentityRecord,
  linkIdentity,
  listIdentities,
  type Purpose,
  type Returned,
  signInByIdentity,
  unlinkIdentity,
} from './identities.ts'
import type { OpenIdProvider } from './openid-provider.ts'
import type { AccountServices } from './services.ts'
import { dashboardUrl, opened, signIn, signInWorkspace } from './sign-in.ts'

const route = routesOf('Identities')
/** The page to which the provider sends the browser. */
const LOGIN_PAGE = '/login'

const begun = z.object({
  data: z.object({
    url: like('https://id.example.com/auth?client_id=berth&response_type=code&state=login.x1').describe(
      'The provider’s sign-in page.',
    ),
  }),
})
const returned = z.object({
  query: withExample(text(8192), 'code=Kq3vRzA2yq0o&state=login.x1&iss=https%3A%2F%2Fid.example.com')
    .min(1, 'must not be empty')
    .describe('The query string of the URL to which the provider sent the browser, without the `?`.'),
})
const identityRecord = z.object({
  id: uuid,
  issuer: like('https://id.example.com').describe('The provider.'),
  email: like('ada@example.com')
    .nullable()
    .describe('As the provider reported it when the identity was linked.'),
  createdAt: timestamp,
  lastUsedAt: timestamp.nullable(),
})

const view = ({ id, issuer, email, createdAt, lastUsedAt }: IdentityRecord) => ({
  ...{ id, issuer, email },
  createdAt: createdAt.toISOString(),
  lastUsedAt: lastUsedAt?.toISOString() ?? null,
})

export function identityRoutes(services: AccountServices): Route[] {
  const { prisma, config } = services
  const provider = (): OpenIdProvider => {
    if (services.provider) return services.provider
    throw notFound('No OpenID provider is set: see BERTH_OIDC_ISSUER')
  }
  const redirectUri = (req: Request): string => {
    const url = dashboardUrl(req, config.PUBLIC_URL)
    if (!url) throw badRequest('Host: is no host name')
    return `${url.origin}${LOGIN_PAGE}`
  }
  const begin = async (req: Request, res: Response, purpose: Purpose) => {
    const { url, token, expiresAt } = await beginAtProvider(prisma, provider(), redirectUri(req), purpose)
    setOidcCookie(req, res, token, expiresAt)
    return { body: { data: { url } } }
  }
  const back = (req: Request, res: Response, query: string): Returned => {
    setOidcCookie(req, res, '', new Date(0))
    return { query, redirectUri: redirectUri(req), token: oidcCookieOf(req) }
  }
  return [
    route({
      method: 'post',
      path: '/v0/login/oidc',
      id: 'beginOidcLogin',
      summary: 'Begin a sign-in at the OpenID provider',
      description:
        'Open `url` in the browser. The provider sends the browser back to `/login` with a query that is valid once, in this browser, for 10 minutes. 404 if no provider is set, or if the invitation cannot be accepted.',
      scope: null,
      audited: false,
      body: z.object({
        workspaceId: signInWorkspace,
        invitation: text(100)
          .min(1)
          .optional()
          .describe('The token of an invitation, which the sign-in accepts.'),
      }),
      success: { description: 'Where to go.', body: begun },
      errors: [403, 404, 503],
      handle({ body, req, res }) {
        requireSameOrigin(req)
        return begin(req, res, body)
      },
    }),
    route({
      method: 'post',
      path: '/v0/login/oidc/finish',
      id: 'loginWithOidc',
      summary: 'Sign in with the OpenID provider’s response',
      description:
        'The response sets the session cookie. 403 if the identity is not known here. 404 and 409 as when accepting an invitation.',
      scope: null,
      body: returned,
      success: { description: 'The session.', body: z.object({ data: opened }) },
      errors: [401, 403, 404, 409, 503],
      handle: ({ body: { query }, req, res }) =>
        signIn(services, { req, res, via: 'session' }, (browser) =>
          signInByIdentity(prisma, provider(), back(req, res, query), {
            ...{ ...browser, joinRules: config.BERTH_OIDC_JOIN },
          }),
        ),
    }),
    route({
      method: 'get',
      path: '/v0/identities',
      id: 'listIdentities',
      summary: 'List the identities of the user',
      description:
        'The user’s identities at the OpenID provider, the same in all workspaces. Newest first, 10 at most.',
      scope: 'org:read',
      session: true,
      success: {
        description: 'The identities.',
        body: z.object({ data: z.object({ identities: z.array(identityRecord) }) }),
      },
      async handle({ principal }) {
        const identities = (await listIdentities(prisma, principal.userId)).map(view)
        return { body: { data: { identities } } }
      },
    }),
    route({
      method: 'post',
      path: '/v0/identities/begin',
      id: 'beginIdentity',
      summary: 'Begin linking an identity',
      description:
        'As for a sign-in, except that the `state` in the query begins with `link.`. Requires a session: 403 for keys. 404 if no provider is set.',
      scope: 'any',
      session: true,
      success: { description: 'Where to go.', body: begun },
      errors: [404],
      handle({ principal, req, res }) {
        return begin(req, res, { userId: principal.userId })
      },
    }),
    route({
      method: 'post',
      path: '/v0/identities',
      id: 'linkIdentity',
      summary: 'Link an identity with the user',
      description:
        'Uses the OpenID provider’s response. Requires a session: 403 for keys, and for users who have 10 identities. 409 if another user has the identity.',
      scope: 'any',
      session: true,
      body: returned,
      success: { status: 201, description: 'The identity.', body: z.object({ data: identityRecord }) },
      errors: [404, 409],
      async handle({ principal, body: { query }, req, res }) {
        const linked = await linkIdentity(prisma, provider(), back(req, res, query), principal.userId)
        return { body: { data: view(linked) } }
      },
    }),
    route({
      method: 'delete',
      path: '/v0/identities/:identityId',
      id: 'unlinkIdentity',
      summary: 'Unlink an identity',
      description:
        'The identity no longer signs anyone in; sessions that it opened continue. Requires a session: 403 for keys.',
      scope: 'any',
      session: true,
      params: z.object({ identityId: pathId }),
      success: { description: 'It is gone.', body: nothing },
      errors: [404],
      async handle({ principal, params: { identityId: id } }) {
        await unlinkIdentity(prisma, { id, userId: principal.userId })
        return { body: { data: null } }
      },
    }),
  ]
}
