/** The caller of a request, and what keys may do. `Guard` (route.ts) makes a {@link Principal} of a header. */
import type { Plan } from '../db/statements/plan.ts'

export type Role = 'owner' | 'member' | 'viewer'

/**
 * Tokens of agents, as routes name those that they take: the gateway token and the platform token of an agent, each for
 * that agent alone; and for the rest of its workspace, a platform token that BERTH_PLATFORM_TOKEN_SCOPE widens. `widened`
 * takes both tokens for their own agent, where that setting widens them.
 */
export type AgentCaller = 'gateway' | 'platform' | 'workspace' | 'widened'

/** The caller of a request. */
export interface Principal {
  keyId: string
  /** The key's limits; `null` for none. */
  maxUses: number | null
  expiresAt: Date | null
  workspaceId: string
  userId: string
  role: Role
  /** The user may see to the whole instance, with scopes for it. */
  isInstanceAdmin: boolean
  scopes: string[]
  plan: Plan
  /** Set where the caller is a session of the dashboard; `keyId` is the session's. */
  isSession?: boolean
  /** Set where the caller is an agent, and what it may do ends there: by its gateway token or a platform token. */
  agent?: {
    agentId: string
    by: 'gateway' | 'platform'
    /** A text that changes with the agent's gateway token. */
    fingerprint: string
    /** The agent's token may see more of its workspace than that agent, where routes say so. */
    isWide: boolean
  }
}

const RESOURCES = ['files', 'groups', 'gateways', 'analytics', 'agents'] as const
const ACCESS = ['read', 'write'] as const

/** Uploads that stay private, whatever the client asks for: a part of `org:files:write`. */
const PRIVATE_UPLOADS = 'org:private_files:write'

/**
 * A scope of API keys: `org:<resource>:<read|write>`, `org:<read|write>` or `admin` for a workspace; `instance:<read|write>`
 * for the whole instance, which `admin` does not have and which is good for instance admins only.
 */
export type Scope =
  | 'admin'
  | `instance:${(typeof ACCESS)[number]}`
  | typeof PRIVATE_UPLOADS
  | `org:${(typeof ACCESS)[number]}`
  | `org:${(typeof RESOURCES)[number]}:${(typeof ACCESS)[number]}`

export const SCOPES: readonly Scope[] = [
  'admin',
  ...ACCESS.map((access) => `org:${access}` as const),
  ...RESOURCES.flatMap((resource) => ACCESS.map((access) => `org:${resource}:${access}` as const)),
  PRIVATE_UPLOADS,
  ...ACCESS.map((access) => `instance:${access}` as const),
]

export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text)
}

/** True for a scope about the whole instance. */
export const isOfInstance = (scope: string): boolean => scope.startsWith('instance:')

/** True where `held` grants `needed`: write includes read, `org:write` every resource, `admin` all but the instance's. */
export function grants(held: readonly string[], needed: Scope): boolean {
  if (isOfInstance(needed)) return held.includes(needed) || held.includes('instance:write')
  const enough: string[] = ['admin', needed]
  const [, resource, access] = /^org:(?:(\w+):)?(read|write)$/.exec(needed) ?? []
  if (access) enough.push('org:write')
  if (access === 'read') enough.push('org:read', `org:${resource}:write`)
  if (needed === PRIVATE_UPLOADS) enough.push('org:files:write')
  return enough.some((scope) => held.includes(scope))
}

/** True for a scope that lets its holder change something. */
export function isWrite(scope: Scope): boolean {
  return scope === 'admin' || scope.endsWith('write')
}
