/** Admits requests to routes: identifies the caller, and checks its scopes, its role and the limits of its plan. */
import type { Request, Response } from 'express'
import { ApiError, forbidden, messages, notFound, unauthorized } from '../errors.ts'
import type { Bounds } from '../lib/bounds.ts'
import type { AddressLimits } from './address-limits.ts'
import type { Audit } from './audit.ts'
import { callerOfConnection } from './in-process.ts'
import { byCaller, type OpenCalls } from './open-calls.ts'
import {
  type AgentCaller,
  type Audience,
  grants,
  isOfInstance,
  isWrite,
  type Principal,
  type Scope,
} from './principal.ts'
import type { RateLimiter } from './rate-limit.ts'
import type { Route } from './route.ts'
import { requireWorkspace, sessionOf } from './session-cookie.ts'

/** Decides who may call. It is passed in, so that routing does not depend on accounts or agents. */
export interface Guard {
  /** The caller of an Authorization header. @param audience the route's. @throws ApiError 401 */
  authenticate(header: string | undefined, audience?: Audience): Promise<Principal>
  /** The caller of a session's cookie. @throws ApiError 401 */
  authenticateSession(cookie: string): Promise<Principal>
  /**
   * The agent of a path, for a caller with access to it.
   * @param callers the agents' tokens that the route accepts.
   * @throws ApiError 401, 403 or 404
   */
  authorize(principal: Principal, agentId: string, callers: readonly AgentCaller[]): Promise<unknown>
  /** Admits a caller to a route that is not about a single agent. @throws ApiError 403 */
  admitToWorkspace(principal: Principal, callers: readonly AgentCaller[]): void
}

export interface RouteServices {
  guard: Guard
  rateLimiter: RateLimiter
  addresses: AddressLimits
  bounds: Bounds
  calls: OpenCalls
  audit: Audit
}

/**
 * Authenticates a request and counts it against the plan.
 * @param options.session the session cookie, if the route accepts sessions. @param options.audience the route's.
 * @throws ApiError 401 without a valid key, 403 without the scope, 429 above the limit of the plan or the address.
 */
export async function authenticateRequest(
  { guard, rateLimiter, addresses, audit }: RouteServices,
  req: Request,
  res: Response,
  scope: Scope | Scope[] | 'any',
  { session, audience }: { session?: string | undefined; audience?: Audience | undefined } = {},
): Promise<Principal> {
  const { authorization } = req.headers
  const known = callerOfConnection(req)?.principal
  const principal =
    known ??
    (await addresses
      .login(req, () =>
        session === undefined
          ? guard.authenticate(authorization, audience)
          : guard.authenticateSession(session),
      )
      .catch((error) => {
        const isSignIn = session !== undefined || authorization !== undefined
        if (isSignIn && error instanceof ApiError) audit.failedSignIn(req, res, error.code)
        throw error
      }))
  res.locals.caller = principal
  if (!known) await rateLimiter.consume(principal, res)
  if (scope !== 'any') requireScope(principal, [scope].flat())
  return principal
}

/** Stores the caller and the agent of the path in `res.locals`. @throws ApiError */
export async function admitCaller(declared: Route, services: RouteServices, req: Request, res: Response) {
  const { scope, path, callers = [], audience } = declared
  if (scope === null) return services.addresses.countRequest(req)
  const { guard, calls } = services
  const since = callerOfConnection(req)?.since ?? calls.changeCount
  const principal = await authenticateRequest(services, req, res, scope, {
    session: sessionOf(req),
    audience,
  })
  if (principal.isSession) requireWorkspace(req, principal.workspaceId)
  if (path.includes('/:agentId'))
    res.locals.agent = await guard.authorize(principal, String(req.params.agentId), callers)
  else guard.admitToWorkspace(principal, callers)
  if (
    path.includes('/:workspaceId') &&
    req.params.workspaceId?.toString().toLowerCase() !== principal.workspaceId
  )
    throw notFound('There is no such workspace')
  if (declared.role === 'owner' && principal.role !== 'owner') throw forbidden(messages.permissionDenied)
  if (declared.session && !principal.isSession)
    throw forbidden(declared.session === true ? messages.sessionNeeded : declared.session, 'session_needed')
  res.locals.principal = principal
  res.locals.since = since
  const end = () => {
    res.locals.gone.abort(unauthorized(messages.badToken, 'bad_token'))
    if (res.headersSent && !res.writableEnded) res.destroy()
  }
  const forget = calls.add({ grounds: [byCaller(principal)], expiresAt: principal.expiresAt, since, end })
  if (res.closed) forget()
  else res.once('close', forget)
}

/** @throws ApiError 403 unless the key has one of the scopes, and its user may use it. */
export function requireScope(principal: Principal, scopes: Scope[]): void {
  const granted = scopes.filter((scope) => grants(principal.scopes, scope))
  if (granted.length === 0) throw forbidden(`Missing scope: ${scopes.join(' or ')}`, 'missing_scope')
  if (granted.every(isOfInstance) && !principal.isInstanceAdmin)
    throw forbidden('The user of this key is no admin of the instance', 'no_instance_admin')
  if (principal.role === 'viewer' && granted.every(isWrite)) throw forbidden(messages.permissionDenied)
}
