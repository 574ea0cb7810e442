/** Custom domains, whatever they lead to: who proves a name first has it. */
import { isUniqueViolation } from '../db/database-errors.ts'
import type { Pool, Queryable } from '../db/pool.ts'
import type { Prisma, PrismaClient } from '../db/prisma.ts'
import { giveUpDomains, noteTakenDomain, takeDueDomains, verifyDomainRow } from '../db/statements/domains.ts'
import { ApiError, forbidden, messages, unavailable } from '../errors.ts'
import type { Bounds } from '../lib/bounds.ts'
import type { Logger } from '../log.ts'
import { DnsAwayError, type Ownership } from './ownership.ts'

/** Domains that one pass of the loop looks at. */
const DUE_AT_ONCE = 20
const GIVEN_UP_AT_ONCE = 500

export const takenDomain = () =>
  new ApiError(409, 'domain_taken', 'This domain is already registered and verified')

/** The row of a custom domain. */
export interface ClaimedDomain {
  id: string
  workspaceId: string
  customDomain: string
  /** The agent whose domain it is; null for a gateway's. */
  agentId: string | null
}

/** The services of the worker's loop. */
export interface RecheckServices {
  pool: Pool
  ownership: Ownership
}

export interface DomainServices extends RecheckServices {
  prisma: PrismaClient
  bounds: Bounds
}

/** @throws ApiError 403 */
export function requirePlan({ plan }: { plan: { customDomains: boolean } }): void {
  if (!plan.customDomains) throw forbidden(messages.domainsPlan, 'plan')
}

/** True for a custom domain that is verified, whatever it leads to. */
export async function isVerified(db: Prisma.TransactionClient, customDomain: string): Promise<boolean> {
  return (await db.domain.count({ where: { customDomain, status: 'verified' } })) > 0
}

/**
 * Looks for the TXT record of a domain that is not verified yet, and writes down that it is there. A domain that was deleted
 * meanwhile stays away.
 * @returns whether the record is there.
 * @throws ApiError 409 when another one has proven it before; 429 beside too many others; 503 when DNS cannot be asked.
 */
export async function lookForProof(
  { pool, prisma, ownership, bounds }: DomainServices,
  domain: ClaimedDomain,
): Promise<boolean> {
  const { customDomain, workspaceId } = domain
  const isProven = await bounds.run('domainChecks', { workspaceId }, () =>
    ownership.isProven(workspaceId, customDomain).catch((error) => {
      throw error instanceof DnsAwayError ? unavailable('DNS did not answer: try again', error) : error
    }),
  )
  if (isProven) await markVerified(pool, domain)
  else if (await isVerified(prisma, customDomain)) throw takenDomain()
  return isProven
}

/**
 * Looks for the TXT record of a domain that was just added. While DNS cannot be asked it is pending.
 * @param remove takes it away where another one was faster.
 * @throws ApiError 409 when another one has it.
 */
export async function lookAtNew(
  services: DomainServices,
  domain: ClaimedDomain,
  remove: () => Promise<void>,
): Promise<void> {
  try {
    await lookForProof(services, domain)
  } catch (error) {
    // DNS is asked again later.
    if (error instanceof ApiError && [429, 503].includes(error.status)) return
    if (error instanceof ApiError && error.status === 409) await remove()
    throw error
  }
}

/**
 * Looks again for the TXT records of pending domains, and gives up those that nobody has proven in two weeks. A verified one is
 * never asked about again.
 */
export async function verifyPendingDomains(
  { pool, ownership }: RecheckServices,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  await giveUpDomains.run(pool, GIVEN_UP_AT_ONCE)
  const { rows: due } = await takeDueDomains.run(pool, DUE_AT_ONCE)
  // Side by side: a name server that does not answer for one domain says nothing of the others.
  await Promise.all(
    due.map(async (domain) => {
      try {
        const isProven = await ownership.isProven(domain.workspaceId, domain.customDomain)
        if (isProven && !signal.aborted) await markVerified(pool, domain)
      } catch (error) {
        // The domain is due again soon.
        if (error instanceof DnsAwayError)
          return log.info({ err: error, domain: domain.customDomain }, 'cannot check a domain')
        if (!(error instanceof ApiError)) throw error
        // Another one has the domain.
        await noteTakenDomain.run(pool, domain.id)
      }
    }),
  )
}

/** Verifies the domain, for one of those who prove it at once; a verified row stays as it is. @throws ApiError 409 */
async function markVerified(db: Queryable, { id, agentId }: ClaimedDomain): Promise<void> {
  try {
    await verifyDomainRow.run(db, id, agentId)
  } catch (error) {
    throw isUniqueViolation(error, 'domain_verified') ? takenDomain() : error
  }
}
