/**
 * Invitations to a workspace. An owner creates one and hands over its token; the holder of the token becomes a member,
 * once. The token is shown when it is created; the row stores only its hash.
 */
import { randomBytes } from 'node:crypto'
import { type Cursor, newestFirst } from '../db/cursor.ts'
import type { Prisma, PrismaClient } from '../db/prisma.ts'
import { ApiError, forbidden, messages, notFound } from '../errors.ts'
import type { Role } from '../http/principal.ts'
import { freeName, withFreeName } from './free-name.ts'
import type { KeyService } from './keys.ts'
import { lockMembers, putMember, requireOwner } from './members.ts'
import { hashSecret } from './tokens.ts'

/** Maximum number of pending invitations per workspace. */
const MAX_PENDING = 100
/** How long ended invitations are kept; the next invitation to their workspace deletes older ones. */
const KEPT_MS = 90 * 86_400_000

export const INVITATION_STATES = ['pending', 'accepted', 'revoked', 'expired'] as const
export type InvitationState = (typeof INVITATION_STATES)[number]

export interface Invitation {
  id: string
  role: Role
  email: string | null
  state: InvitationState
  invitedBy: string
  acceptedBy: string | null
  createdAt: Date
  expiresAt: Date
}

/** The result of an accepted invitation: the member, and a key with the permissions of the role. */
export interface Accepted {
  workspace: { id: string; name: string }
  user: { id: string; name: string }
  role: Role
  token: string
}

const noInvitation = () => notFound('There is no such invitation')
const isPending = () => ({ acceptedAt: null, revokedAt: null, expiresAt: { gt: new Date() } })

const WHERE: Record<InvitationState, () => Prisma.InvitationWhereInput> = {
  pending: isPending,
  accepted: () => ({ acceptedAt: { not: null } }),
  revoked: () => ({ revokedAt: { not: null } }),
  expired: () => ({ acceptedAt: null, revokedAt: null, expiresAt: { lte: new Date() } }),
}

/** @throws ApiError 403 if the inviter is no longer an owner, or if too many invitations are pending. */
export function invite(
  prisma: PrismaClient,
  invitation: {
    workspaceId: string
    invitedBy: string
    role: Role
    email: string | null
    expiresAt: Date
  },
): Promise<Invitation & { token: string }> {
  const { workspaceId, invitedBy } = invitation
  const token = `invite_${randomBytes(32).toString('base64url')}`
  return prisma.$transaction(async (tx) => {
    await lockMembers(tx, workspaceId)
    await requireOwner(tx, workspaceId, invitedBy)
    await tx.invitation.deleteMany({
      where: { workspaceId, expiresAt: { lt: new Date(Date.now() - KEPT_MS) } },
    })
    if ((await tx.invitation.count({ where: { workspaceId, ...isPending() } })) >= MAX_PENDING)
      throw forbidden(messages.invitationLimit, 'invitation_limit')
    const row = await tx.invitation.create({ data: { ...invitation, tokenHash: hashSecret(token) } })
    return { ...toInvitation(row), token }
  })
}

/** Newest first. @param filter.after the id of the last invitation on the previous page. */
export async function listInvitations(
  prisma: PrismaClient,
  workspaceId: string,
  state: InvitationState | undefined,
  cursor: Cursor,
): Promise<Invitation[]> {
  const where = { workspaceId, ...(state && WHERE[state]()) }
  return (await prisma.invitation.findMany(newestFirst(cursor, where))).map(toInvitation)
}

/** Ends a pending invitation; an ended one stays unchanged. @throws ApiError 404, 409 if it was accepted. */
export async function revokeInvitation(prisma: PrismaClient, workspaceId: string, id: string): Promise<void> {
  await prisma.invitation.updateMany({
    where: { id, workspaceId, ...isPending() },
    data: { revokedAt: new Date() },
  })
  const row = await prisma.invitation.findFirst({ where: { id, workspaceId } })
  if (!row) throw noInvitation()
  if (row.acceptedAt) throw new ApiError(409, 'accepted', 'The invitation has been accepted')
}

/**
 * Creates a user, a membership by the token of an invitation, and a key, all in one transaction.
 * @param name of the user; a number is appended if another user has it.
 * @throws ApiError 404 if the token is not valid, or no longer valid.
 */
export function acceptInvitation(
  prisma: PrismaClient,
  keys: KeyService,
  token: string,
  name: string,
): Promise<Accepted> {
  return withFreeName('user', () =>
    prisma.$transaction(async (tx) => {
      const joined = await joinByInvitation(tx, hashSecret(token), { name })
      const { workspace, user, role } = joined
      const scopes = [role === 'viewer' ? 'org:read' : 'admin']
      const made = { workspaceId: workspace.id, userId: user.id, name: 'invitation', scopes }
      const key = await keys.create(made, tx)
      return { ...joined, token: key.token }
    }),
  )
}

/**
 * Makes the accepting user a member and ends the invitation, as a part of a transaction.
 * @throws ApiError 404, 409 for a member
 */
export async function joinByInvitation(
  tx: Prisma.TransactionClient,
  tokenHash: Uint8Array<ArrayBuffer>,
  who: { name: string } | { userId: string },
): Promise<Omit<Accepted, 'token'>> {
  // An ended invitation must not reveal whether a name is taken.
  const found = await tx.invitation.findFirst({
    where: { tokenHash, ...isPending() },
    include: { workspace: true },
  })
  if (!found) throw noInvitation()
  const { id, workspaceId, workspace } = found
  const role = found.role as Role
  await lockMembers(tx, workspaceId)
  const user =
    'name' in who
      ? await tx.user.create({ data: { name: await freeName(tx, 'user', who.name) } })
      : await tx.user.findUniqueOrThrow({ where: { id: who.userId } })
  const { count } = await tx.invitation.updateMany({
    where: { id, ...isPending() },
    data: { acceptedAt: new Date(), acceptedBy: user.id },
  })
  if (count === 0) throw noInvitation()
  const where = { workspaceId_userId: { workspaceId, userId: user.id } }
  if (await tx.membership.findUnique({ where }))
    throw new ApiError(409, 'member', 'The user is a member of the workspace already')
  await putMember(tx, { workspaceId, userId: user.id, role })
  return {
    workspace: { id: workspaceId, name: workspace.name },
    user: { id: user.id, name: user.name },
    role,
  }
}

/** @throws ApiError 404 if the token does not allow anyone to join now. */
export async function requireInvitation(
  prisma: PrismaClient,
  tokenHash: Uint8Array<ArrayBuffer>,
): Promise<void> {
  if (!(await prisma.invitation.findFirst({ where: { tokenHash, ...isPending() } }))) throw noInvitation()
}

function toInvitation(row: Prisma.InvitationModel): Invitation {
  const { id, role, email, invitedBy, acceptedBy, acceptedAt, revokedAt, createdAt, expiresAt } = row
  const state = acceptedAt
    ? 'accepted'
    : revokedAt
      ? 'revoked'
      : expiresAt > new Date()
        ? 'pending'
        : 'expired'
  return { id, role: role as Role, email, state, invitedBy, acceptedBy, createdAt, expiresAt }
}
