/** Names that lead to an agent's ports or to a gateway: one label below the operator's domain, or a custom domain. */
import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'
import type { Config } from '../config.ts'
import { badRequest } from '../errors.ts'
import { AGENT_ID } from '../lib/agent-id.ts'
import { readAsLatin } from './look-alikes.ts'

/** Words that no name may contain (contract 7.1), because the name would pass for the operator's own. */
const BRANDS = ['berth', 'pinata']
/** RFC 1035, 2.3.4; letters of other scripts are encoded as in RFC 5890. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** The TXT record's name is longer by `_service-verify.`, and a name has 253 characters at most. */
const MAX_CUSTOM = 253 - '_service-verify.'.length
/** No name contains these characters, although URL parsers accept and interpret them. */
const NEVER_IN_NAMES = /[\s%/\\?#@:[\]*,"'<>]/
/** Names that an operator may want, and names that people associate with the operator. */
const RESERVED = new Set([
  'abuse',
  'account',
  'admin',
  'administrator',
  'agents',
  'api',
  'app',
  'apps',
  'auth',
  'billing',
  'blog',
  'dashboard',
  'dns',
  'docs',
  'email',
  'ftp',
  'gateway',
  'help',
  'hostmaster',
  'imap',
  'ipfs',
  'ipns',
  'localhost',
  'login',
  'mail',
  'mta-sts',
  'ns1',
  'ns2',
  'pop',
  'postmaster',
  'root',
  'security',
  'smtp',
  'ssl',
  'status',
  'support',
  'uploads',
  'webmaster',
  'wpad',
  'www',
])

/** A name in its canonical spelling, or what is wrong with it. */
export type Checked = { name: string; fault?: undefined } | { name?: undefined; fault: string }

/** An arbitrary domain above a subdomain: without it, a label of digits would be parsed as an IPv4 address. */
const ABOVE = '.example'

/** The name of a subdomain: one label. */
export function checkSubdomain(input: string): Checked {
  const name = toAscii(`${input.replace(/\.$/, '')}${ABOVE}`).slice(0, -ABOVE.length)
  if (!name || name.includes('.') || !LABEL.test(name))
    return { fault: 'must be one label of a domain: 1 to 63 letters, digits and hyphens' }
  const fault = brandFault(name)
  if (fault) return { fault }
  // Ids belong to the path routes of their agents.
  if (RESERVED.has(name) || AGENT_ID.test(name)) return { fault: 'is reserved' }
  return { name }
}

/** True if a host may be a custom domain. Addresses and names of this machine or its network need no query. */
export const mayBeCustom = (host: string): boolean =>
  /^[a-z0-9.-]*\.[a-z][a-z0-9-]*$/.test(host) &&
  !isIP(host) &&
  !host.endsWith('.localhost') &&
  host.length <= 253

/** Returns the checked name. @throws ApiError 400 naming the field. */
export function orFault(field: string, checked: Checked): string {
  if (checked.name !== undefined) return checked.name
  throw badRequest(`${field}: ${checked.fault}`)
}

export type OwnDomains = Pick<
  Config,
  'PUBLIC_URL' | 'BERTH_APP_DOMAIN' | 'BERTH_AGENT_DOMAIN' | 'BERTH_GATEWAY_DOMAIN'
>

/** The name of a custom domain, which must not be a name of this machine or of Berth. */
export function checkCustomDomain(input: string, config: OwnDomains): Checked {
  const name = toAscii(input)
  if (!name) return { fault: 'must be a domain name' }
  if (isIP(name)) return { fault: 'must be a name, not an address' }
  const labels = name.split('.')
  const isName = labels.length > 1 && labels.every((label) => LABEL.test(label)) && name.length <= MAX_CUSTOM
  if (!isName)
    return { fault: `must be a domain name of at most ${MAX_CUSTOM} characters, such as shop.example.com` }
  const fault = brandFault(name)
  if (fault) return { fault }
  if (labels.at(-1) === 'localhost') return { fault: 'is a name of this machine only' }
  const isOwn = ownDomains(config).some((own) => name === own || name.endsWith(`.${own}`))
  return isOwn ? { fault: 'is a name of this service' } : { name }
}

function ownDomains({ PUBLIC_URL, BERTH_APP_DOMAIN, BERTH_AGENT_DOMAIN, BERTH_GATEWAY_DOMAIN }: OwnDomains) {
  const domains = [BERTH_APP_DOMAIN, BERTH_AGENT_DOMAIN, BERTH_GATEWAY_DOMAIN]
  return PUBLIC_URL ? [...domains, new URL(PUBLIC_URL).hostname] : domains
}

/** The fault of a name that contains a brand, or letters that look like a brand. */
function brandFault(name: string): string | undefined {
  const brand = BRANDS.find((word) => name.includes(word))
  if (brand) return `must not contain "${brand}"`
  const seen = domainToUnicode(name).split('.').map(readAsLatin)
  const imitated = BRANDS.find((word) => seen.some((label) => label.includes(word)))
  return imitated && `must not contain letters that look like "${imitated}"`
}

/** Lower case, without the trailing dot, other scripts in punycode (UTS 46); empty if the input is not a name. */
function toAscii(input: string): string {
  if (NEVER_IN_NAMES.test(input)) return ''
  const name = domainToASCII(input).toLowerCase().replace(/\.$/, '')
  return name.split('.').every(isDecodable) ? name : ''
}

/**
 * True for a label that URL parsers accept. Node accepts any ASCII as a name, but browsers and other parsers decode
 * punycode. They reject a label that cannot be decoded, or whose decoded text has another encoding.
 */
function isDecodable(label: string): boolean {
  if (!label.startsWith('xn--')) return true
  const decoded = domainToUnicode(label)
  return decoded !== label && domainToASCII(decoded) === label
}
