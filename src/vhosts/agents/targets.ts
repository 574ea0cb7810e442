/**
 * The complete list of targets on an agent's own host. In particular, it excludes the engine's admin RPC: agentd's
 * proxy opens the whole gateway to its users, so this list decides what may be requested.
 */

import type { Protocol } from '../../agents/agent.ts'

export type Target =
  /** An API route. */
  | { kind: 'api'; path: string }
  /** A path of the engine's gateway. */
  | { kind: 'gateway'; path: string }
  /** The stream of log lines. */
  | { kind: 'logs' }
  /** An API route about another agent. */
  | { kind: 'foreign' }

/** Short for the same path below `/v0/agents/<this agent>`. */
const SHORT_FORM =
  /^\/v0(\/(?:platform|status|restart|skills|secrets|port-forwarding|config|console|channels|logs)(?:\/.*)?)$/
/** Responses that start an operation name it in `Location`. */
const OPERATION = /^\/v0\/operations\//

/** Paths of the protocols that an agent may offer, below the agent's path in the API too. */
const PROTOCOL_PATHS = new Map<string, Protocol>([
  ['/.well-known/agent-card.json', 'a2a'],
  ['/a2a', 'a2a'],
  ['/mcp', 'mcp'],
])

/** A path of one or more names; nothing that a URL parser would treat as a parent directory. */
export const NAMES = String.raw`[\w-]+(?:[:/][\w-]+)*`
/**
 * Chat for OpenAI's clients, the list of models, and webhooks. Left out: `/tools/invoke`, which calls tools without the
 * agent, and the gateway's pages. `/` and `/chat` without an upgrade report the gateway's health.
 */
const GATEWAY: [method: string, path: RegExp, gatewayPath?: string][] = [
  ['GET', /^\/(?:chat\/?)?$/, '/health'],
  ['GET', /^\/v1\/models$/],
  ['GET', new RegExp(`^/v1/models/${NAMES}$`)],
  ['POST', /^\/v1\/chat\/completions$/],
  ['POST', /^\/v1\/responses$/],
  ['POST', new RegExp(`^/hooks/${NAMES}$`)],
]

/**
 * The target of a request to an agent's host; undefined for a path that leads nowhere.
 * @param protocols that the agent offers; their paths are the agent's own otherwise.
 */
export function findTarget(
  method: string,
  path: string,
  agentId: string,
  protocols: readonly Protocol[] = [],
): Target | undefined {
  const [, named, rest = ''] = /^\/v0\/agents\/([^/]+)(\/.*)?$/.exec(path) ?? []
  if (named !== undefined && named !== agentId) return { kind: 'foreign' }
  if (named !== undefined) return { kind: 'api', path: `/v0/agents/${agentId}${rest}` }
  const [, short] = SHORT_FORM.exec(path) ?? []
  if (short) return { kind: 'api', path: `/v0/agents/${agentId}${short}` }
  const protocol = PROTOCOL_PATHS.get(path)
  if (protocol && protocols.includes(protocol)) return { kind: 'api', path: `/v0/agents/${agentId}${path}` }
  if (OPERATION.test(path)) return { kind: 'api', path }
  const found = GATEWAY.find(([allowed, pattern]) => allowed === method && pattern.test(path))
  return found && { kind: 'gateway', path: found[2] ?? path }
}

/** The methods of a gateway path, in the order of the list; empty for any other path. */
export const gatewayMethods = (path: string): string[] =>
  GATEWAY.filter(([, pattern]) => pattern.test(path)).map(([method]) => method)

/** The target of a WebSocket to an agent's host; undefined for a path that leads nowhere. */
export function findSocketTarget(path: string, agentId: string): Target | undefined {
  if (/^\/(?:chat\/?)?$/.test(path)) return { kind: 'gateway', path: '/' }
  const target = findTarget('GET', path, agentId)
  if (target?.kind === 'foreign') return target
  return target?.kind === 'api' && target.path === `/v0/agents/${agentId}/logs` ? { kind: 'logs' } : undefined
}
