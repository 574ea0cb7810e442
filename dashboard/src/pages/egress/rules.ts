/** The policy in a form: its rules as text, and what it allows. The API decides; pages show it before a save. */
export const MODES = ['open', 'listed', 'none'] as const

export interface Policy {
  mode: (typeof MODES)[number]
  allow: string[]
  deny: string[]
}

/** A policy while it is edited: each list is a text with a rule per line. */
export type Draft = Omit<Policy, 'allow' | 'deny'> & Record<'allow' | 'deny', string>

const rulesOf = (text: string) => [
  ...new Set(
    text
      .toLowerCase()
      .split(/[\s,]+/)
      .filter((rule) => rule !== ''),
  ),
]
export const draftOf = ({ mode, allow, deny }: Policy): Draft => ({
  mode,
  allow: allow.join('\n'),
  deny: deny.join('\n'),
})
export const policyOf = ({ mode, allow, deny }: Draft): Policy => ({
  mode,
  allow: rulesOf(allow),
  deny: rulesOf(deny),
})

/** The host of a rule, without its port. */
const hostOf = (rule: string) => rule.replace(/:\d+$/, '')
const hasPort = (rule: string) => /:\d+$/.test(rule)
/** A reported host as a rule: IPv6 addresses have brackets there. */
const toRule = (host: string) => (host.includes(':') ? `[${host}]` : host)

function names(rules: string[], rule: string): boolean {
  return rules.map(hostOf).some((one) => (one.startsWith('*.') ? rule.endsWith(one.slice(1)) : one === rule))
}

/** True if a policy refuses every port of a host. */
export function denies({ mode, allow, deny }: Policy, host: string): boolean {
  const rule = toRule(host)
  const isListed = mode === 'open' || (mode === 'listed' && names(allow, rule))
  return (
    !isListed ||
    names(
      deny.filter((one) => !hasPort(one)),
      rule,
    )
  )
}

/** The policy in which a denied host is allowed, or an allowed one denied; undefined if single rules cannot do that. */
export function flipped(policy: Policy, host: string): Policy | undefined {
  const rule = toRule(host)
  const isDenied = denies(policy, host)
  const others = (rules: string[]) => rules.filter((one) => hostOf(one) !== rule)
  const next = { ...policy, [isDenied ? 'deny' : 'allow']: others(policy[isDenied ? 'deny' : 'allow']) }
  // Without its own rule, the host may already be where it belongs.
  if (denies(next, host) === isDenied) {
    const list = isDenied ? 'allow' : 'deny'
    next[list] = [...next[list], rule]
  }
  return denies(next, host) === isDenied ? undefined : next
}
