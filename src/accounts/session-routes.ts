import { z } from 'zod'
import { forbidden, notFound } from '../errors.ts'
import { noteCaller } from '../http/audit.ts'
import { like, timestamp, userId, uuid, withExample, workspaceId } from '../http/fields.ts'
import { grants } from '../http/principal.ts'
import { type Route, routesOf } from '../http/route.ts'
import { setSessionCookie } from '../http/session-cookie.ts'
import { nothing, pathId, text } from '../http/shapes.ts'
import { invitationToken, newUserName } from './invitation-routes.ts'
import { relyingParty } from './passkey-routes.ts'
import { planRecord, toPlanRecord } from './plans.ts'
import type { AccountServices } from './services.ts'
import {
  endSession,
  joinWithSession,
  listMemberships,
  listSessions,
  moveSession,
  openInvitedSession,
  openSession,
  type Session,
} from './sessions.ts'
import { opened, sessionLimits, signIn } from './sign-in.ts'
import { ROLES } from './workspace-routes.ts'

const route = routesOf('Sessions')

const ways = z.object({
  passkey: like(true).describe('Whether browsers can use passkeys at this address.'),
  oidc: z
    .object({ name: like('Ada') })
    .nullable()
    .describe('The OpenID provider, if one is set.'),
  program: like(true).describe('Whether programs can sign in through the dashboard.'),
})
const namedUser = z.object({ id: userId, name: like('Ada') })
const namedWorkspace = z.object({ id: workspaceId, name: like('catalogues') })
const me = z.object({
  user: namedUser,
  workspace: namedWorkspace,
  role: z.enum(ROLES),
  scopes: withExample(z.array(z.string()), ['admin', 'instance:write']),
  isInstanceAdmin: like(true),
  plan: planRecord,
  session: opened.nullable().describe('Null for a key.'),
  workspaces: z
    .array(namedWorkspace.extend({ role: z.enum(ROLES) }))
    .nullable()
    .describe(
      'The workspaces in which the user is a member, by name, 1000 at most. Null for a key, which belongs to one workspace.',
    ),
})
const loginToken = withExample(text(100), 'login_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT').min(
  1,
  'must not be empty',
)
const sessionRecord = z.object({
  id: uuid,
  userAgent: like('Mozilla/5.0 (X11; Linux x86_64) Firefox/146.0')
    .nullable()
    .describe('The browser’s user agent at the sign-in.'),
  current: like(true).describe('Whether this is the session of the request.'),
  createdAt: timestamp,
  lastUsedAt: timestamp.nullable().describe('To the minute.'),
  expiresAt: timestamp,
})

const view = ({ createdAt, lastUsedAt, expiresAt, ...rest }: Session) => ({
  ...rest,
  createdAt: createdAt.toISOString(),
  lastUsedAt: lastUsedAt?.toISOString() ?? null,
  expiresAt: expiresAt.toISOString(),
})

export function sessionRoutes(services: AccountServices): Route[] {
  const { prisma, forgetKeys, config, provider } = services
  const limits = sessionLimits(services)
  return [
    route({
      method: 'get',
      path: '/v0/login',
      id: 'waysToSignIn',
      summary: 'List the ways to sign in',
      description: 'In addition to login links, which always work.',
      scope: null,
      success: { description: 'The ways.', body: z.object({ data: ways }) },
      async handle({ req }) {
        const passkey = relyingParty(req, config.PUBLIC_URL) !== undefined
        const oidc = provider ? { name: provider.name } : null
        return { body: { data: { passkey, oidc, program: config.BERTH_DASHBOARD === 'on' } } }
      },
    }),
    route({
      method: 'post',
      path: '/v0/login',
      id: 'login',
      summary: 'Sign in with the token of a login link',
      description:
        'A link is valid once, for 15 minutes: `npm start` and `npx berth login-link` print one. The response sets the session cookie. 403 for a page of another origin.',
      scope: null,
      body: z.object({ token: loginToken }),
      success: { description: 'The session.', body: z.object({ data: opened }) },
      errors: [401, 403],
      handle: ({ body: { token }, req, res }) =>
        signIn(services, { req, res, via: 'link' }, (browser) => openSession(prisma, token, browser)),
    }),
    route({
      method: 'post',
      path: '/v0/login/invitation',
      id: 'loginByInvitation',
      summary: 'Accept an invitation as a new user, and sign in',
      description:
        'For people; a program accepts an invitation with `POST /v0/invitations/accept` and gets a key. The response sets the session cookie. 403 for a page of another origin. If another user has the name, a number is appended.',
      scope: null,
      body: z.object({ token: invitationToken, name: newUserName }),
      success: { description: 'The session.', body: z.object({ data: opened }) },
      errors: [403, 404],
      handle: ({ body, req, res }) =>
        signIn(services, { req, res, via: 'link' }, (browser) => openInvitedSession(prisma, body, browser)),
    }),
    route({
      method: 'post',
      path: '/v0/logout',
      id: 'logout',
      summary: 'End the current session',
      description: '403 for a key: revoke it instead.',
      scope: 'any',
      session: true,
      success: { description: 'It has ended.', body: nothing },
      async handle({ principal, req, res }) {
        await endSession(prisma, principal, principal.keyId)
        forgetKeys()
        setSessionCookie(req, res, '', new Date(0))
        return { body: { data: null } }
      },
    }),
    route({
      method: 'get',
      path: '/v0/me',
      id: 'whoAmI',
      summary: 'Get the caller and their permissions',
      scope: 'any',
      success: { description: 'The caller.', body: z.object({ data: me }) },
      async handle({ principal }) {
        const { userId, workspaceId, role, scopes, isInstanceAdmin, isSession, keyId, expiresAt } = principal
        const [user, workspace, workspaces] = await Promise.all([
          prisma.user.findUnique({ where: { id: userId }, select: { id: true, name: true } }),
          prisma.workspace.findUnique({ where: { id: workspaceId }, include: { plan: true } }),
          isSession ? listMemberships(prisma, userId) : null,
        ])
        if (!user || !workspace) throw notFound('There is no such workspace')
        const data = {
          ...{ user, workspace: { id: workspace.id, name: workspace.name }, role, scopes, isInstanceAdmin },
          plan: toPlanRecord(workspace.plan),
          session: isSession && expiresAt ? { id: keyId, expiresAt: expiresAt.toISOString() } : null,
          workspaces,
        }
        return { body: { data } }
      },
    }),
    route({
      method: 'get',
      path: '/v0/sessions',
      id: 'listSessions',
      summary: 'List the sessions of the user',
      description: 'The user’s sessions in this workspace that have not ended, newest first.',
      scope: 'org:read',
      success: {
        description: 'The sessions.',
        body: z.object({ data: z.object({ sessions: z.array(sessionRecord) }) }),
      },
      async handle({ principal }) {
        const found = await listSessions(prisma, principal, limits)
        const sessions = found.map((one) => ({ ...view(one), current: one.id === principal.keyId }))
        return { body: { data: { sessions } } }
      },
    }),
    route({
      method: 'post',
      path: '/v0/sessions/move',
      id: 'moveSession',
      summary: 'Move the session to another workspace of the user',
      description:
        'The session continues there with the same cookie and expiry; its open requests here end. It is ' +
        'listed there as another session, with its own id. 403 if the user is not a member there, and for a key, which belongs to one workspace.',
      scope: 'any',
      session: true,
      body: z.object({
        workspaceId: withExample(
          z.uuid('must be the id of a workspace'),
          '0193a1c0-51d2-7c3f-8a04-9d2e61b7f3a5',
        ),
      }),
      success: { description: 'The session.', body: z.object({ data: opened }) },
      async handle({ principal, body: { workspaceId }, res }) {
        const { id, userId, expiresAt } = await moveSession(prisma, principal, workspaceId)
        forgetKeys()
        // This counts as a sign-in there: the owners of that workspace find it in their audit.
        noteCaller(res, { via: 'session', workspaceId, userId, keyId: id })
        return { body: { data: { id, expiresAt: expiresAt.toISOString() } } }
      },
    }),
    route({
      method: 'post',
      path: '/v0/sessions/join',
      aliases: ['/v0/invitations/join'],
      id: 'joinWithSession',
      summary: 'Accept an invitation as the user of the session',
      description:
        'The session continues in the joined workspace, as when it is moved there. 409 if the user is already a member. 403 for a key: its holder must not decide where its user signs in.',
      scope: 'any',
      session:
        'A key cannot join a workspace for its user: open /login#invitation=<token> in the dashboard, or accept the invitation as a new user with POST /v0/invitations/accept',
      body: z.object({ token: invitationToken }),
      success: { description: 'The session.', body: z.object({ data: opened }) },
      errors: [404, 409],
      async handle({ principal, body: { token }, res }) {
        const { id, workspaceId, userId, expiresAt } = await joinWithSession(prisma, principal, token)
        forgetKeys()
        noteCaller(res, { via: 'session', workspaceId, userId, keyId: id })
        return { body: { data: { id, expiresAt: expiresAt.toISOString() } } }
      },
    }),
    route({
      method: 'delete',
      path: '/v0/sessions/:sessionId',
      id: 'revokeSession',
      summary: 'End a session of the user',
      description:
        'Takes effect at once. The caller is another session of the user, or a key of theirs with `admin`.',
      scope: 'any',
      params: z.object({ sessionId: pathId }),
      success: { description: 'It has ended.', body: nothing },
      errors: [404],
      async handle({ principal, params: { sessionId } }) {
        if (!principal.isSession && !grants(principal.scopes, 'admin'))
          throw forbidden('Missing scope: admin', 'missing_scope')
        await endSession(prisma, principal, sessionId)
        forgetKeys()
        return { body: { data: null } }
      },
    }),
  ]
}
