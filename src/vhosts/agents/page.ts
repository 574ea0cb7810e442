/**
 * Path routes on an agent's own host. That host also serves the API, so a program's response must not be shown as a
 * page there: browsers are redirected to a host with the same routes and nothing of Berth's.
 */
import type { Request, Response } from 'express'
import type { AgentConnections } from '../../agents/connections.ts'
import { urlOf } from '../../agents/urls.ts'
import type { RouteServices } from '../../http/admission.ts'
import { isUpgrade } from '../../http/upgrade.ts'
import type { AppParts } from '../apps/app-host.ts'
import { passToPort, refuse } from '../apps/exchange.ts'
import { findRoute, type Site, type SiteRoute } from '../apps/site.ts'
import { readVisit } from '../apps/token.ts'
import { isNavigation } from './credential.ts'
import type { Target } from './targets.ts'

/** Paths of the host itself, regardless of any routes. */
const RESERVED = /^\/(?:v0|chat|config)(?:\/|$)/

/**
 * The route that handles a request; undefined if it goes to Berth itself, or nowhere. A route for everything gets the
 * paths that the gateway does not handle, and `/`, where the gateway only reports its health.
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

export interface AgentHostParts extends AppParts {
  services: RouteServices
}

/**
 * Handles a request for a route of an agent: a navigation is redirected to the app host, any other request is forwarded
 * to the port. The caller has checked the permission.
 * @param since {@link AgentConnections.changeCount}, before anything was checked.
 */
export async function answerRoute(
  { agentd, connections, bounds, config, isSecure }: AgentHostParts,
  { agent, route, since }: { agent: Site['agent']; route: SiteRoute; since: number },
  req: Request,
  res: Response,
): Promise<void> {
  if (isNavigation(req))
    return void res
      .status(307)
      .set('Location', `${urlOf(config, `${agent.agentId}.${config.BERTH_APP_DOMAIN}`)}${req.url}`)
      .end()
  for (const name of ['Cache-Control', 'Content-Security-Policy', 'Cross-Origin-Resource-Policy'])
    res.removeHeader(name)
  // Credentials in the header or a cookie may be Berth keys, so they are not forwarded.
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
