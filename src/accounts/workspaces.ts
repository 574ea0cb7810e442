/** Workspaces and their plans: over HTTP, and through `berth workspaces`. */
import { lock } from '../db/advisory-locks.ts'
import { isUniqueViolation } from '../db/database-errors.ts'
import { inTransaction, type Prisma, type PrismaClient } from '../db/prisma.ts'
import { recallModelLeases } from '../db/statements/models.ts'
import { ApiError, badRequest, notFound } from '../errors.ts'
import { createDefaultGateway } from '../files/gateway-domain.ts'
import { isUuid } from '../lib/read.ts'
import { freeName, withFreeName } from './free-name.ts'
import { announceKeys } from './members.ts'

export interface NewWorkspace {
  name: string
  plan: string
  /** The name of the user who owns it; the user is created if no user has that name. */
  owner: string
}

/**
 * Creates a workspace with an owner and a gateway.
 * @param more additional writes for the transaction.
 * @throws ApiError 400 if the plan does not exist, 409 if the name is taken.
 */
export async function createWorkspace<More = unknown>(
  prisma: PrismaClient,
  workspace: NewWorkspace,
  more?: (tx: Prisma.TransactionClient, made: { id: string; ownerId: string }) => Promise<More>,
): Promise<{ id: string; ownerId: string; more: More | undefined }> {
  await requirePlan(prisma, workspace.plan)
  return refuseTakenName(workspace.name, () =>
    prisma.$transaction(async (tx) => {
      const made = await insertWorkspace(tx, workspace)
      return { ...made, more: await more?.(tx, made) }
    }),
  )
}

/** Inserts the rows of a new workspace, for a transaction with more to write. */
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

/** Finds a workspace by its name or id. @throws ApiError 404 */
export async function findWorkspace(
  prisma: Prisma.TransactionClient,
  nameOrId: string,
): Promise<{ id: string; name: string }> {
  const select = { id: true, name: true }
  // Owners choose workspace names, so a name may look like another workspace's id.
  const found =
    (isUuid(nameOrId) && (await prisma.workspace.findUnique({ where: { id: nameOrId }, select }))) ||
    (await prisma.workspace.findUnique({ where: { name: nameOrId }, select }))
  if (!found) throw notFound(`no workspace is named ${nameOrId}`)
  return found
}

/**
 * Renames a workspace, whose gateways stay unchanged, or puts it on another plan, effective at once for all of its
 * keys. Omitted fields stay unchanged.
 * @returns whether it exists. @throws ApiError 400 if the plan does not exist, 409 if the name is taken.
 */
export async function changeWorkspace(
  prisma: PrismaClient,
  id: string,
  { name, plan }: { name?: string | undefined; plan?: string | undefined },
): Promise<boolean> {
  if (plan !== undefined) await requirePlan(prisma, plan)
  const data = { ...(name !== undefined && { name }), ...(plan !== undefined && { planName: plan }) }
  return refuseTakenName(name, () =>
    inTransaction(prisma, async (tx) => {
      if (plan !== undefined) await lock(tx, 'modelBudgets', id)
      const { count } = await tx.workspace.updateMany({ where: { id }, data })
      // They were granted within the limits of the former plan.
      if (plan !== undefined) await recallModelLeases.run(tx, [id], null)
      await announceKeys(tx, id)
      return count > 0
    }),
  )
}

/** Renames a workspace at its owner's request. If another workspace has the name, a number is appended. */
export function renameWorkspace(prisma: PrismaClient, id: string, name: string): Promise<void> {
  return withFreeName('workspace', () =>
    prisma.$transaction(async (tx) => {
      await tx.workspace.updateMany({
        where: { id },
        data: { name: await freeName(tx, 'workspace', name, id) },
      })
      await announceKeys(tx, id)
    }),
  )
}

async function refuseTakenName<T>(name: string | undefined, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (isUniqueViolation(error))
      throw new ApiError(409, 'workspace_taken', `name: a workspace named ${name} is there already`)
    throw error
  }
}

async function requirePlan(prisma: PrismaClient, name: string): Promise<void> {
  const plans = await prisma.plan.findMany({ select: { name: true } })
  if (plans.some((plan) => plan.name === name)) return
  throw badRequest(`plan: no plan is named ${name}: there are ${plans.map((plan) => plan.name).join(', ')}`)
}
