import { z } from 'zod'
import { checkCustomDomain, checkSubdomain, orFault } from '../../domains/names.ts'
import { Ownership } from '../../domains/ownership.ts'
import { requirePlan } from '../../domains/verification.ts'
import { badRequest } from '../../errors.ts'
import type { Route } from '../../http/route.ts'
import { pathId } from '../../http/shapes.ts'
import { type AgentServices, agentRoute } from '../agent-route.ts'
import { urlOf } from '../urls.ts'
import {
  challengeBody,
  challengeRecord,
  type DomainRecord,
  domainChange,
  domainRecord,
  newDomain,
  oneDomain,
  verification,
} from './domain-schema.ts'
import { addDomain, verifyDomain } from './domain-service.ts'
import { type Domain, deleteDomain, listDomains, readDomain, updateDomain } from './domain-store.ts'

const TAG = 'Domains and routes'
const DOMAINS = '/v0/agents/:agentId/domains'
const DOMAIN = `${DOMAINS}/:domainId`
const params = z.object({ agentId: z.string(), domainId: pathId })

/** Names that lead to an agent's ports (contract 4.3). */
export function domainRoutes({ pool, prisma, config, bounds }: AgentServices): Route[] {
  const ownership = new Ownership(config)
  const services = { pool, prisma, ownership, bounds }
  // The bare domain may have no address: below it is a wildcard.
  const cnameTarget = (agentId: string) => `${agentId}.${config.BERTH_APP_DOMAIN}`

  function toRecord(domain: Domain): DomainRecord {
    const { workspaceId, subdomain, customDomain, agentId, status } = domain
    const isPending = customDomain !== null && status !== 'verified'
    const challenge = isPending ? ownership.challenge(workspaceId, customDomain) : undefined
    return {
      id: domain.id,
      agentId,
      userId: domain.userId,
      subdomain,
      customDomain,
      targetPort: domain.targetPort,
      protected: domain.protected,
      status,
      url: urlOf(config, customDomain ?? `${subdomain}.${config.BERTH_APP_DOMAIN}`),
      cnameTarget: customDomain === null ? null : cnameTarget(agentId),
      txtName: challenge?.name ?? null,
      txtValue: challenge?.value ?? null,
      createdAt: domain.createdAt,
      updatedAt: domain.updatedAt,
    }
  }

  return [
    agentRoute({
      method: 'get',
      path: DOMAINS,
      id: 'listDomains',
      tag: TAG,
      summary: 'List the domains of an agent',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: {
        status: 200,
        description: 'The domains, the oldest first.',
        body: z.object({ domains: z.array(domainRecord) }),
      },
      async handle({ agent }) {
        return { body: { domains: (await listDomains(prisma, agent)).map(toRecord) } }
      },
    }),
    agentRoute({
      method: 'post',
      path: DOMAINS,
      id: 'addDomain',
      tag: TAG,
      summary: 'Add a domain to an agent',
      description:
        'Exactly one of `subdomain` and `customDomain`, at most 5 for each agent. Whole paths go to `targetPort`, ' +
        'WebSockets as well.\n\nA subdomain is there at once; 409 when it is taken, or was by another workspace. A custom domain is ' +
        '`pending_ownership` until its TXT record (`txtName`, `txtValue`) is seen: at once when it is there already, ' +
        'otherwise with `verifyDomain`, or by itself within a while, which gets longer, for two weeks. Who proves a ' +
        'name first has it: 409 for it from then on. A name must not contain or look like the names of the service, nor be one of ' +
        'its hosts. Custom domains are not part of the free plan.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: newDomain,
      success: { status: 200, description: 'The domain.', body: oneDomain },
      errors: [409],
      async handle({ principal, agent, body }) {
        const { subdomain = null, customDomain = null } = body
        if ((subdomain === null) === (customDomain === null))
          throw badRequest('subdomain, customDomain: exactly one of them is required')
        const name =
          customDomain === null
            ? { subdomain: orFault('subdomain', checkSubdomain(subdomain ?? '')), customDomain }
            : { subdomain, customDomain: orFault('customDomain', checkCustomDomain(customDomain, config)) }
        if (customDomain !== null) requirePlan(principal)
        const domain = await addDomain(services, agent, principal, { ...body, ...name })
        return { body: { success: true, domain: toRecord(domain) } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${DOMAINS}/challenge`,
      id: 'getDomainChallenge',
      tag: TAG,
      summary: 'Get the TXT record that proves a custom domain',
      description:
        'The same for all agents of the workspace, and at any time: it can be set before the domain is added.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: challengeBody,
      success: { status: 200, description: 'The records to set.', body: challengeRecord },
      async handle({ principal, agent, body }) {
        const customDomain = orFault('customDomain', checkCustomDomain(body.customDomain, config))
        requirePlan(principal)
        const challenge = ownership.challenge(agent.workspaceId, customDomain)
        const record = { customDomain, type: 'TXT', ...challenge, cnameTarget: cnameTarget(agent.agentId) }
        return { body: { success: true, ...record } }
      },
    }),
    agentRoute({
      method: 'put',
      path: DOMAIN,
      id: 'updateDomain',
      tag: TAG,
      summary: 'Change where a domain leads',
      description: 'Its name stays: delete it and add another. What is open by the old way is closed.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params,
      body: domainChange,
      success: { status: 200, description: 'The domain.', body: oneDomain },
      async handle({ agent, params, body }) {
        await updateDomain(prisma, agent, params.domainId, body)
        const domain = await readDomain(prisma, agent, params.domainId)
        return { body: { success: true, domain: toRecord(domain) } }
      },
    }),
    agentRoute({
      method: 'delete',
      path: DOMAIN,
      id: 'deleteDomain',
      tag: TAG,
      summary: 'Delete a domain',
      description:
        'What is open by it is closed. A subdomain stays the workspace’s, whose agents may take it again; a custom domain is free for others.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params,
      success: {
        status: 200,
        description: 'Deleted.',
        body: z.object({ success: z.literal(true), message: z.string() }),
      },
      async handle({ agent, params }) {
        await deleteDomain(prisma, agent, params.domainId)
        return { body: { success: true, message: 'Domain deleted' } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${DOMAIN}/verify`,
      id: 'verifyDomain',
      tag: TAG,
      summary: 'Look for the TXT record of a custom domain now',
      description:
        '409 when another one has proven it before, 503 when no DNS server answers; then it stays pending.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params,
      success: { status: 200, description: 'The domain, verified or still pending.', body: verification },
      errors: [409],
      async handle({ agent, params }) {
        const before = await readDomain(prisma, agent, params.domainId)
        const domain = toRecord(await verifyDomain(services, agent, before))
        const verified = domain.status === 'verified'
        const message = verified
          ? 'The domain is verified'
          : `DNS shows no TXT record ${domain.txtName} with this value yet`
        return { body: { success: true, verified, message, domain } }
      },
    }),
  ]
}
