/** Traffic by host name: gateways' hosts are none of the API's, and the API's host serves no content. */
import type { RequestHandler } from 'express'
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
    const host = req.hostname?.toLowerCase().replace(/\.$/, '') ?? ''
    if (host === apiHost || !host.endsWith(`.${gatewayDomain}`)) return next()
    return gateway(req, res, next)
  }
}
