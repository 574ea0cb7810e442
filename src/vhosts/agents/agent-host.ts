/**
 * Handles all requests to `<agentId>.<BERTH_AGENT_DOMAIN>`: API routes, chat and webhooks over HTTP, WebSockets for
 * chat and for the log, and the agent's path routes.
 */
import type { Request, RequestHandler } from 'express'
import type { Agent } from '../../agents/agent.ts'
import { type Connection, holdSocket } from '../../agents/connections.ts'
import { messages, notFound, unauthorized } from '../../errors.ts'
import { authenticateRequest } from '../../http/admission.ts'
import { letPagesRead } from '../../http/methods.ts'
import { isUpgrade } from '../../http/upgrade.ts'
import { AGENT_ID } from '../../lib/agent-id.ts'
import { requestHost } from '../hosts.ts'
import {
  isNavigation,
  readCredential,
  refuseEmbedded,
  refuseForeign,
  showWithCookie,
  splitToken,
} from './credential.ts'
import { chatWithStranger } from './first-message-auth.ts'
import { type Admitted, askGateway, UNTRUSTED_ANSWER } from './gateway-http.ts'
import { type AgentHostParts, answerRoute, findPage } from './page.ts'
import { LogStream, openChat } from './sockets.ts'
import { findSocketTarget, findTarget, gatewayMethods, type Target } from './targets.ts'

/** Chatting makes the agent act, so it needs the write scope. */
const SCOPE = 'org:agents:write'

/** Handles every request for a host that is or could be an agent's; API requests continue to the API's routes. */
export function agentHandler(parts: AgentHostParts): RequestHandler {
  return async (req, res, next) => {
    res.set(UNTRUSTED_ANSWER)
    const agentId = requestHost(req).slice(0, -parts.config.BERTH_AGENT_DOMAIN.length - 1)
    const since = parts.connections.changeCount
    const site = AGENT_ID.test(agentId) ? await parts.sites.ofAgent(agentId) : undefined
    const { addresses, bounds } = parts.services
    if (!site) {
      addresses.countRequest(req)
      throw notFound(messages.noAgent)
    }
    const { url } = splitToken(req.url)
    const target = targetOf(req, url, site.agent)
    const route = findPage(site.routes, req, pathOf(url), target)
    // A navigation is only redirected to the app host, which checks the token.
    const needsNoToken = route && (!route.protected || isNavigation(req))
    if (needsNoToken) addresses.countRequest(req)
    if (needsNoToken) return answerRoute(parts, { agent: site.agent, route, since }, req, res)
    // The agent's own programs set their own headers.
    const methods = route || isUpgrade(req) ? [] : gatewayMethods(pathOf(url))
    if (methods.length > 0) letPagesRead(req, res, methods)
    if (methods.length > 0 && req.method === 'OPTIONS') {
      addresses.countRequest(req)
      return void res.status(204).end()
    }
    const credential = readCredential(req, site.agent.gatewayToken)
    if (!credential && isUpgrade(req) && target?.kind === 'gateway')
      return chatWithStranger(parts, { agent: site.agent, since, req, res })
    if (credential) refuseForeign(req, credential)
    if (credential && route) refuseEmbedded(req, credential)
    if (target?.kind === 'foreign') throw unauthorized(messages.badToken, 'bad_token')
    // From here on, the token is only in a header.
    delete req.headers.cookie
    if (credential) req.headers.authorization = credential.authorization
    const keepsToken = credential?.by === 'query' && isNavigation(req)
    req.url = target?.kind === 'api' ? target.path + queryOf(url) : url
    if (target?.kind === 'api' && !keepsToken) return next()

    const principal = await authenticateRequest(parts.services, req, res, SCOPE)
    const agent = await parts.access.authorize(principal, agentId, ['gateway', 'platform'])
    if (route) return answerRoute(parts, { agent, route, since }, req, res)
    if (keepsToken) {
      await parts.services.audit.signIn(req, res, principal, `agents/${agentId}`)
      return showWithCookie(req, res, { ...agent, url, isSecure: parts.isSecure })
    }
    if (target?.kind !== 'gateway' && target?.kind !== 'logs')
      throw notFound(`No such route: ${req.method} ${req.path}`)
    await bounds.run(isUpgrade(req) ? 'agentSockets' : 'agentRequests', principal, () =>
      answer(parts, { agent, principal, since, target, req, res }),
    )
  }
}

interface AdmittedToHost extends Admitted {
  target: Extract<Target, { kind: 'gateway' | 'logs' }>
}

function answer(parts: AgentHostParts, admitted: AdmittedToHost): Promise<void> {
  const { agentd, connections } = parts
  const { agent, principal, since, target, req, res } = admitted
  const request = { agentd, agent, req, res }
  const track = (end: Connection['end']) => connections.add(agent, principal, since, end)
  if (target.kind === 'logs')
    return holdSocket(res, track, (signal) => LogStream.open({ ...request, signal }))
  if (isUpgrade(req))
    return holdSocket(res, track, async (signal) => {
      const sockets = await openChat({ ...request, signal })
      sockets?.passUp()
      return sockets
    })
  return askGateway(parts, admitted, target.path + queryOf(req.url))
}

function targetOf(req: Request, url: string, { agentId, protocols }: Agent): Target | undefined {
  const path = pathOf(url)
  const method = req.method === 'OPTIONS' ? (req.get('access-control-request-method') ?? 'GET') : req.method
  return isUpgrade(req) ? findSocketTarget(path, agentId) : findTarget(method, path, agentId, protocols)
}

const pathOf = (url: string): string => url.split('?')[0] ?? ''
const queryOf = (url: string): string => url.slice(pathOf(url).length)
