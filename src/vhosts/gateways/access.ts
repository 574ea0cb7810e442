/** The right to read at a gateway, and the time for which others may keep the answer. */
import type { Request } from 'express'
import { forbidden, unauthorized } from '../../errors.ts'
import type { Gateway, GatewayService } from '../../files/gateways/gateways.ts'
import type { UrlSigner } from '../../files/signed-url.ts'
import type { Network } from '../../storage/port.ts'

/** About 48 weeks, as long as the public service has it. */
const IMMUTABLE_S = 29_030_400
/** Any CID of a gateway with the swaps plugin may be swapped, and that must show soon. */
const SWAPPABLE_S = 60

const TOKEN_PARAMETER = 'pinataGatewayToken'

const REFUSALS = {
  unsigned: 'X-Signature: private content is read with a signed URL only',
  forged: 'X-Signature: not the signature of this URL',
  early: 'X-Date: lies in the future',
  expired: 'X-Expires: the URL has expired',
} as const

/**
 * Lets a request for public content pass when the gateway is open, or the request has one of its tokens.
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
 * Lets a request for private content pass when its URL, with the host by which the client knows it, was signed
 * for reading at this gateway and is still good. The signature is the whole permission: a restricted gateway asks for no token.
 * @throws ApiError 401 without a signature, 403 with one that is not good.
 */
export function checkSignature(signer: UrlSigner, gateway: Gateway, url: URL): void {
  const verdict = signer.verify(url, 'PINATA1', Date.now() / 1000, gateway.id)
  if (verdict === 'unsigned') throw unauthorized(REFUSALS.unsigned, verdict)
  if (verdict !== 'good') throw forbidden(REFUSALS[verdict], verdict)
  if (url.searchParams.get('X-Method') !== 'GET') throw forbidden('X-Method: the URL was not signed for GET')
}

/** The part of a query with which links of a page lead on, at a restricted gateway; empty where none is needed. */
export function tokenOf({ searchParams }: URL): URLSearchParams {
  const token = searchParams.get(TOKEN_PARAMETER)
  return new URLSearchParams(token === null ? {} : { [TOKEN_PARAMETER]: token })
}

/** A redirect by the rules of a site; one to another host does not carry the gateway's token there. */
export function withoutToken({ status, location }: { status: number; location: string }): {
  status: number
  location: string
} {
  // Two slashes at its beginning would make a path the name of a host; to browsers a backslash is one.
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

/** `Cache-Control` of a page that the gateway makes: another version of Berth makes another one. */
export function pageCacheControl(network: Network, gateway: Gateway): Record<string, string> {
  if (network === 'private' || gateway.hasSwaps) return {}
  const who = gateway.restricted ? 'private' : 'public'
  return { 'Cache-Control': `${who}, max-age=604800, stale-while-revalidate=2678400` }
}
