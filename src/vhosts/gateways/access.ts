/** The permission to read at a gateway, and how long others may cache the response. */
import type { Request } from 'express'
import { forbidden, unauthorized } from '../../errors.ts'
import type { Gateway, GatewayService } from '../../files/gateways/gateways.ts'
import type { UrlSigner } from '../../files/signed-url.ts'
import type { Network } from '../../storage/port.ts'

/** About 48 weeks, the same as the public service. */
const IMMUTABLE_S = 29_030_400
/** Any CID at a gateway with the swaps plugin may be swapped, and that must become visible soon. */
const SWAPPABLE_S = 60

const TOKEN_PARAMETER = 'pinataGatewayToken'

const REFUSALS = {
  unsigned: 'X-Signature: private content is read with a signed URL only',
  forged: 'X-Signature: not the signature of this URL',
  early: 'X-Date: lies in the future',
  expired: 'X-Expires: the URL has expired',
} as const

/**
 * Admits a request for public content if the gateway is open, or the request has one of its tokens.
 * @throws ApiError 401 without a token, 403 with a wrong one.
 */
export function checkToken(gateways: GatewayService, gateway: Gateway, req: Request, url: URL): void {
  const token = url.searchParams.get(TOKEN_PARAMETER) ?? req.get('x-pinata-gateway-token')
  if (gateways.mayRead(gateway, token)) return
  throw token === undefined
    ? unauthorized(`This gateway is restricted: send ${TOKEN_PARAMETER} or x-pinata-gateway-token`)
    : forbidden(`${TOKEN_PARAMETER}: not a token of this gateway`)
}

/**
 * Admits a request for private content if its URL, with the host that the client uses, was signed for reading at this
 * gateway and is still valid. The signature is the whole permission: a restricted gateway requires no token.
 * @throws ApiError 401 without a signature, 403 with an invalid one.
 */
export function checkSignature(signer: UrlSigner, gateway: Gateway, url: URL): void {
  const verdict = signer.verify(url, 'PINATA1', Date.now() / 1000, gateway.id)
  if (verdict === 'unsigned') throw unauthorized(REFUSALS.unsigned, verdict)
  if (verdict !== 'good') throw forbidden(REFUSALS[verdict], verdict)
  if (url.searchParams.get('X-Method') !== 'GET') throw forbidden('X-Method: the URL was not signed for GET')
}

/** The query that links of a page must carry at a restricted gateway; empty if none is needed. */
export function tokenOf({ searchParams }: URL): URLSearchParams {
  const token = searchParams.get(TOKEN_PARAMETER)
  return new URLSearchParams(token === null ? {} : { [TOKEN_PARAMETER]: token })
}

/** A redirect by a site's rules; a redirect to another host does not carry the gateway's token. */
export function withoutToken({ status, location }: { status: number; location: string }): {
  status: number
  location: string
} {
  // Two leading slashes would turn a path into a host name; browsers treat a backslash as a slash.
  if (!URL.canParse(location)) return { status, location: location.replace(/^[/\\]+/, '/') }
  const url = new URL(location)
  if (!url.searchParams.has(TOKEN_PARAMETER)) return { status, location }
  url.searchParams.delete(TOKEN_PARAMETER)
  return { status, location: `${url}` }
}

/** `Cache-Control` of content. */
export function cacheControl(network: Network, { restricted, hasSwaps }: Gateway): string {
  if (network === 'private') return 'private, no-store'
  const who = restricted ? 'private' : 'public'
  return hasSwaps ? `${who}, max-age=${SWAPPABLE_S}` : `${who}, max-age=${IMMUTABLE_S}, immutable`
}

/** `Cache-Control` of a page that the gateway generates: another version of Berth generates another one. */
export function pageCacheControl(network: Network, gateway: Gateway): Record<string, string> {
  if (network === 'private' || gateway.hasSwaps) return {}
  const who = gateway.restricted ? 'private' : 'public'
  return { 'Cache-Control': `${who}, max-age=604800, stale-while-revalidate=2678400` }
}
