/** Checks the URL of a webhook. Its host name is resolved, and its address checked, for each connection. */
import { isIP } from 'node:net'
import { type Destination, hasDestination, parseDestination } from '../agent-proxy/destination.ts'
import { badRequest } from '../errors.ts'
import { isPrivateAddress } from '../lib/net/ip-address.ts'

const MAX_LENGTH = 2048

export interface Target {
  url: URL
  destination: Destination
  /** Whether the operator allows the target by name, regardless of its addresses. */
  isAllowed: boolean
}

/**
 * The target of a URL that was accepted before. The operator's rules may have changed since: see {@link mayConnect}.
 * @param allowed `BERTH_WEBHOOK_ALLOW`: these may have private addresses, and use http.
 */
export function targetOf(text: string, allowed: readonly Destination[]): Target {
  const url = new URL(text)
  const destination = parseDestination(url.host, url.protocol === 'http:' ? 80 : 443)
  if (!destination) throw new Error(`${url.host} is not a host and port`)
  return { url, destination, isAllowed: hasDestination(allowed, destination) }
}

/** True if a target may be contacted: without TLS only if the operator allows it. */
export const mayConnect = ({ url, isAllowed }: Target): boolean => url.protocol === 'https:' || isAllowed

/**
 * Parses the URL of a webhook.
 * @param allowed as in {@link targetOf}.
 * @throws ApiError 400
 */
export function readTarget(text: string, allowed: readonly Destination[]): Target {
  const url = text.length <= MAX_LENGTH && URL.canParse(text) ? new URL(text) : undefined
  if (!url || !['http:', 'https:'].includes(url.protocol)) throw badRequest('url: must be an https URL')
  if (url.username || url.password) throw badRequest('url: must not have a user or password')
  if (url.hash) throw badRequest('url: must not have a fragment')
  if (!parseDestination(url.host, 443)) throw badRequest('url: must name a host and a port')
  const target = targetOf(text, allowed)
  const { destination, isAllowed } = target
  if (!mayConnect(target)) throw badRequest('url: must be an https URL')
  const isInside = isIP(destination.host) !== 0 && isPrivateAddress(destination.host)
  if (isInside && !isAllowed) throw badRequest(`url: ${url.host} is not on the public internet`)
  return target
}
