/** The policy in a form: its rules as text, and what it allows. The API decides; pages show it before a save. */
export const MODES = ['open', 'listed', 'none'] as const

/** A host, which may be limited to some methods and paths. */
export type Rule = string | { host: string; methods?: string[] | undefined; paths?: string[] | undefined }

export interface Policy {
  mode: (typeof MODES)[number]
  allow: Rule[]
  deny: Rule[]
}

/** A policy while it is edited: each list is a text with a rule per line, such as `GET,POST api.example.com /v1/*`. */
export type Draft = Omit<Policy, 'allow' | 'deny'> & Record<'allow' | 'deny', string>

const METHODS = /^[A-Z]+(,[A-Z]+)*$/

function rulesOfLine(line: string): Rule[] {
  const words = line.split(/\s+/).filter((word) => word !== '')
  const paths = words.filter((word) => word.startsWith('/'))
  const methods = words.length > 1 && METHODS.test(words[0] ?? '') ? words[0]?.split(',') : undefined
  if (!methods && paths.length === 0)
    return line
      .toLowerCase()
      .split(/[\s,]+/)
      .filter((rule) => rule !== '')
  const host = words
    .filter((word) => !word.startsWith('/'))
    .slice(methods ? 1 : 0)
    .join(' ')
  return [{ host: host.toLowerCase(), ...(methods && { methods }), ...(paths.length > 0 && { paths }) }]
}

/** A rule in a line of a draft. */
export const lineOf = (rule: Rule) =>
  typeof rule === 'string'
    ? rule
    : [...(rule.methods ? [rule.methods.join(',')] : []), rule.host, ...(rule.paths ?? [])].join(' ')
const rulesOf = (text: string) => [
  ...new Map(
    text
      .split('\n')
      .flatMap(rulesOfLine)
      .map((rule) => [lineOf(rule), rule]),
  ).values(),
]
export const draftOf = ({ mode, allow, deny }: Policy): Draft => ({
  mode,
  allow: allow.map(lineOf).join('\n'),
  deny: deny.map(lineOf).join('\n'),
})
export const policyOf = ({ mode, allow, deny }: Draft): Policy => ({
  mode,
  allow: rulesOf(allow),
  deny: rulesOf(deny),
})

/** The host of a rule, without its port. */
const hostOf = (rule: Rule) => (typeof rule === 'string' ? rule : rule.host).replace(/:\d+$/, '')
/** True for a rule for every port, method and path. */
const isWhole = (rule: Rule) => typeof rule === 'string' && !/:\d+$/.test(rule)
/** A reported host as a rule: IPv6 addresses have brackets there. */
const toRule = (host: string) => (host.includes(':') ? `[${host}]` : host)

function names(rules: Rule[], rule: string): boolean {
  return rules.map(hostOf).some((one) => (one.startsWith('*.') ? rule.endsWith(one.slice(1)) : one === rule))
}

/** True if a policy refuses every request to a host. */
export function denies({ mode, allow, deny }: Policy, host: string): boolean {
  const rule = toRule(host)
  const isListed = mode === 'open' || (mode === 'listed' && names(allow, rule))
  return !isListed || names(deny.filter(isWhole), rule)
}

/** The policy in which a denied host is allowed, or an allowed one denied; undefined if single rules cannot do that. */
export function flipped(policy: Policy, host: string): Policy | undefined {
  const rule = toRule(host)
  const isDenied = denies(policy, host)
  const others = (rules: Rule[]) => rules.filter((one) => hostOf(one) !== rule)
  const next = { ...policy, [isDenied ? 'deny' : 'allow']: others(policy[isDenied ? 'deny' : 'allow']) }
  // Without its own rule, the host may already be where it belongs.
  if (denies(next, host) === isDenied) {
    const list = isDenied ? 'allow' : 'deny'
    next[list] = [...next[list], rule]
  }
  return denies(next, host) === isDenied ? undefined : next
}
