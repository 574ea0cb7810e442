/**
 * Members of a workspace and their roles. Changes in one workspace are serialized, so that it never loses its last
 * owner.
 */
import type { Prisma, PrismaClient } from '../db/prisma.ts'
import { ApiError, forbidden, messages, notFound } from '../errors.ts'
import type { Role } from '../http/principal.ts'

/** A user with a role; the id is the user's. */
export type Member = { id: string; name: string; role: Role }

const noMember = () => notFound('There is no such member')

/**
 * Tells every process to read its cached keys again, once the transaction commits. @param whose a workspace or a user.
 */
export async function announceKeys(tx: Prisma.TransactionClient, whose: string): Promise<void> {
  await tx.$executeRaw`SELECT pg_notify('berth_api_key', ${whose})`
}

/** Blocks other changes of the workspace's members until the transaction ends. */
export async function lockMembers(tx: Prisma.TransactionClient, workspaceId: string): Promise<void> {
  await tx.$queryRaw`SELECT FROM workspace WHERE id = ${workspaceId}::uuid FOR NO KEY UPDATE`
}

/** Blocks other changes of a user's belongings or sessions until the transaction ends. */
export async function lockUser(tx: Prisma.TransactionClient, userId: string): Promise<void> {
  await tx.$queryRaw`SELECT FROM app_user WHERE id = ${userId}::uuid FOR NO KEY UPDATE`
}

/**
 * Gives a user a role, in a transaction that holds {@link lockMembers}. Keys from an earlier membership stay unusable
 * when the user comes back.
 * @throws ApiError 409 if the workspace would lose its last owner.
 */
export async function putMember(
  tx: Prisma.TransactionClient,
  { workspaceId, userId, role }: { workspaceId: string; userId: string; role: Role },
): Promise<void> {
  const where = { workspaceId_userId: { workspaceId, userId } }
  const before = await tx.membership.findUnique({ where })
  if (before?.role === 'owner' && role !== 'owner') await requireOtherOwner(tx, workspaceId, userId)
  if (role !== 'owner') await endInvitationsBy(tx, workspaceId, userId)
  if (!before)
    await tx.apiKey.updateMany({
      where: { workspaceId, userId, revokedAt: null },
      data: { revokedAt: new Date() },
    })
  await tx.membership.upsert({ where, create: { workspaceId, userId, role }, update: { role } })
  await announceKeys(tx, workspaceId)
}

/** Gives a user a role in a workspace, and creates the user if no user has that name. @throws ApiError 409 */
export function setRole(
  prisma: PrismaClient,
  { workspaceId, user, role }: { workspaceId: string; user: string; role: Role },
): Promise<{ id: string }> {
  return prisma.$transaction(async (tx) => {
    await lockMembers(tx, workspaceId)
    const { id } = await tx.user.upsert({ where: { name: user }, create: { name: user }, update: {} })
    await putMember(tx, { workspaceId, userId: id, role })
    return { id }
  })
}

/** Changes a member's role. @throws ApiError 404 if the user is not a member, 409 for the last owner. */
export function changeRole(
  prisma: PrismaClient,
  { workspaceId, userId, role, by }: { workspaceId: string; userId: string; role: Role; by: string },
): Promise<Member> {
  return prisma.$transaction(async (tx) => {
    await lockMembers(tx, workspaceId)
    await requireOwner(tx, workspaceId, by)
    const member = await tx.membership.findUnique({
      where: { workspaceId_userId: { workspaceId, userId } },
      include: { user: true },
    })
    if (!member) throw noMember()
    await putMember(tx, { workspaceId, userId, role })
    return { id: userId, name: member.user.name, role }
  })
}

/** Removes a user from a workspace; their keys for it stop working. @throws ApiError 404, 409 for the last owner. */
export function removeMember(
  prisma: PrismaClient,
  workspaceId: string,
  userId: string,
  by?: string,
): Promise<void> {
  return prisma.$transaction(async (tx) => {
    await lockMembers(tx, workspaceId)
    if (by !== undefined) await requireOwner(tx, workspaceId, by)
    const where = { workspaceId_userId: { workspaceId, userId } }
    const member = await tx.membership.findUnique({ where })
    if (!member) throw noMember()
    if (member.role === 'owner') await requireOtherOwner(tx, workspaceId, userId)
    await endInvitationsBy(tx, workspaceId, userId)
    await tx.membership.delete({ where })
    await announceKeys(tx, workspaceId)
  })
}

/**
 * While the caller waited for the lock, another change may have taken the role from them.
 * @throws ApiError 403 if the user is no longer an owner.
 */
export async function requireOwner(
  tx: Prisma.TransactionClient,
  workspaceId: string,
  userId: string,
): Promise<void> {
  const owner = { workspaceId, userId, role: 'owner' }
  if (!(await tx.membership.findFirst({ where: owner }))) throw forbidden(messages.permissionDenied)
}

/** Revokes the invitations of a member who may no longer invite. */
async function endInvitationsBy(
  tx: Prisma.TransactionClient,
  workspaceId: string,
  invitedBy: string,
): Promise<void> {
  await tx.invitation.updateMany({
    where: { workspaceId, invitedBy, acceptedAt: null, revokedAt: null },
    data: { revokedAt: new Date() },
  })
}

/** @throws ApiError 409 if this user is the only owner. */
async function requireOtherOwner(
  tx: Prisma.TransactionClient,
  workspaceId: string,
  userId: string,
): Promise<void> {
  const others = await tx.membership.findFirst({
    where: { workspaceId, role: 'owner', userId: { not: userId } },
  })
  if (!others) throw new ApiError(409, 'last_owner', 'The last owner of a workspace stays its owner')
}

/**
 * Grants or revokes a user's admin rights for the instance, effective at once for all of their keys.
 * @returns the user's id. @throws ApiError 404
 */
export function setInstanceAdmin(prisma: PrismaClient, name: string, isAdmin: boolean): Promise<string> {
  return prisma.$transaction(async (tx) => {
    const user = await tx.user.findUnique({ where: { name } })
    if (!user) throw notFound(`no user is named ${name}`)
    await tx.user.update({ where: { name }, data: { isAdmin } })
    await announceKeys(tx, name)
    return user.id
  })
}

/** The admins of the instance, by name. */
export const listInstanceAdmins = (prisma: PrismaClient): Promise<{ id: string; name: string }[]> =>
  prisma.user.findMany({
    where: { isAdmin: true },
    select: { id: true, name: true },
    orderBy: { name: 'asc' },
  })

/**
 * Members in the order in which they became users. @param filter.after the id of the last member on the previous page.
 */
export async function listMembers(
  prisma: PrismaClient,
  workspaceId: string,
  { role, after, limit }: { role?: Role | undefined; after?: string | undefined; limit?: number } = {},
): Promise<Member[]> {
  const rows = await prisma.membership.findMany({
    where: { workspaceId, ...(role && { role }), ...(after && { userId: { gt: after } }) },
    include: { user: true },
    orderBy: { userId: 'asc' },
    ...(limit !== undefined && { take: limit }),
  })
  return rows.map(({ user, role }) => ({ id: user.id, name: user.name, role: role as Role }))
}

/** The user whom a new key acts for if none is named: the workspace's first owner. @throws ApiError 404 */
export async function findOwner(prisma: PrismaClient, workspaceId: string): Promise<string> {
  const owner = await prisma.membership.findFirst({
    where: { workspaceId, role: 'owner' },
    orderBy: { userId: 'asc' },
    select: { userId: true },
  })
  if (!owner) throw notFound('the workspace has no owner: name a user')
  return owner.userId
}

/** A member of the workspace by name. @throws ApiError 404 */
export async function findMember(prisma: PrismaClient, workspaceId: string, name: string): Promise<string> {
  const member = await prisma.membership.findFirst({
    where: { workspaceId, user: { name } },
    select: { userId: true },
  })
  if (!member) throw notFound(`the workspace has no user named ${name}`)
  return member.userId
}
