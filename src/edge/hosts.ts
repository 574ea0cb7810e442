/** Traffic by host name: gateways' hosts are none of the API's, and the API's host serves no content. */
import type { Request, RequestHandler } from 'express'
import { badRequest } from '../errors.ts'

/**
 * Hands requests for any host below `gatewayDomain` to `gateway`, whether there is such a gateway or not.
 * @param publicUrl where the API is: its host stays the API's, also below that domain.
 */
export function byHost(
  { gatewayDomain, publicUrl }: { gatewayDomain: string; publicUrl: string | undefined },
  gateway: RequestHandler,
): RequestHandler {
  const apiHost = publicUrl && new URL(publicUrl).hostname
  return (req, res, next) => {
    // A proxy in front may go by the other one (RFC 9112, 3.2).
    if ((req.headersDistinct.host?.length ?? 0) > 1) throw badRequest('Host: sent more than once')
    toOriginForm(req)
    const host = req.hostname?.toLowerCase().replace(/\.$/, '') ?? ''
    if (host === apiHost || !host.endsWith(`.${gatewayDomain}`)) return next()
    return gateway(req, res, next)
  }
}

/**
 * Makes a request whose target is a whole URL, as a proxy gets it, one with a path and a `Host`: the URL's
 * host counts then, whatever `Host` says (RFC 9112, 3.2.2).
 */
function toOriginForm(req: Request): void {
  const [, host, path] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(req.url) ?? []
  if (host === undefined || path === undefined) return
  req.headers.host = host
  req.url = path.startsWith('/') ? path : `/${path}`
}
