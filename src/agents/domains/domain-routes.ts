import { z } from 'zod'
import { checkCustomDomain, checkSubdomain, orFault } from '../../domains/names.ts'
import { requirePlan } from '../../domains/verification.ts'
import { badRequest } from '../../errors.ts'
import { like } from '../../http/fields.ts'
import type { Route } from '../../http/route.ts'
import { pathId } from '../../http/shapes.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
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

const agentRoute = agentRoutesOf('Domains and routes')
const DOMAINS = '/v0/agents/:agentId/domains'
const DOMAIN = `${DOMAINS}/:domainId`
const params = z.object({ agentId: z.string(), domainId: pathId })

/** Names that lead to an agent's ports (contract 4.3). */
export function domainRoutes(services: AgentServices): Route[] {
  const { prisma, config, ownership } = services
  // The bare domain may have no address, because the wildcard is below it.
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
      summary: 'List the domains of an agent',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: {
        description: 'The domains, oldest first.',
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
      summary: 'Add a domain to an agent',
      description:
        'Exactly one of `subdomain` and `customDomain`, at most 5 per agent. All paths, and WebSockets, go to ' +
        '`targetPort`.\n\nA subdomain works at once; 409 if it is taken, or belonged to another workspace. A custom ' +
        'domain is `pending_ownership` until Berth sees its TXT record (`txtName`, `txtValue`): at once if it ' +
        'exists, through `verifyDomain`, or in automatic checks at growing intervals for two weeks. The first to ' +
        'prove a name gets it: 409 for others. A name must not contain or look like the service’s names, or be one ' +
        'of its hosts. The free plan has no custom domains.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: newDomain,
      success: { description: 'The domain.', body: oneDomain },
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
      summary: 'Get the TXT record that proves a custom domain',
      description:
        'The same for all agents of the workspace, at any time: you can set it before you add the domain.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: challengeBody,
      success: { description: 'The records to set.', body: challengeRecord },
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
      summary: 'Change where a domain leads',
      description:
        'The name stays: delete the domain and add another. Connections to the old target are closed.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params,
      body: domainChange,
      success: { description: 'The domain.', body: oneDomain },
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
      summary: 'Delete a domain',
      description:
        'Closes connections through it. A subdomain stays with the workspace, whose agents may use it again; a custom domain becomes available to others.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params,
      success: {
        description: 'Deleted.',
        body: z.object({ success: z.literal(true), message: like('Domain deleted') }),
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
      summary: 'Check the TXT record of a custom domain now',
      description:
        '409 if somebody else has proven it before; 503 if no DNS server responds, in which case it stays pending.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      params,
      success: { description: 'The domain, verified or still pending.', body: verification },
      errors: [409],
      async handle({ agent, params }) {
        const before = await readDomain(prisma, agent, params.domainId)
        const domain = toRecord(await verifyDomain(services, agent, before))
        const verified = domain.status === 'verified'
        const message = verified
          ? 'The domain is verified'
          : `DNS does not show a TXT record ${domain.txtName} with this value yet`
        return { body: { success: true, verified, message, domain } }
      },
    }),
  ]
}
