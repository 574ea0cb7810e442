/** The caller of a request, and the permissions of keys. `Guard` (route.ts) turns a header into a {@link Principal}. */
import type { Plan } from '../db/statements/plan.ts'

export type Role = 'owner' | 'member' | 'viewer'

/**
 * Agents' tokens, as routes name those that they accept. `gateway` and `platform` are the tokens of an agent, each only
 * for that agent. `workspace` is a platform token for the rest of the agent's workspace, widened by
 * BERTH_PLATFORM_TOKEN_SCOPE. `widened` accepts both tokens for their own agent if that setting widens them.
 */
export type AgentCaller = 'gateway' | 'platform' | 'workspace' | 'widened'

/** Where a key works, if it does not work everywhere: its tokens have this audience. */
export type Audience = 'mcp'

/** The caller of a request. */
export interface Principal {
  keyId: string
  /** The key's limits; `null` for none. */
  maxUses: number | null
  expiresAt: Date | null
  workspaceId: string
  userId: string
  role: Role
  /** The user may administer the whole instance, with keys that have a scope for it. */
  isInstanceAdmin: boolean
  scopes: string[]
  plan: Plan
  /** Set if the caller is a dashboard session; `keyId` is the session's. */
  isSession?: boolean
  /**
   * Set if the caller is an agent, through its gateway token or a platform token; its permissions are limited to the
   * agent.
   */
  agent?: {
    agentId: string
    by: 'gateway' | 'platform'
    /** A text that changes when the agent's gateway token changes. */
    fingerprint: string
    /** The agent's token may access more of its workspace than the agent, on routes that allow it. */
    isWide: boolean
  }
}

const RESOURCES = ['files', 'groups', 'gateways', 'analytics', 'agents'] as const
const ACCESS = ['read', 'write'] as const

/** Uploads that stay private regardless of the request: a part of `org:files:write`. */
const PRIVATE_UPLOADS = 'org:private_files:write'

/**
 * A scope of API keys: `org:<resource>:<read|write>`, `org:<read|write>` or `admin` for a workspace;
 * `instance:<read|write>` for the whole instance, which `admin` does not include and which only works for instance
 * admins.
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

/**
 * True if `held` grants `needed`: write includes read, `org:write` every resource, `admin` everything except the
 * instance's.
 */
export function grants(held: readonly string[], needed: Scope): boolean {
  if (isOfInstance(needed)) return held.includes(needed) || held.includes('instance:write')
  const enough: string[] = ['admin', needed]
  const [, resource, access] = /^org:(?:(\w+):)?(read|write)$/.exec(needed) ?? []
  if (access) enough.push('org:write')
  if (access === 'read') enough.push('org:read', `org:${resource}:write`)
  if (needed === PRIVATE_UPLOADS) enough.push('org:files:write')
  return enough.some((scope) => held.includes(scope))
}

/** True for a scope that allows changes. */
export function isWrite(scope: Scope): boolean {
  return scope === 'admin' || scope.endsWith('write')
}
