/**
 * Path routes on an agent's own host. That host answers the API as well, so what a program sends
 * there is no page: browsers are led to a host that has the same routes and nothing of Berth's.
 */
import type { Request, Response } from 'express'
import type { AgentdClient } from '../../agents/agentd-client.ts'
import type { AgentConnections } from '../../agents/connections.ts'
import type { RouteServices } from '../../http/route.ts'
import { isUpgrade } from '../../http/upgrade.ts'
import { passToPort, refuse } from '../apps/exchange.ts'
import { findRoute, type Site, type SiteRoute } from '../apps/site.ts'
import { readVisit } from '../apps/token.ts'
import { isNavigation } from './credential.ts'
import type { Target } from './targets.ts'

/** Paths of the host itself, whatever routes there are. */
const RESERVED = /^\/(?:v0|chat|config)(?:\/|$)/

/**
 * The route that a request goes by; undefined where it goes to Berth itself, or nowhere. A route to everything takes
 * what the gateway does not answer, and `/`, on which the gateway only tells that it is there.
 */
export function findPage(
  routes: SiteRoute[],
  req: Request,
  path: string,
  target: Target | undefined,
): SiteRoute | undefined {
  if (RESERVED.test(path) || (target && target.kind !== 'gateway')) return undefined
  // An upgrade to the gateway is chat.
  if (target && isUpgrade(req)) return undefined
  const route = findRoute(routes, path)?.route
  return target && path !== '/' && route?.pathPrefix === '/' ? undefined : route
}

export interface PageParts {
  /** Browsers come by https, whatever the last proxy speaks. */
  isSecure: boolean
  agentd: AgentdClient
  services: RouteServices
  connections: AgentConnections
  /** URL at which the path routes of an agent are shown as pages, without a slash at the end. */
  pagesUrl(agentId: string): string
}

/**
 * Answers a request for a route of an agent: a navigation is redirected to the app host, any other request goes on to
 * the port. The caller has checked who may see it.
 * @param since {@link AgentConnections.changeCount}, before anything was checked.
 */
export async function answerRoute(
  { agentd, connections, services: { bounds }, pagesUrl, isSecure }: PageParts,
  { agent, route, since }: { agent: Site['agent']; route: SiteRoute; since: number },
  req: Request,
  res: Response,
): Promise<void> {
  if (isNavigation(req))
    return void res
      .status(307)
      .set('Location', `${pagesUrl(agent.agentId)}${req.url}`)
      .end()
  for (const name of ['Cache-Control', 'Content-Security-Policy', 'Cross-Origin-Resource-Policy'])
    res.removeHeader(name)
  // Whatever is in the header or in a cookie may be a key of Berth's.
  const { url } = readVisit(req, agent.gatewayToken)
  const prefix = route.pathPrefix === '/' ? undefined : route.pathPrefix
  const visitor = { authorization: undefined, cookie: undefined, prefix, isSecure: isSecure || req.secure }
  const path = findRoute([route], url)?.path ?? '/'
  const page = {
    agentd,
    connections,
    bounds,
    agent,
    binding: route,
    since,
    path,
    visitor,
    where: 'agent',
    req,
    res,
  } as const
  await passToPort(page).catch((error) => refuse(error, req, res))
}
