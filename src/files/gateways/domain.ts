/** Names of gateways: one DNS label, to the left of `BERTH_GATEWAY_DOMAIN`. */

/** RFC 1035; hyphens in the third and fourth place are for names in other scripts, which look like others. */
const LABEL = /^(?!..--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/
const BRAND = 'berth'
/** Hosts that a service has of its own. The migration 0004 has the same list. */
const RESERVED = new Set([
  'admin',
  'agents',
  'api',
  'app',
  'dashboard',
  'docs',
  'gateway',
  'ipfs',
  'ipns',
  'status',
  'uploads',
  'www',
])

/** Why a name cannot be a gateway's; undefined when it can. @param domain in lower case. */
export function domainFault(domain: string): string | undefined {
  if (!LABEL.test(domain)) return 'must be 3 to 63 letters, digits and hyphens, with no hyphen at an end'
  if (domain.includes(BRAND)) return `must not contain "${BRAND}"`
  if (RESERVED.has(domain)) return 'is reserved'
  return undefined
}

/**
 * The gateway's name in a host.
 * @param host as in a Host header: with or without a port, in any case.
 * @param gatewayDomain `BERTH_GATEWAY_DOMAIN`.
 * @returns undefined for any other host.
 */
export function domainOfHost(host: string, gatewayDomain: string): string | undefined {
  const name = host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
  const suffix = `.${gatewayDomain}`
  const label = name.endsWith(suffix) ? name.slice(0, -suffix.length) : ''
  return LABEL.test(label) ? label : undefined
}
