/**
 * Decides who may see an event (`maySee`, which every stream calls). Also has type patterns for streams and webhooks.
 */
import { z } from 'zod'
import { grants, type Principal } from '../http/principal.ts'
import { catalog, type OperationKind } from '../operations/catalog.ts'
import type { StoredEvent } from './event.ts'
import { type Audience, EVENT_TYPES, type EventType, eventTypes } from './event-types.ts'

/** The fields of a caller that determine which events it may see. */
export type Viewer = Pick<Principal, 'workspaceId' | 'userId' | 'role' | 'scopes' | 'agent'>

/** True if the viewer may see the event. No viewer may see a type that this version does not know. */
export function maySee(viewer: Viewer, event: StoredEvent): boolean {
  if (event.workspaceId !== viewer.workspaceId || !Object.hasOwn(eventTypes, event.type)) return false
  if (viewer.agent && event.data.agentId !== viewer.agent.agentId) return false
  return isIn(viewer, eventTypes[event.type as EventType].audience, event)
}

function isIn(viewer: Viewer, audience: Audience, { data }: StoredEvent): boolean {
  const isOwner = !viewer.agent && viewer.role === 'owner' && viewer.scopes.includes('admin')
  if (audience === 'owner') return isOwner
  if (audience === 'key')
    return isOwner || (!viewer.agent && data.userId === viewer.userId && grants(viewer.scopes, 'org:read'))
  let resource: 'files' | 'groups' | 'agents' | 'gateways' | null | undefined
  if (audience === 'operation') resource = catalog[data.kind as OperationKind]?.resource
  else if (audience === 'domain') resource = data.agentId ? 'agents' : 'gateways'
  else resource = audience
  return resource !== undefined && resource !== null && grants(viewer.scopes, `org:${resource}:read`)
}

const PATTERN = /^([a-z]+\.(\*|[a-z]+(\.[a-z]+)?)|\*)$/

/** A type, all types of a resource (`file.*`), or all types (`*`); unknown types are rejected. */
export const typePattern = z
  .string()
  .refine(
    (pattern) => PATTERN.test(pattern) && EVENT_TYPES.some((type) => matchesType(pattern, type)),
    'must be a type of event, such as file.created, or file.* or *',
  )

/** True if the pattern, a {@link typePattern}, matches the type. */
export function matchesType(pattern: string, type: string): boolean {
  if (pattern === '*') return true
  return pattern.endsWith('.*') ? type.startsWith(pattern.slice(0, -1)) : pattern === type
}
