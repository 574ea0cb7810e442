/** Rules of egress policies: the hosts that they name, and whether a destination is among them. */
import { type Destination, hasDestination, parseDestination } from '../destination.ts'
import type { EgressPolicy } from './protocol.ts'

interface Rule {
  host: string
  /** Undefined for every port. */
  port?: number
}

/** Parses `host` or `host:port`; a host that begins with `*.` matches every name below it. @returns undefined if malformed. */
export function parseRule(text: string): Rule | undefined {
  const [, star = '', rest = ''] = /^(\*\.)?(.+)$/.exec(text) ?? []
  const withPort = parseDestination(rest)
  // Any port stands for the rule's: only the host counts then.
  const parsed = withPort ?? parseDestination(rest, 1)
  if (!parsed) return undefined
  const host = `${star}${parsed.host.replace(/\.$/, '')}`
  return withPort ? { host, port: parsed.port } : { host }
}

/** Why a policy forbids a destination, in words that the agent's user can read; undefined if it allows it. */
export function refusalOf({ mode, allow, deny }: EgressPolicy, destination: Destination): string | undefined {
  if (mode === 'none') return 'The egress policy of this agent allows no connections'
  const { host, port } = { ...destination, host: destination.host.replace(/\.$/, '') }
  const isNamed = (rules: string[]) =>
    hasDestination(
      parseRules(rules).map((rule) => ({ port, ...rule })),
      { host, port },
    )
  if (isNamed(deny)) return `The egress policy of this agent denies ${host}`
  if (mode === 'listed' && !isNamed(allow)) return `The egress policy of this agent does not list ${host}`
  return undefined
}

const parsed = new WeakMap<string[], Rule[]>()

/** Parses rules once for each policy. */
function parseRules(texts: string[]): Rule[] {
  const rules = parsed.get(texts) ?? texts.flatMap((text) => parseRule(text) ?? [])
  parsed.set(texts, rules)
  return rules
}
