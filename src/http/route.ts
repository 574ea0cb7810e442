/**
 * A route is declared once: method, path, permissions, the shapes of input and output, and the handler. The Express
 * route, the validation and the OpenAPI document are derived from that declaration.
 */
import { once } from 'node:events'
import { type Express, type Request, type RequestHandler, type Response, Router } from 'express'
import type { z } from 'zod'
import {
  ApiError,
  badRequest,
  contractError,
  forbidden,
  messages,
  notFound,
  unauthorized,
} from '../errors.ts'
import type { BoundKind, Bounds } from '../lib/bounds.ts'
import type { AddressLimits } from './address-limits.ts'
import { type Audit, beginEntry, type EntryOfChange, isAudited } from './audit.ts'
import { holdConnection } from './connection.ts'
import type { Callers } from './cross-origin.ts'
import { abortOnDisconnect } from './disconnect.ts'
import { callerOfConnection } from './in-process.ts'
import { readJson } from './json-body.ts'
import {
  answerPages,
  methodsForPages,
  methodsOf,
  overrideMethod,
  refuseMethod,
  restoreMethod,
} from './methods.ts'
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
import {
  askForPassword,
  challengeWith,
  idempotencyKey,
  type Prefer,
  parsePrefer,
  takePassword,
} from './request-headers.ts'
import { transferOf } from './request-transfer.ts'
import { requireWorkspace, sessionOf } from './session-cookie.ts'
import { describeIssue, describeQueryIssue } from './shapes.ts'

export type Schema = z.ZodType
type Output<T> = T extends Schema ? z.output<T> : undefined

export interface Context<P, Q, B> {
  principal: Principal
  /** The agent of the path, as returned by the guard. */
  agent: unknown
  params: P
  query: Q
  body: B
  /** The `Prefer` header; empty on routes that start no operation. */
  prefer: Prefer
  /** The validated `Idempotency-Key` header. */
  idempotencyKey: string | undefined
  /** The audit entry, for a handler that writes it together with its change; undefined for a read. */
  entry: EntryOfChange | undefined
  req: Request
  res: Response
  /** Fires when the client has disconnected, or its key or token is no longer valid. */
  signal: AbortSignal
}

export interface RouteResponse {
  status?: number
  headers?: Record<string, string>
  body: unknown
}

export interface Route {
  method: 'get' | 'head' | 'post' | 'put' | 'patch' | 'delete' | 'options'
  /** Path in Express 5's spelling: `/v3/files/:network/:id`. */
  path: string
  /** Other paths of the same route, for clients that spell it differently. */
  aliases?: string[]
  id: string
  tag: string
  summary: string
  description?: string
  /** The required scope, or alternatives; `any` for every valid key, `null` for a route without a key. */
  scope: Scope | Scope[] | 'any' | null
  /** The key's user must be an owner of the workspace. */
  role?: 'owner'
  /**
   * Only dashboard sessions are accepted: a key belongs to one workspace, while how and where a user signs in concerns
   * all of the user's workspaces. Keys are rejected with this message, or with a general one.
   */
  session?: true | string
  /** Agents' tokens that are accepted in addition to keys; default: none. */
  callers?: readonly AgentCaller[]
  /** The key may also be the HTTP Basic password. */
  basic?: boolean
  /** The route also accepts keys that work only there. */
  audience?: Audience
  /** The value of `WWW-Authenticate` in a 401. */
  challenge?: (req: Request) => string
  /** The origins whose pages may call the route; for the default, see `isOpenToPages`. */
  origins?: Callers['origins']
  /** Clients that can only send POST may name the method in `X-HTTP-Method-Override`. */
  overridden?: true
  params?: Schema
  query?: Schema
  /** JSON; a schema that accepts undefined makes the body optional. */
  body?: Schema
  /**
   * The message for a body that does not match this schema, if the contract fixes one; the field is then named in
   * `Error-Detail`.
   */
  invalidBody?: string
  /** A body that the handler reads from `req` itself: its media type and, for the OpenAPI document, its parts. */
  stream?: { mediaType: string; schema: Schema }
  /**
   * The status and schema of success, and the media type if it is not JSON; `lines` is an alternative, such as JSON
   * lines, events or CSV.
   */
  success: {
    status: number
    description: string
    body?: Schema
    mediaType?: string
    lines?: { mediaType: string; body: Schema }
  }
  /** Another success response, with its own body or none. */
  otherSuccess?: { status: number; description: string; body?: Schema }
  /** An error response with a body of its own. */
  otherFailure?: { status: number; body: Schema }
  /** Error statuses in addition to those of every route of its kind. */
  errors?: number[]
  /** The kind of work, if it is bounded: a response in progress takes a place of that kind. Needs a key. */
  bound?: BoundKind
  /**
   * For a route without a key that only begins a sign-in: nobody has done anything yet, and a flood must not fill the
   * disk.
   */
  audited?: false
  /** The handler writes the audit entry, `entry`, in the statement of its change. */
  entryWithChange?: boolean
  /**
   * The route is a WebSocket, and its handler resolves when the connection has ended. The audit records the beginning
   * under the route's id, and the end under this action.
   */
  connection?: { ended: string }
  /** The route starts an operation: `Prefer`, `Idempotency-Key`, `Operation-Id` and `Location` apply. */
  operation?: boolean
  handle(context: Context<unknown, unknown, unknown>): Promise<RouteResponse | undefined>
}

/** A {@link Route} whose handler's context is typed by its shapes. */
export type Declared<P, Q, B, More = unknown> = Omit<
  Route,
  'tag' | 'params' | 'query' | 'body' | 'success' | 'handle'
> & {
  params?: P
  query?: Q
  body?: B
  /** `status` defaults to 200. */
  success: Omit<Route['success'], 'status'> & { status?: number }
  /** Resolves to the response, or to undefined if it wrote the response itself. */
  handle(context: Context<Output<P>, Output<Q>, Output<B>> & More): Promise<RouteResponse | undefined>
}

/**
 * Returns the function that declares the routes of a tag; a handler's context is typed by the route's shapes. `More` is
 * what the guard adds to it, such as the agent.
 */
export const routesOf =
  <More = unknown>(tag: string) =>
  <
    P extends Schema | undefined = undefined,
    Q extends Schema | undefined = undefined,
    B extends Schema | undefined = undefined,
  >(
    declared: Declared<P, Q, B, More>,
  ): Route =>
    ({ ...declared, tag, success: { status: 200, ...declared.success } }) as unknown as Route

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
 * Mounts routes, with one router for the first two segments of a path, so that a request is not matched against all
 * routes.
 */
export function mountRoutes(app: Express, routes: Route[], services: RouteServices): void {
  const routers = new Map<string, Router>()
  const mounted = routes.flatMap((declared) =>
    [declared.path, ...(declared.aliases ?? [])].map((path) => {
      const prefix = /^\/[^/]+\/[^/:]+/.exec(path)?.[0] ?? '/'
      let router = routers.get(prefix)
      if (!router) {
        router = Router({ caseSensitive: true })
        routers.set(prefix, router)
        app.use(prefix, router)
      }
      const rest = prefix === '/' ? path : path.slice(prefix.length) || '/'
      return { router, path, rest, declared }
    }),
  )
  const byPath = Map.groupBy(mounted, ({ path }) => path)
  for (const same of byPath.values()) {
    const { router, rest } = same[0] as (typeof mounted)[number]
    const overridden = same.filter(({ declared }) => declared.overridden)
    if (overridden.length > 0) router.all(rest, overrideMethod(methodsOf(overridden)))
  }
  for (const { router, path, rest, declared } of mounted) {
    const handlers = [
      ...(declared.overridden ? [restoreMethod] : []),
      answerPages(declared, methodsForPages(byPath.get(path))),
      ...middleware(declared, services),
    ]
    router[declared.method](rest, ...handlers)
  }
  // After all routes, and before paths with more parameters that would also match.
  const parameters = (path: string) => path.split(/[:*]/).length
  // A parameter of several segments (`*slug`) also matches what follows it.
  const rank = (path: string) => [parameters(path), -path.split('/').length] as const
  const ranked = [...byPath].sort(([a], [b]) => rank(a)[0] - rank(b)[0] || rank(a)[1] - rank(b)[1])
  for (const [, same] of ranked) {
    const { router, rest } = same[0] as (typeof mounted)[number]
    router.all(rest, refuseMethod(methodsOf(same), methodsForPages(same)))
  }
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

function middleware(declared: Route, services: RouteServices): RequestHandler[] {
  const authorize: RequestHandler = async (req, res, next) => {
    res.locals.gone = abortOnDisconnect(res)
    if (declared.basic) takePassword(req)
    try {
      await admitCaller(declared, services, req, res)
    } catch (error) {
      if (declared.challenge) throw challengeWith(error, declared.challenge(req))
      throw declared.basic ? askForPassword(error) : error
    }
    next()
  }
  const { bound } = declared
  const answer: RequestHandler = (req, res) => {
    if (!bound) return handle(req, res)
    const work = async () => {
      await handle(req, res)
      // A client may read slowly.
      if (!res.closed && !declared.connection) await once(res, 'close')
    }
    const transfer = transferOf(req, res, (error) => res.locals.gone.abort(error))
    return services.bounds.run(bound, res.locals.principal, work, transfer)
  }
  const handle = async (req: Request, res: Response) => {
    // The body arrived too late, or had to make room: an error response was sent.
    if (res.headersSent) return
    const { principal } = res.locals
    const { signal } = res.locals.gone as AbortController
    // The body may have taken long, and a change of the key may have been reported just now.
    if (principal) await services.calls.settled(res.locals.since)
    throwIfEnded(signal)
    // Responses contain tokens and confidential data; handlers of cacheable responses override this.
    res.set('Cache-Control', 'no-store')
    const context = {
      principal,
      agent: res.locals.agent,
      params: declared.params && parse(declared.params, req.params),
      query: declared.query && parseQuery(declared.query, req.query),
      body: declared.body && parse(declared.body, req.body, declared.invalidBody),
      prefer: declared.operation ? parsePrefer(req.headers.prefer) : { waitMs: undefined },
      idempotencyKey: declared.operation ? idempotencyKey(req) : undefined,
      entry: res.locals.entry,
      req,
      res,
      signal,
    }
    // If bytes are uploaded without a key, the handler identifies the caller first.
    if (!declared.entryWithChange && (principal || !declared.stream)) await beginEntry(res)
    const work = () => declared.handle(context)
    if (declared.connection)
      return holdConnection(services.audit, declared, declared.connection.ended, { req, res }, work)
    const result = await work().catch((error) => {
      throwIfEnded(signal)
      throw error
    })
    // A completed change gets its response; a read does not once the key has been revoked.
    if (declared.method === 'get') throwIfEnded(signal)
    if (!result || res.headersSent) return
    res.locals.answer = result.body
    res.status(result.status ?? declared.success.status)
    if (result.headers) res.set(result.headers)
    res.json(result.body)
  }
  const recorded = isAudited(declared) ? [services.audit.ofRoute(declared)] : []
  // The key is checked before the body is read.
  if (!declared.body) return [...recorded, authorize, answer]
  return [...recorded, authorize, ...readJson(declared, services.bounds), answer]
}

/** Stores the caller and the agent of the path in `res.locals`. @throws ApiError */
async function admitCaller(declared: Route, services: RouteServices, req: Request, res: Response) {
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

/** @throws ApiError 401 once the caller's key or token is no longer good. */
function throwIfEnded({ reason }: AbortSignal): void {
  if (reason instanceof ApiError) throw reason
}

/** @throws ApiError 403 unless the key has one of the scopes, and its user may use it. */
export function requireScope(principal: Principal, scopes: Scope[]): void {
  const granted = scopes.filter((scope) => grants(principal.scopes, scope))
  if (granted.length === 0) throw forbidden(`Missing scope: ${scopes.join(' or ')}`, 'missing_scope')
  if (granted.every(isOfInstance) && !principal.isInstanceAdmin)
    throw forbidden('The user of this key is no admin of the instance', 'no_instance_admin')
  if (principal.role === 'viewer' && granted.every(isWrite)) throw forbidden(messages.permissionDenied)
}

/** @throws ApiError 400 naming the first invalid parameter. */
function parseQuery(schema: Schema, input: unknown): unknown {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  throw badRequest(describeQueryIssue(parsed.error, input))
}

/** @throws ApiError 400 naming the first invalid field, in `Error-Detail` if there is a fixed message. */
function parse(schema: Schema, input: unknown, message?: string): unknown {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const detail = input === undefined ? 'body: a JSON body is required' : describeIssue(parsed.error)
  throw message ? contractError(400, 'bad_request', message, detail) : badRequest(detail)
}
