/** Custom domains of agents and gateways: the first to prove a name gets it. */
import { isUniqueViolation } from '../db/database-errors.ts'
import type { Pool, Queryable } from '../db/pool.ts'
import type { Prisma, PrismaClient } from '../db/prisma.ts'
import { claimDueDomains, expireDomains, noteTakenDomain, verifyDomainRow } from '../db/statements/domains.ts'
import { ApiError, forbidden, messages, unavailable } from '../errors.ts'
import type { Bounds } from '../lib/bounds.ts'
import type { Logger } from '../log.ts'
import { DnsAwayError, type Ownership } from './ownership.ts'

/** Domains that one pass of the loop checks. */
const DUE_AT_ONCE = 20
const GIVEN_UP_AT_ONCE = 500

export const takenDomain = () =>
  new ApiError(409, 'domain_taken', 'This domain is already registered and verified')

/** The row of a custom domain. */
export interface ClaimedDomain {
  id: string
  workspaceId: string
  customDomain: string
  /** The agent that the domain belongs to; null for a gateway's. */
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

/** True if a custom domain is verified, for an agent or a gateway. */
export async function isVerified(db: Prisma.TransactionClient, customDomain: string): Promise<boolean> {
  return (await db.domain.count({ where: { customDomain, status: 'verified' } })) > 0
}

/**
 * Checks the TXT record of an unverified domain, and records that it exists. A domain that was deleted during the check
 * stays deleted.
 * @returns whether the record exists.
 * @throws ApiError 409 if another claim has proven the domain before; 429 if too many checks are running; 503 if DNS
 *   cannot be reached.
 */
export async function checkTxtRecord(
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
 * Checks the TXT record of a newly added domain. While DNS cannot be reached, the domain stays pending.
 * @param remove deletes the domain if another claim was faster.
 * @throws ApiError 409 if another claim has the domain.
 */
export async function lookAtNew(
  services: DomainServices,
  domain: ClaimedDomain,
  remove: () => Promise<void>,
): Promise<void> {
  try {
    await checkTxtRecord(services, domain)
  } catch (error) {
    // DNS is checked again later.
    if (error instanceof ApiError && [429, 503].includes(error.status)) return
    if (error instanceof ApiError && error.status === 409) await remove()
    throw error
  }
}

/**
 * Checks the TXT records of pending domains again, and expires domains that nobody has proven in two weeks. A verified
 * domain is never checked again.
 */
export async function verifyPendingDomains(
  { pool, ownership }: RecheckServices,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  await expireDomains.run(pool, GIVEN_UP_AT_ONCE)
  const { rows: due } = await claimDueDomains.run(pool, DUE_AT_ONCE)
  // In parallel: a name server that fails for one domain says nothing about the others.
  await Promise.all(
    due.map(async (domain) => {
      try {
        const isProven = await ownership.isProven(domain.workspaceId, domain.customDomain)
        if (isProven && !signal.aborted) await markVerified(pool, domain)
      } catch (error) {
        // The domain will be due again soon.
        if (error instanceof DnsAwayError)
          return log.info({ err: error, domain: domain.customDomain }, 'cannot check a domain')
        if (!(error instanceof ApiError)) throw error
        // Another claim has the domain.
        await noteTakenDomain.run(pool, domain.id)
      }
    }),
  )
}

/**
 * Verifies the domain; if several claims prove it at the same time, one of them wins. A row that is verified already
 * stays verified. @throws ApiError 409
 */
async function markVerified(db: Queryable, { id, agentId }: ClaimedDomain): Promise<void> {
  try {
    await verifyDomainRow.run(db, id, agentId)
  } catch (error) {
    throw isUniqueViolation(error, 'domain_verified') ? takenDomain() : error
  }
}
