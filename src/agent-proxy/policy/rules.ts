/** Rules of egress policies: what they name, and whether a destination or a request is among it. */
import { isIP } from 'node:net'
import { registeredDomain } from '../../lib/net/domain-owner.ts'
import { type Destination, hasDestination, parseDestination } from '../destination.ts'
import { plainPath } from './path.ts'
import type { BrokeredSecret, EgressPolicy, EgressRule } from './protocol.ts'

/** A request whose method and path a policy may limit. */
export interface Requested {
  method: string
  /** Path and query. */
  target: string
}

interface Host {
  host: string
  /** Undefined for every port. */
  port?: number
}
interface Rule extends Host {
  methods?: string[]
  /** Decoded. */
  paths?: string[]
}

/** Parses `host` or `host:port`; a host that begins with `*.` matches every name below it. @returns undefined if malformed. */
export function parseHost(text: string): Host | undefined {
  const [, star = '', rest = ''] = /^(\*\.)?(.+)$/.exec(text) ?? []
  const withPort = parseDestination(rest)
  // Any port stands for the rule's: only the host counts then.
  const parsed = withPort ?? parseDestination(rest, 1)
  if (!parsed) return undefined
  const host = `${star}${parsed.host.replace(/\.$/, '')}`
  return withPort ? { host, port: parsed.port } : { host }
}

/** @returns undefined if malformed, which includes methods or paths of an IP address: TLS needs a name. */
export function parseRule(rule: EgressRule): Rule | undefined {
  const {
    host: text,
    methods,
    paths,
  } = typeof rule === 'string' ? { host: rule } : (rule as Exclude<EgressRule, string>)
  const host = parseHost(text)
  if (!host || !(methods || paths)) return host
  const decoded = paths?.map((path) => plainPath(path))
  if (isIP(host.host) || decoded?.some((path) => !path?.startsWith('/') || /\*./.test(path))) return undefined
  return { ...host, ...(methods && { methods }), ...(decoded && { paths: decoded as string[] }) }
}

/** Why a policy forbids a destination or a request to it, in words for the agent's user; undefined if it allows it. */
export function refusalOf(
  policy: EgressPolicy,
  destination: Destination,
  request?: Requested,
): string | undefined {
  const { mode, allow, deny } = policy
  if (mode === 'none') return 'The egress policy of this agent allows no connections'
  const path = request && plainPath(request.target)
  const isLimited = hasLimits(policy, destination)
  if (request && isLimited && path === undefined)
    return 'The egress policy of this agent has rules for this host, and servers may read this path in several ways'
  const { host } = destination
  const what = request && isLimited ? `${request.method} ${path} on ${host}` : host
  const isNamed = ({ methods, paths }: Rule) =>
    !request ||
    ((!methods || methods.includes(request.method)) &&
      (!paths || paths.some((one) => isBelow(one, path ?? ''))))
  const denied = rulesFor(deny, destination)
  // Before the request is known, only rules for the whole host deny.
  if (denied.some((rule) => isNamed(rule) && (request || isWhole(rule))))
    return `The egress policy of this agent denies ${what}`
  if (mode === 'listed' && !rulesFor(allow, destination).some(isNamed))
    return `The egress policy of this agent does not list ${what}`
  return undefined
}

/** True if a policy limits the methods or paths of requests to this destination. */
export function hasLimits({ mode, allow, deny }: EgressPolicy, destination: Destination): boolean {
  const allowed = mode === 'listed' ? rulesFor(allow, destination) : []
  return (
    rulesFor(deny, destination).some((rule) => !isWhole(rule)) ||
    (allowed.length > 0 && !allowed.some(isWhole))
  )
}

/** The brokered secrets that requests to this destination may carry. */
export function secretsFor({ secrets }: EgressPolicy, { host, port }: Destination): BrokeredSecret[] {
  const name = host.replace(/\.$/, '')
  if (port !== 443) return []
  return secrets.filter(({ hosts }) => hosts.some((one) => one === name || isBelowOwner(one, name)))
}

/**
 * Whether a host that begins with `*.` stands for a name of the same owner. Below `amazonaws.com`, strangers have names
 * such as `shop.s3.amazonaws.com`.
 */
const isBelowOwner = (wildcard: string, name: string) =>
  wildcard.startsWith('*.') &&
  name.endsWith(wildcard.slice(1)) &&
  registeredDomain(name) === registeredDomain(wildcard.slice(2))

const isWhole = ({ methods, paths }: Rule) => !methods && !paths
const isBelow = (rule: string, path: string) =>
  rule.endsWith('*') ? path.startsWith(rule.slice(0, -1)) : path === rule

const parsed = new WeakMap<EgressRule[], Rule[]>()

function rulesFor(rules: EgressRule[], { host, port }: Destination): Rule[] {
  // Parsed once for each policy.
  const all = parsed.get(rules) ?? rules.flatMap((rule) => parseRule(rule) ?? [])
  parsed.set(rules, all)
  const destination = { host: host.replace(/\.$/, ''), port }
  return all.filter((rule) => hasDestination([{ port, ...rule }], destination))
}
