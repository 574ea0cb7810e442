/**
 * A route is declared once: method, path, who may call it, the shapes of what goes in and out, and the
 * handler. From that declaration come the Express route, the validation and the OpenAPI document.
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
import type { Callers } from './cross-origin.ts'
import { abortOnDisconnect } from './disconnect.ts'
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
import { type AgentCaller, grants, isOfInstance, isWrite, type Principal, type Scope } from './principal.ts'
import type { RateLimiter } from './rate-limit.ts'
import { askForPassword, idempotencyKey, type Prefer, parsePrefer, takePassword } from './request-headers.ts'
import { transferOf } from './request-transfer.ts'
import { requireWorkspace, sessionOf } from './session-cookie.ts'
import { describeIssue, describeQueryIssue } from './shapes.ts'

export type Schema = z.ZodType
type Output<T> = T extends Schema ? z.output<T> : undefined

export interface Context<P, Q, B> {
  principal: Principal
  /** The agent of the path, as the guard gave it. */
  agent: unknown
  params: P
  query: Q
  body: B
  /** The `Prefer` header; empty on routes that start no operation. */
  prefer: Prefer
  /** The `Idempotency-Key` header, checked. */
  idempotencyKey: string | undefined
  /** The entry of the audit, for a handler that writes it together with its change; undefined for a read. */
  entry: EntryOfChange | undefined
  req: Request
  res: Response
  /** Fires when the client has gone, or its key or token is no longer good. */
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
  /** The same route under other paths, for clients that spell it another way. */
  aliases?: string[]
  id: string
  tag: string
  summary: string
  description?: string
  /** The scope that the key needs, or one of several; `any` for every valid key, `null` for a route without a key. */
  scope: Scope | Scope[] | 'any' | null
  /** The key's user must be an owner of the workspace. */
  role?: 'owner'
  /**
   * Only a session of the dashboard may ask: a key is of one workspace, and how and where a user signs in concerns all
   * workspaces of the user. Keys are refused with this message, or with a general one.
   */
  session?: true | string
  /** The tokens of agents that are let in beside keys; none where it says nothing. */
  callers?: readonly AgentCaller[]
  /** The key may also be the password of HTTP Basic. */
  basic?: boolean
  /** The origins whose pages may call the route; `isOpenToPages` has the default. */
  origins?: Callers['origins']
  /** Clients that can only send POST may name the method in `X-HTTP-Method-Override`. */
  overridden?: true
  params?: Schema
  query?: Schema
  /** JSON; a schema that takes undefined makes the body optional. */
  body?: Schema
  /** The message for a body that is not of this schema, where the contract fixes one; the field is in `Error-Detail`. */
  invalidBody?: string
  /** A body that the handler reads from `req` itself: its media type and, for the document, its parts. */
  stream?: { mediaType: string; schema: Schema }
  /** The status and schema of success, and the media type where it is not JSON; `lines` is another one, of JSON lines or events. */
  success: { status: number; description: string; body?: Schema; mediaType?: string; lines?: string }
  /** Another success, with a body of its own or none. */
  otherSuccess?: { status: number; description: string; body?: Schema }
  /** A failure whose body has more than `error`: the contract has one. */
  otherFailure?: { status: number; body: Schema }
  /** Statuses of failure beside those that every route of its sort has. */
  errors?: number[]
  /** The kind of work that it is, where that is bounded: an answer under way has a place of it. Needs a key. */
  bound?: BoundKind
  /** Said of a route without a key that only begins a sign-in: nobody has done anything yet, and a flood fills no disk. */
  audited?: false
  /** The handler writes the entry of the audit, `entry`, in the statement of its change. */
  entryWithChange?: boolean
  /** The route starts an operation: `Prefer`, `Idempotency-Key`, `Operation-Id` and `Location` apply. */
  operation?: boolean
  handle(context: Context<unknown, unknown, unknown>): Promise<RouteResponse | undefined>
}

/** A {@link Route} whose handler's context has the types of its shapes. */
export type Declared<P, Q, B, More = unknown> = Omit<Route, 'params' | 'query' | 'body' | 'handle'> & {
  params?: P
  query?: Q
  body?: B
  /** Resolves to the answer, or to undefined when it wrote the response itself. */
  handle(context: Context<Output<P>, Output<Q>, Output<B>> & More): Promise<RouteResponse | undefined>
}

/** Declares a route; its handler's context has the types of its shapes. */
export function route<
  P extends Schema | undefined = undefined,
  Q extends Schema | undefined = undefined,
  B extends Schema | undefined = undefined,
>(declared: Declared<P, Q, B>): Route {
  return declared as unknown as Route
}

/** Decides who may call. It is handed in, so that routing knows neither accounts nor agents. */
export interface Guard {
  /** The caller of an Authorization header. @throws ApiError 401 */
  authenticate(header: string | undefined): Promise<Principal>
  /** The caller of a session's cookie. @throws ApiError 401 */
  authenticateSession(cookie: string): Promise<Principal>
  /**
   * The agent of a path, for a caller who may reach it.
   * @param callers the tokens of agents that the route takes.
   * @throws ApiError 401, 403 or 404
   */
  authorize(principal: Principal, agentId: string, callers: readonly AgentCaller[]): Promise<unknown>
  /** Lets a caller reach what is not one agent's. @throws ApiError 403 */
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

/** Mounts routes, one router for each first two segments of a path: none is searched among all the others. */
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
  // After all routes, and a path before those with more parameters, which it would match.
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
 * The caller of a request, counted against the plan.
 * @param session the cookie of a session, where that may be the caller.
 * @throws ApiError 401 without a good key, 403 without the scope, 429 above the limit of the plan or the address.
 */
export async function authenticateRequest(
  { guard, rateLimiter, addresses, audit }: RouteServices,
  req: Request,
  res: Response,
  scope: Scope | Scope[] | 'any',
  session?: string,
): Promise<Principal> {
  const { authorization } = req.headers
  const principal = await addresses
    .login(req, () =>
      session === undefined ? guard.authenticate(authorization) : guard.authenticateSession(session),
    )
    .catch((error) => {
      const isSignIn = session !== undefined || authorization !== undefined
      if (isSignIn && error instanceof ApiError) audit.failedSignIn(req, res, error.code)
      throw error
    })
  res.locals.caller = principal
  await rateLimiter.consume(principal, res)
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
      throw declared.basic ? askForPassword(error) : error
    }
    next()
  }
  const { bound } = declared
  const answer: RequestHandler = (req, res) => {
    if (!bound) return handle(req, res)
    const work = async () => {
      await handle(req, res)
      // A client may take its time to read.
      if (!res.closed) await once(res, 'close')
    }
    const transfer = transferOf(req, res, (error) => res.locals.gone.abort(error))
    return services.bounds.run(bound, res.locals.principal, work, transfer)
  }
  const handle = async (req: Request, res: Response) => {
    // Its body came too late, or had to make room: the answer was an error.
    if (res.headersSent) return
    const { principal } = res.locals
    const { signal } = res.locals.gone as AbortController
    // The body may have taken long, and the news of its key may have come just now.
    if (principal) await services.calls.settled(res.locals.since)
    throwIfEnded(signal)
    // Answers have tokens, and what a key may see; a handler whose answer may be kept says so.
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
    // Where bytes come without a key, the handler knows the caller first.
    if (!declared.entryWithChange && (principal || !declared.stream)) await beginEntry(res)
    const result = await declared.handle(context).catch((error) => {
      throwIfEnded(signal)
      throw error
    })
    // A change that was made is answered; a read is not, once the key has been revoked.
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

/** Leaves the caller, and the agent of the path, in `res.locals`. @throws ApiError */
async function admitCaller(declared: Route, services: RouteServices, req: Request, res: Response) {
  const { scope, path, callers = [] } = declared
  if (scope === null) return services.addresses.countRequest(req)
  const { guard, calls } = services
  const since = calls.changeCount
  const principal = await authenticateRequest(services, req, res, scope, sessionOf(req))
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

/** @throws ApiError 400 naming the first parameter at fault. */
function parseQuery(schema: Schema, input: unknown): unknown {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  throw badRequest(describeQueryIssue(parsed.error, input))
}

/** @throws ApiError 400 naming the first field at fault, in `Error-Detail` where there is a fixed message. */
function parse(schema: Schema, input: unknown, message?: string): unknown {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const detail = input === undefined ? 'body: a JSON body is required' : describeIssue(parsed.error)
  throw message ? contractError(400, 'bad_request', message, detail) : badRequest(detail)
}
