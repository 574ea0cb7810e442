/** Traffic by host name: hosts of gateways, agents and pages are none of the API's, and its host serves none of theirs. */
import type { Request, RequestHandler } from 'express'
import { badRequest } from '../errors.ts'

/** What answers for every host below a domain. */
export interface Realm {
  domain: string
  handler: RequestHandler
}

/**
 * Hands requests for any host below a realm's domain to its handler, whether there is such a host or not. Where one
 * domain is below another, the nearer counts.
 * @param publicUrl where the API is: its host stays the API's, also below those domains, as do the domains themselves.
 * @param others gets the requests for hosts that are neither.
 */
export function byHost(
  publicUrl: string | undefined,
  realms: Realm[],
  others: RequestHandler = (_req, _res, next) => next(),
): RequestHandler {
  const apiHost = publicUrl && new URL(publicUrl).hostname
  const nearestFirst = realms.toSorted((a, b) => b.domain.length - a.domain.length)
  return (req, res, next) => {
    // A proxy in front may go by the other one (RFC 9112, 3.2).
    if ((req.headersDistinct.host?.length ?? 0) > 1) throw badRequest('Host: sent more than once')
    const host = requestHost(req)
    if (host === apiHost || realms.some(({ domain }) => host === domain)) return next()
    const realm = nearestFirst.find(({ domain }) => host.endsWith(`.${domain}`))
    return (realm?.handler ?? others)(req, res, next)
  }
}

/** The host that a client asked for, without its port, in one spelling; empty where it named none. */
export function requestHost(req: Request): string {
  return req.hostname?.toLowerCase().replace(/\.$/, '') ?? ''
}
