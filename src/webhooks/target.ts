/** Where a webhook's deliveries go: what its URL may be. Which address that is, is decided at each connection. */
import { isIP } from 'node:net'
import { type Destination, hasDestination, parseDestination } from '../agent-proxy/destination.ts'
import { badRequest } from '../errors.ts'
import { isPrivateAddress } from '../lib/net/ip-address.ts'

const MAX_LENGTH = 2048

export interface Target {
  url: URL
  destination: Destination
  /** Whether the operator allows it by name, whatever its addresses. */
  isAllowed: boolean
}

/**
 * Reads the URL of a webhook.
 * @param allowed `BERTH_WEBHOOK_ALLOW`: these may have private addresses, and take http.
 * @throws ApiError 400
 */
export function readTarget(text: string, allowed: readonly Destination[]): Target {
  const url = text.length <= MAX_LENGTH && URL.canParse(text) ? new URL(text) : undefined
  const isHttp = url?.protocol === 'http:'
  if (!url || !(isHttp || url.protocol === 'https:')) throw badRequest('url: must be an https URL')
  if (url.username || url.password) throw badRequest('url: must not have a user or password')
  if (url.hash) throw badRequest('url: must not have a fragment')
  const destination = parseDestination(url.host, isHttp ? 80 : 443)
  if (!destination) throw badRequest('url: must name a host and a port')
  const isAllowed = hasDestination(allowed, destination)
  if (isHttp && !isAllowed) throw badRequest('url: must be an https URL')
  const isInside = isIP(destination.host) !== 0 && isPrivateAddress(destination.host)
  if (isInside && !isAllowed) throw badRequest(`url: ${url.host} is not on the public internet`)
  return { url, destination, isAllowed }
}
