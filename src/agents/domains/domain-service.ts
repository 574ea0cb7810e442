/** Names that lead to an agent's ports: adding and proving them (contract 3 and 7.1). */
import { uuidv7 } from 'uuidv7'
import type { Pool } from '../../db/pool.ts'
import { inTransaction, type PrismaClient } from '../../db/prisma.ts'
import { ApiError, badRequest, unavailable } from '../../errors.ts'
import type { Principal } from '../../http/principal.ts'
import type { Bounds } from '../../lib/bounds.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import type { Logger } from '../../log.ts'
import { type Agent, lockAgent } from '../agent.ts'
import { MAX_DOMAINS, type NewDomain } from './domain-schema.ts'
import {
  type Domain,
  deleteDomain,
  insertDomain,
  isVerified,
  listDomains,
  markVerified,
  readDomain,
  takeDue,
  takenDomain,
} from './domain-store.ts'
import { DnsAwayError, type Ownership } from './ownership.ts'

/** Domains that one pass of the loop looks at. */
const DUE_AT_ONCE = 20

/** The services of the worker's loop. */
export interface RecheckServices {
  pool: Pool
  ownership: Ownership
}

export interface DomainServices extends RecheckServices {
  prisma: PrismaClient
  bounds: Bounds
}

/**
 * Adds a domain to an agent. A subdomain is there at once; so is a custom domain whose TXT record is seen, and
 * otherwise it is pending, also where DNS cannot be asked.
 * @param input its name as it is stored.
 * @throws ApiError 400 for the sixth; 409 for a name that is taken; 404 when the agent was deleted.
 */
export async function addDomain(
  services: DomainServices,
  agent: Agent,
  { userId }: Pick<Principal, 'userId'>,
  input: Pick<NewDomain, 'targetPort' | 'protected'> & {
    subdomain: string | null
    customDomain: string | null
  },
): Promise<Domain> {
  const { prisma } = services
  const { subdomain, customDomain } = input
  const id = uuidv7()
  await inTransaction(prisma, async (tx) => {
    // Two that are added at once would each not see the other.
    await lockAgent(tx, agent)
    const before = await listDomains(tx, agent)
    if (customDomain !== null && before.some((domain) => domain.customDomain === customDomain))
      throw new ApiError(409, 'domain_taken', 'The agent has this domain already')
    if (customDomain !== null && (await isVerified(tx, customDomain))) throw takenDomain()
    if (before.length >= MAX_DOMAINS) throw badRequest(`An agent can have at most ${MAX_DOMAINS} domains`)
    const { workspaceId } = agent
    const status = customDomain === null ? 'verified' : 'pending_ownership'
    await insertDomain(tx, agent, { ...input, id, workspaceId, userId, subdomain, customDomain, status })
    crashPoint('before-commit')
  })
  crashPoint('after-commit')
  const added = await readDomain(prisma, agent, id)
  if (added.customDomain === null) return added
  return verifyDomain(services, agent, added).catch(async (error) => {
    // The domain is added; DNS is asked again later.
    if (error instanceof ApiError && [429, 503].includes(error.status)) return added
    // Another agent was faster.
    if (error instanceof ApiError && error.status === 409) await deleteDomain(prisma, agent, id)
    throw error
  })
}

/**
 * Looks for the TXT record of a domain that is not verified yet.
 * @returns the domain, verified or still pending.
 * @throws ApiError 409 when another one has proven it before; 429 beside too many others; 503 when DNS cannot be asked; 404 when it is gone.
 */
export async function verifyDomain(
  { pool, prisma, ownership, bounds }: DomainServices,
  agent: Pick<Agent, 'id'>,
  domain: Domain,
): Promise<Domain> {
  const { customDomain, status, workspaceId } = domain
  if (customDomain === null || status === 'verified') return domain
  const isProven = await bounds.run('domainChecks', { workspaceId }, () =>
    ownership.isProven(workspaceId, customDomain).catch((error) => {
      throw error instanceof DnsAwayError ? unavailable('DNS did not answer: try again', error) : error
    }),
  )
  if (isProven) await markVerified(pool, domain)
  else if (await isVerified(prisma, customDomain)) throw takenDomain()
  else return domain
  return readDomain(prisma, agent, domain.id)
}

/** Looks again for the TXT records of pending domains. A verified one is never asked about again. */
export async function verifyPendingDomains(
  { pool, ownership }: RecheckServices,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const due = await takeDue(pool, DUE_AT_ONCE)
  // Side by side: a name server that does not answer for one domain says nothing of the others.
  await Promise.all(
    due.map(async (domain) => {
      try {
        const isProven = await ownership.isProven(domain.workspaceId, domain.customDomain ?? '')
        if (isProven && !signal.aborted) await markVerified(pool, domain)
      } catch (error) {
        // The domain is due again soon.
        if (error instanceof DnsAwayError)
          return log.info({ err: error, domain: domain.customDomain }, 'cannot check a domain')
        // Another agent has the domain, or it is gone.
        if (!(error instanceof ApiError)) throw error
      }
    }),
  )
}
