import type { Response } from 'express'
import { z } from 'zod'
import { forbidden, messages } from '../errors.ts'
import { noteCaller } from '../http/audit.ts'
import { apiKey, like, timestamp, userId, uuid, withExample } from '../http/fields.ts'
import { pageOf, paging, readPage, toPage } from '../http/pages.ts'
import { type Route, routesOf } from '../http/route.ts'
import { nothing, pathId, text, visibleText } from '../http/shapes.ts'
import {
  acceptInvitation,
  INVITATION_STATES,
  type Invitation,
  invite,
  listInvitations,
  revokeInvitation,
} from './invitations.ts'
import type { AccountServices } from './services.ts'
import { ROLES } from './workspace-routes.ts'

const route = routesOf('Invitations')
const INVITATIONS = '/v0/workspaces/:workspaceId/invitations'
const HOUR_MS = 3_600_000
const WEEK_HOURS = 168

const newInvitation = z.object({
  role: withExample(z.enum(ROLES), 'member'),
  email: text(320)
    .pipe(z.email('must be an e-mail address'))
    .optional()
    .describe('A note of the recipient. Berth sends no mail: pass the token on yourself.'),
  expiresInHours: z
    .number()
    .int()
    .min(1)
    .max(30 * 24)
    .default(WEEK_HOURS),
})

const invitationRecord = z.object({
  id: uuid,
  role: withExample(z.enum(ROLES), 'member'),
  email: like('ada@example.com').nullable(),
  state: z.enum(INVITATION_STATES),
  invitedBy: userId.describe('The id of the user.'),
  acceptedBy: z.string().nullable().describe('The id of the user who accepted it.'),
  createdAt: timestamp,
  expiresAt: timestamp,
})

export const invitationToken = withExample(
  text(100),
  'invite_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT',
).min(1, 'must not be empty')
export const newUserName = withExample(visibleText(255), 'Ada')
const accepted = z.object({
  data: z.object({
    workspace: z.object({ id: uuid, name: like('reading room') }),
    user: z.object({ id: userId, name: like('Ada') }),
    role: withExample(z.enum(ROLES), 'member'),
    token: apiKey.describe(
      'An API key of the new member, with `admin`, or `org:read` for a viewer. It is shown only once.',
    ),
  }),
})

const view = ({ createdAt, expiresAt, ...rest }: Invitation) => ({
  ...rest,
  createdAt: createdAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
})

/** The audit records it in the workspace that gains a member. */
const noteMember = (res: Response, { workspace, user }: z.output<typeof accepted>['data']) =>
  noteCaller(res, { workspaceId: workspace.id, userId: user.id })

export function invitationRoutes({ prisma, keys }: AccountServices): Route[] {
  return [
    route({
      method: 'post',
      path: INVITATIONS,
      id: 'createInvitation',
      summary: 'Invite a member',
      description: `The holder of the token can become a member, once. 403 \`${messages.invitationLimit}\` while 100 invitations are pending. 403 for keys with a limited number of uses.`,
      scope: 'admin',
      role: 'owner',
      body: newInvitation,
      success: {
        status: 201,
        description: 'The invitation, with its token. It is shown only once.',
        body: z.object({
          data: invitationRecord.extend({
            token: like('invite_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT'),
          }),
        }),
      },
      async handle({ principal, body: { role, email = null, expiresInHours } }) {
        if (principal.maxUses !== null) throw forbidden(messages.permissionDenied)
        const { workspaceId, userId: invitedBy } = principal
        const expiresAt = new Date(Date.now() + expiresInHours * HOUR_MS)
        const { token, ...made } = await invite(prisma, { workspaceId, invitedBy, role, email, expiresAt })
        return { body: { data: { ...view(made), token } } }
      },
    }),
    route({
      method: 'get',
      path: INVITATIONS,
      id: 'listInvitations',
      summary: 'List invitations',
      scope: 'org:read',
      role: 'owner',
      query: z.object({
        state: z.enum(INVITATION_STATES).optional().describe('Only invitations in this state.'),
        ...paging(10, 250),
      }),
      success: {
        description: 'A page of invitations, newest first.',
        body: pageOf('invitations', invitationRecord),
      },
      async handle({ principal: { workspaceId }, query }) {
        const page = await readPage(query, (cursor) =>
          listInvitations(prisma, workspaceId, query.state, cursor),
        )
        return { body: toPage('invitations', page, view) }
      },
    }),
    route({
      method: 'delete',
      path: `${INVITATIONS}/:invitationId`,
      id: 'revokeInvitation',
      summary: 'Revoke an invitation',
      description:
        'An invitation that has ended stays unchanged. 409 if it was accepted: remove the member instead.',
      scope: 'admin',
      role: 'owner',
      params: z.object({ invitationId: pathId }),
      success: { description: 'The invitation can no longer be accepted.', body: nothing },
      errors: [404, 409],
      async handle({ principal, params }) {
        await revokeInvitation(prisma, principal.workspaceId, params.invitationId)
        return { body: { data: null } }
      },
    }),
    route({
      method: 'post',
      path: '/v0/invitations/accept',
      id: 'acceptInvitation',
      summary: 'Accept an invitation as a new user',
      description:
        'Requires no key: the token authorizes the request. If another user has the name, a number is appended.',
      scope: null,
      body: z.object({ token: invitationToken, name: newUserName }),
      success: { status: 201, description: 'The new member.', body: accepted },
      errors: [404],
      async handle({ body: { token, name }, res }) {
        const data = await acceptInvitation(prisma, keys, token, name)
        noteMember(res, data)
        return { body: { data } }
      },
    }),
  ]
}
