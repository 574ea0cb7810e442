/** The rows of domains. Each change notifies, in its transaction, the web processes that route by them. */
import { isUniqueViolation } from '../../db/database-errors.ts'
import type { Prisma, PrismaClient } from '../../db/prisma.ts'
import { ApiError, badRequest, notFound } from '../../errors.ts'
import { type Agent, notifyAgent } from '../agent.ts'
import { type DomainChange, MAX_FORMER_SUBDOMAINS } from './domain-schema.ts'

/** A domain of an agent. */
export interface Domain {
  id: string
  agentId: string
  workspaceId: string
  userId: string
  subdomain: string | null
  customDomain: string | null
  targetPort: number
  protected: boolean
  status: 'pending_ownership' | 'verified'
  createdAt: string
  updatedAt: string
}

const noDomain = () => notFound('The agent has no such domain')
const takenSubdomain = () => new ApiError(409, 'subdomain_taken', 'This subdomain is taken')

const ofAgent = { include: { agent: { select: { agentId: true } } }, orderBy: { id: 'asc' } } as const

/** The domains of an agent, oldest first. */
export async function listDomains(db: Prisma.TransactionClient, agent: Pick<Agent, 'id'>): Promise<Domain[]> {
  return (await db.domain.findMany({ where: { agentId: agent.id }, ...ofAgent })).map(toDomain)
}

/** @throws ApiError 404 if the domain does not belong to this agent. */
export async function readDomain(
  prisma: PrismaClient,
  agent: Pick<Agent, 'id'>,
  id: string,
): Promise<Domain> {
  const found = await prisma.domain.findFirst({ where: { id, agentId: agent.id }, ...ofAgent })
  if (!found) throw noDomain()
  return toDomain(found)
}

const toDomain = ({ agent, gatewayId, ...domain }: Prisma.DomainGetPayload<typeof ofAgent>): Domain => ({
  ...domain,
  // An agent's domain always has both.
  agentId: agent?.agentId ?? '',
  targetPort: domain.targetPort ?? 0,
  status: domain.status === 'verified' ? 'verified' : 'pending_ownership',
  createdAt: domain.createdAt.toISOString(),
  updatedAt: domain.updatedAt.toISOString(),
})

/**
 * Must run in a transaction. @throws ApiError 409 for a taken subdomain, 400 for a new one if the workspace has too
 * many former ones.
 */
export async function insertDomain(
  tx: Prisma.TransactionClient,
  agent: Pick<Agent, 'id' | 'agentId'>,
  domain: Omit<Domain, 'agentId' | 'createdAt' | 'updatedAt'>,
): Promise<void> {
  if (domain.subdomain !== null) await holdSubdomain(tx, domain.subdomain, domain.workspaceId)
  const verifiedAt = domain.status === 'verified' ? new Date() : null
  try {
    await tx.domain.create({ data: { ...domain, agentId: agent.id, verifiedAt } })
  } catch (error) {
    throw isUniqueViolation(error, 'domain_subdomain') ? takenSubdomain() : error
  }
  await notifyAgent(tx, agent)
}

/**
 * Assigns a subdomain to its workspace for good. A previous holder may have left service workers in browsers, which
 * would read the next holder's requests, including tokens.
 */
async function holdSubdomain(
  tx: Prisma.TransactionClient,
  subdomain: string,
  workspaceId: string,
): Promise<void> {
  const { count: isNew } = await tx.subdomainHolder.createMany({
    data: { subdomain, workspaceId },
    skipDuplicates: true,
  })
  if (!isNew) {
    const isOwn = await tx.subdomainHolder.count({ where: { subdomain, workspaceId } })
    if (!isOwn) throw takenSubdomain()
    return
  }
  const [held] = await tx.$queryRaw<{ former: number }[]>`
    SELECT count(*)::int AS former FROM subdomain_holder AS held
    WHERE workspace_id = ${workspaceId}::uuid AND subdomain <> ${subdomain}
      AND NOT EXISTS (SELECT FROM domain WHERE subdomain = held.subdomain)`
  if ((held?.former ?? 0) >= MAX_FORMER_SUBDOMAINS)
    throw badRequest(`subdomain: this workspace has ${MAX_FORMER_SUBDOMAINS} unused names: take one of those`)
}

/** Changes the given fields. @throws ApiError 404 */
export async function updateDomain(
  prisma: PrismaClient,
  agent: Pick<Agent, 'id' | 'agentId'>,
  id: string,
  { targetPort, protected: isProtected }: DomainChange,
): Promise<void> {
  const data = {
    ...(targetPort !== undefined && { targetPort }),
    ...(isProtected !== undefined && { protected: isProtected }),
    updatedAt: new Date(),
  }
  const [{ count }] = await prisma.$transaction([
    prisma.domain.updateMany({ where: { id, agentId: agent.id }, data }),
    notifyAgent(prisma, agent),
  ])
  if (count === 0) throw noDomain()
}

/** @throws ApiError 404 */
export async function deleteDomain(
  prisma: PrismaClient,
  agent: Pick<Agent, 'id' | 'agentId'>,
  id: string,
): Promise<void> {
  const [{ count }] = await prisma.$transaction([
    prisma.domain.deleteMany({ where: { id, agentId: agent.id } }),
    notifyAgent(prisma, agent),
  ])
  if (count === 0) throw noDomain()
}
