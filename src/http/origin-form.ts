import type { IncomingMessage } from 'node:http'

/**
 * Makes a request whose target is a whole URL, as a proxy gets it, one with a path and a `Host`: the URL's
 * host counts then, whatever `Host` says (RFC 9112, 3.2.2). It must be done before Express sees the request:
 * its router takes paths apart by the length of the origin that the target began with.
 */
export function toOriginForm(req: IncomingMessage): void {
  const [, host, path] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(req.url ?? '') ?? []
  if (host === undefined || path === undefined) return
  req.headers.host = host
  req.url = path.startsWith('/') ? path : `/${path}`
}
