/** Adds and verifies names that lead to an agent's ports (contract 3 and 7.1). */
import { uuidv7 } from 'uuidv7'
import { inTransaction } from '../../db/prisma.ts'
import {
  checkTxtRecord,
  type DomainServices,
  isVerified,
  lookAtNew,
  takenDomain,
} from '../../domains/verification.ts'
import { ApiError, badRequest } from '../../errors.ts'
import type { Principal } from '../../http/principal.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { type Agent, lockAgent } from '../agent.ts'
import { MAX_DOMAINS, type NewDomain } from './domain-schema.ts'
import { type Domain, deleteDomain, insertDomain, listDomains, readDomain } from './domain-store.ts'

/**
 * Adds a domain to an agent. A subdomain works at once, and so does a custom domain whose TXT record is found.
 * Otherwise it is pending, even if DNS is unavailable.
 * @param input its name as stored.
 * @throws ApiError 400 above {@link MAX_DOMAINS} domains; 409 for a taken name; 404 if the agent was deleted.
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
    // Without the lock, two concurrent additions would not see each other.
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
  if (customDomain === null) return added
  await lookAtNew(services, { ...added, customDomain }, () => deleteDomain(prisma, agent, id))
  return readDomain(prisma, agent, id)
}

/**
 * Checks the TXT record of a domain that is not verified yet.
 * @returns the domain, verified or still pending.
 * @throws ApiError 409 if somebody else has proven it before; 429 if too many checks run at once; 503 if DNS is
 *   unavailable; 404 if it is gone.
 */
export async function verifyDomain(
  services: DomainServices,
  agent: Pick<Agent, 'id'>,
  domain: Domain,
): Promise<Domain> {
  const { customDomain, status } = domain
  if (customDomain === null || status === 'verified') return domain
  const isProven = await checkTxtRecord(services, { ...domain, customDomain })
  return isProven ? readDomain(services.prisma, agent, domain.id) : domain
}
