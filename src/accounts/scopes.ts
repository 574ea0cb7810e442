/** Scopes of API keys (contract 5.2, compatibility 1.1): `org:<resource>:<read|write>`, `org:<read|write>`, `admin`. */

const RESOURCES = ['files', 'groups', 'gateways', 'analytics', 'agents'] as const
const ACCESS = ['read', 'write'] as const

export type Scope =
  | 'admin'
  | `org:${(typeof ACCESS)[number]}`
  | `org:${(typeof RESOURCES)[number]}:${(typeof ACCESS)[number]}`

export const SCOPES: readonly Scope[] = [
  'admin',
  ...ACCESS.map((access) => `org:${access}` as const),
  ...RESOURCES.flatMap((resource) => ACCESS.map((access) => `org:${resource}:${access}` as const)),
]

export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text)
}

/** Whether `held` grants `needed`: write includes read, `org:write` every resource, `admin` all. */
export function grants(held: readonly string[], needed: Scope): boolean {
  const enough: string[] = ['admin', needed]
  const [, resource, access] = /^org:(?:(\w+):)?(read|write)$/.exec(needed) ?? []
  if (access) enough.push('org:write')
  if (access === 'read') enough.push('org:read', `org:${resource}:write`)
  return enough.some((scope) => held.includes(scope))
}

/** Whether a scope lets its holder change something. */
export function isWrite(scope: Scope): boolean {
  return scope === 'admin' || scope.endsWith('write')
}
