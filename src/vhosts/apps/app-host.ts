/**
 * Hosts of agents' own pages: `<subdomain>.<BERTH_APP_DOMAIN>`, custom domains, and `<agentId>.<BERTH_APP_DOMAIN>`,
 * which has the agent's path routes. Berth serves nothing else there, so pages are not restricted.
 */
import type { Request, RequestHandler, Response } from 'express'
import { findAgent } from '../../agents/agent.ts'
import type { AgentServices } from '../../agents/agent-route.ts'
import { mayBeCustom } from '../../domains/names.ts'
import { notFound, unauthorized } from '../../errors.ts'
import { clientAddress } from '../../lib/net/ip-address.ts'
import { isNavigation, refuseEmbedded, refuseForeign, showWithCookie } from '../agents/credential.ts'
import { orNothing, requestHost } from '../hosts.ts'
import { passToPort, refuse } from './exchange.ts'
import { findRoute, type Site, type SiteDirectory } from './site.ts'
import { readVisit } from './token.ts'

export interface AppParts extends AgentServices {
  /** Whether browsers use https, whatever protocol the last proxy uses. */
  isSecure: boolean
  sites: SiteDirectory
}

/** Handles every request for a host below BERTH_APP_DOMAIN. */
export function appHandler(parts: AppParts): RequestHandler {
  return async (req, res) => {
    const label = requestHost(req).slice(0, -parts.config.BERTH_APP_DOMAIN.length - 1)
    const since = parts.connections.changeCount
    try {
      parts.addresses.countRequest(req)
      const site = label.includes('.') ? undefined : await parts.sites.find(label)
      if (!site) throw notFound('There is nothing at this host')
      await visit(parts, site, since, req, res)
    } catch (error) {
      refuse(error, req, res)
    }
  }
}

/**
 * Handles requests for custom domains; those for any other host continue to the API, which has no fixed host name
 * unless one is set.
 */
export function customDomainHandler(parts: AppParts): RequestHandler {
  return async (req, res, next) => {
    const since = parts.connections.changeCount
    const host = requestHost(req)
    const site = mayBeCustom(host)
      ? await orNothing(parts.sites.findCustom(host, clientAddress(req.ip)))
      : undefined
    if (!site) return next()
    try {
      parts.addresses.countRequest(req)
      await visit(parts, site, since, req, res)
    } catch (error) {
      refuse(error, req, res)
    }
  }
}

async function visit(
  { pool, agentd, connections, bounds, ...parts }: AppParts,
  site: Site,
  since: number,
  req: Request,
  res: Response,
): Promise<void> {
  let { agent } = site
  let read = readVisit(req, agent.gatewayToken)
  const found = findRoute(site.routes, read.url)
  if (!found) throw notFound('There is nothing at this path')
  const { route } = found
  if (route.protected) {
    // The cached row of an agent may be older than its token.
    const now = await findAgent(pool, agent.agentId)
    if (!now) throw notFound('There is nothing at this host')
    agent = now
    read = readVisit(req, agent.gatewayToken)
    if (!read.by) throw unauthorized('This page takes the gateway token of its agent: ?token=…', 'bad_token')
    refuseForeign(req, { by: read.by, authorization: '' })
    refuseEmbedded(req, { by: read.by })
  }
  // Also for an unprotected page: its scripts, and any site it links to, would see the URL.
  if (read.by === 'query' && isNavigation(req))
    return showWithCookie(req, res, { ...agent, url: read.url, isSecure: parts.isSecure })
  const prefix = route.pathPrefix === '/' ? undefined : route.pathPrefix
  const { authorization, cookie } = read
  const isSecure = parts.isSecure || req.secure
  const path = findRoute([route], read.url)?.path ?? '/'
  await passToPort({
    agentd,
    connections,
    bounds,
    agent,
    binding: route,
    since,
    path,
    visitor: { authorization, cookie, prefix, isSecure },
    where: 'own',
    req,
    res,
  })
}
