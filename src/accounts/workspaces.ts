/** Workspaces, their users and plans, as `berth workspaces` and `berth users` manage them. */
import { isUniqueViolation } from '../db/database-errors.ts'
import type { Prisma, PrismaClient } from '../db/prisma.ts'
import { createDefaultGateway } from '../files/gateway-domain.ts'
import type { Role } from '../http/principal.ts'

/** A request that cannot be met; the message is for the person at the terminal. */
export class AccountError extends Error {
  override name = 'AccountError'
}

export interface NewWorkspace {
  name: string
  plan: string
  /** The name of the user who owns it; made where there is none. */
  owner: string
}

/** Creates a workspace with a user who owns it, and its gateway. @throws AccountError when the name is taken. */
export async function createWorkspace(
  prisma: PrismaClient,
  workspace: NewWorkspace,
): Promise<{ id: string; ownerId: string }> {
  await requirePlan(prisma, workspace.plan)
  try {
    return await prisma.$transaction((tx) => insertWorkspace(tx, workspace))
  } catch (error) {
    if (isUniqueViolation(error))
      throw new AccountError(`a workspace named ${workspace.name} is there already`)
    throw error
  }
}

/** The rows of a new workspace, for a transaction that has more to write. */
export async function insertWorkspace(
  tx: Prisma.TransactionClient,
  { name, plan, owner }: NewWorkspace,
): Promise<{ id: string; ownerId: string }> {
  const user = await tx.user.upsert({ where: { name: owner }, create: { name: owner }, update: {} })
  const { id } = await tx.workspace.create({ data: { name, planName: plan } })
  await tx.membership.create({ data: { workspaceId: id, userId: user.id, role: 'owner' } })
  await createDefaultGateway(tx, { id, name })
  return { id, ownerId: user.id }
}

export async function listWorkspaces(prisma: PrismaClient) {
  const rows = await prisma.workspace.findMany({
    orderBy: { id: 'asc' },
    include: { _count: { select: { memberships: true } } },
  })
  return rows.map(({ id, name, planName, _count }) => ({
    id,
    name,
    plan: planName,
    users: _count.memberships,
  }))
}

/** Finds a workspace by its name or id. @throws AccountError when there is none. */
export async function findWorkspace(
  prisma: PrismaClient,
  nameOrId: string,
): Promise<{ id: string; name: string }> {
  const isId = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(nameOrId)
  const found = await prisma.workspace.findFirst({
    where: { OR: [{ name: nameOrId }, ...(isId ? [{ id: nameOrId }] : [])] },
    select: { id: true, name: true },
  })
  if (!found) throw new AccountError(`no workspace is named ${nameOrId}`)
  return found
}

/** Puts a workspace on another plan, at once for all of its keys. @throws AccountError */
export async function setPlan(prisma: PrismaClient, nameOrId: string, plan: string): Promise<void> {
  await requirePlan(prisma, plan)
  const { id } = await findWorkspace(prisma, nameOrId)
  await prisma.workspace.update({ where: { id }, data: { planName: plan } })
  await announce(prisma, id)
}

/** Gives a user a role in a workspace, and makes the user where there is none of that name. */
export async function setRole(
  prisma: PrismaClient,
  { workspaceId, user, role }: { workspaceId: string; user: string; role: Role },
): Promise<{ id: string }> {
  const { id: userId } = await prisma.user.upsert({
    where: { name: user },
    create: { name: user },
    update: {},
  })
  await prisma.membership.upsert({
    where: { workspaceId_userId: { workspaceId, userId } },
    create: { workspaceId, userId, role },
    update: { role },
  })
  await announce(prisma, workspaceId)
  return { id: userId }
}

/** Takes a user out of a workspace; that user's keys of it stop working. @throws AccountError */
export async function removeMember(prisma: PrismaClient, workspaceId: string, user: string): Promise<void> {
  const { count } = await prisma.membership.deleteMany({ where: { workspaceId, user: { name: user } } })
  if (count === 0) throw new AccountError(`the workspace has no user named ${user}`)
  await announce(prisma, workspaceId)
}

export async function listMembers(prisma: PrismaClient, workspaceId: string) {
  const rows = await prisma.membership.findMany({
    where: { workspaceId },
    include: { user: true },
    orderBy: { userId: 'asc' },
  })
  return rows.map(({ user, role }) => ({ id: user.id, name: user.name, role }))
}

/** The user whom a new key acts for where none is named: the workspace's first owner. */
export async function findOwner(prisma: PrismaClient, workspaceId: string): Promise<string> {
  const owner = await prisma.membership.findFirst({
    where: { workspaceId, role: 'owner' },
    orderBy: { userId: 'asc' },
    select: { userId: true },
  })
  if (!owner) throw new AccountError('the workspace has no owner: name a user')
  return owner.userId
}

async function requirePlan(prisma: PrismaClient, name: string): Promise<void> {
  const plans = await prisma.plan.findMany({ select: { name: true } })
  if (plans.some((plan) => plan.name === name)) return
  throw new AccountError(`no plan is named ${name}: there are ${plans.map((plan) => plan.name).join(', ')}`)
}

/** A member of the workspace by name. @throws AccountError when there is none. */
export async function findUser(prisma: PrismaClient, workspaceId: string, name: string): Promise<string> {
  const member = await prisma.membership.findFirst({
    where: { workspaceId, user: { name } },
    select: { userId: true },
  })
  if (!member) throw new AccountError(`the workspace has no user named ${name}`)
  return member.userId
}

/** Tells every process to read its cached keys again. */
async function announce(prisma: PrismaClient, workspaceId: string): Promise<void> {
  await prisma.$executeRaw`SELECT pg_notify('berth_api_key', ${workspaceId})`
}
