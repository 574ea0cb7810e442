/** Routes traffic by host name: the API shares no host with gateways, agents and pages. */
import type { Request, RequestHandler } from 'express'
import { isDatabaseDown } from '../db/database-errors.ts'
import { badRequest } from '../errors.ts'

/** A domain, and the handler of every host below it. */
export interface VirtualHost {
  domain: string
  handler: RequestHandler
}

/**
 * Passes requests for any host below a virtual host's domain to its handler, whether such a host exists or not. If one
 * domain is below another, the nearer one counts.
 * @param publicUrl the API's URL: its host stays the API's, even below those domains, as do the domains themselves.
 * @param others gets the requests for all other hosts.
 */
export function byHost(
  publicUrl: string | undefined,
  virtualHosts: VirtualHost[],
  others: RequestHandler = (_req, _res, next) => next(),
): RequestHandler {
  const apiHost = publicUrl && new URL(publicUrl).hostname
  const domains = virtualHosts.map(({ domain }) => domain)
  return (req, res, next) => {
    // Node keeps the first, and a proxy in front may use the other (RFC 9112, 3.2).
    for (const name of ['Host', 'Authorization'])
      if ((req.headersDistinct[name.toLowerCase()]?.length ?? 0) > 1)
        throw badRequest(`${name}: sent more than once`)
    const host = requestHost(req)
    if (host === apiHost || domains.includes(host)) return next()
    const nearest = nearestDomain(host, domains)
    const virtualHost = virtualHosts.find(({ domain }) => domain === nearest)
    return (virtualHost?.handler ?? others)(req, res, next)
  }
}

/** Runs the second handler for requests that the first one passes on. */
export function inTurn(first: RequestHandler, second: RequestHandler): RequestHandler {
  return (req, res, next) => first(req, res, (error) => (error ? next(error) : second(req, res, next)))
}

/**
 * Treats a failed lookup of a custom domain as no result while the database is unavailable; the API can then report the
 * state of the database.
 * @param find the lookup.
 */
export function orNothing<T>(find: Promise<T | undefined>): Promise<T | undefined> {
  return find.catch((error) => {
    if (isDatabaseDown(error)) return undefined
    throw error
  })
}

/** The domain that a host is below; among several, the nearest. */
export function nearestDomain(host: string, domains: string[]): string | undefined {
  const above = domains.filter((domain) => host.endsWith(`.${domain}`))
  return above.toSorted((a, b) => b.length - a.length)[0]
}

/** The host that a client requested, without its port, in canonical spelling; empty if it named none. */
export function requestHost(req: Request): string {
  return req.hostname?.toLowerCase().replace(/\.$/, '') ?? ''
}
