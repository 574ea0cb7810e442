/**
 * A route is declared once: method, path, who may call it, the shapes of what goes in and out, and the
 * handler. From that declaration come the Express route, the validation and the OpenAPI document.
 */
import express, { type Request, type RequestHandler, type Response, Router } from 'express'
import type { z } from 'zod'
import type { Authenticator, Principal } from '../accounts/authenticator.ts'
import { grants, isWrite, type Scope } from '../accounts/scopes.ts'
import type { AgentAccess } from '../agents/access.ts'
import type { Agent } from '../agents/agent.ts'
import { ApiError, badRequest, contractError, forbidden, messages } from '../errors.ts'
import { askForPassword, takePassword } from './basic.ts'
import { type Prefer, parsePrefer } from './prefer.ts'
import type { RateLimiter } from './rate-limit.ts'

type Shape = z.ZodType
type Output<T> = T extends Shape ? z.output<T> : undefined

export interface Context<P, Q, B> {
  principal: Principal
  agent: Agent | undefined
  params: P
  query: Q
  body: B
  /** The `Prefer` header; empty on routes that start no operation. */
  prefer: Prefer
  /** The `Idempotency-Key` header, checked. */
  idempotencyKey: string | undefined
  req: Request
  res: Response
  /** Fires when the client has gone. */
  signal: AbortSignal
}

export interface Answer {
  status?: number
  headers?: Record<string, string>
  body: unknown
}

export interface Route {
  method: 'get' | 'head' | 'post' | 'put' | 'patch' | 'delete' | 'options'
  /** In Express 5's spelling: `/v3/files/:network/:id`. */
  path: string
  /** The same route under other paths, for clients that spell it another way. */
  aliases?: string[]
  id: string
  tag: string
  summary: string
  description?: string
  /** The scope that the key needs, or one of several; `any` for every valid key, `null` for a route without a key. */
  scope: Scope | Scope[] | 'any' | null
  /**
   * On paths with `:agentId`: whether the agent's own gateway token is a key as well (`any`), or only its
   * owner's keys are (`owner`). The handler gets the agent, see {@link agentRoute}.
   */
  agent?: 'any' | 'owner'
  /** Whether the key may also be the password of HTTP Basic. */
  basic?: boolean
  /** On other paths: whether an agent's own tokens are keys as well. The handler keeps to what is that agent's. */
  openToAgents?: boolean
  params?: Shape
  query?: Shape
  /** JSON; a shape that takes undefined makes the body optional. */
  body?: Shape
  /** The message for a body that is not of this shape, where the contract fixes one; the field is in `Error-Detail`. */
  invalidBody?: string
  /** A body that the handler reads from `req` itself: its media type and, for the document, its parts. */
  stream?: { mediaType: string; shape: Shape }
  /** The status and shape of success, and the media type where it is not JSON. */
  success: { status: number; description: string; body?: Shape; mediaType?: string }
  /** Another success, with a body of its own or none. */
  otherSuccess?: { status: number; description: string; body?: Shape }
  /** A failure whose body has more than `error`: the contract has one. */
  otherFailure?: { status: number; body: Shape }
  /** Statuses of failure beside those that every route of its sort has. */
  errors?: number[]
  /** Whether it starts an operation: `Prefer`, `Idempotency-Key`, `Operation-Id` and `Location` apply. */
  operation?: boolean
  handle(context: Context<unknown, unknown, unknown>): Promise<Answer | undefined>
}

type Declared<P, Q, B, More = unknown> = Omit<Route, 'params' | 'query' | 'body' | 'handle'> & {
  params?: P
  query?: Q
  body?: B
  /** Resolves to the answer, or to undefined when it wrote the response itself. */
  handle(context: Context<Output<P>, Output<Q>, Output<B>> & More): Promise<Answer | undefined>
}

/** Declares a route; its handler's context has the types of its shapes. */
export function route<
  P extends Shape | undefined = undefined,
  Q extends Shape | undefined = undefined,
  B extends Shape | undefined = undefined,
>(declared: Declared<P, Q, B>): Route {
  return declared as unknown as Route
}

/**
 * Declares a route of one agent, with `:agentId` in its path. Its handler is called only for a live agent that
 * the caller may reach: 404 where there is none, 401 where it is another workspace's (contract 5.3).
 */
export function agentRoute<
  P extends Shape | undefined = undefined,
  Q extends Shape | undefined = undefined,
  B extends Shape | undefined = undefined,
>(declared: Declared<P, Q, B, { agent: Agent }> & { agent: 'any' | 'owner' }): Route {
  return declared as unknown as Route
}

export interface RouteServices {
  authenticator: Authenticator
  rateLimiter: RateLimiter
  agents: AgentAccess
}

const BODY_LIMIT = '1mb'
/** A body is JSON whatever its Content-Type says: `curl -d` alone would call it a form. */
const parseJson = express.json({ limit: BODY_LIMIT, strict: false, type: () => true })
const BODY_MS = 60_000

/** Ends the wait for a JSON body: the server has no limit on requests, since uploads take long. */
const limitBodyTime: RequestHandler = (req, _res, next) => {
  const late = setTimeout(
    () => next(new ApiError(408, 'timeout', `body: did not arrive within ${BODY_MS / 1000} seconds`)),
    BODY_MS,
  )
  for (const event of ['end', 'close']) req.once(event, () => clearTimeout(late))
  next()
}

/** Mounts routes, one router for each first two segments of a path: none is searched among all the others. */
export function mountRoutes(app: express.Express, routes: Route[], services: RouteServices): void {
  const routers = new Map<string, Router>()
  for (const declared of routes) {
    for (const path of [declared.path, ...(declared.aliases ?? [])]) {
      const prefix = /^\/[^/]+\/[^/:]+/.exec(path)?.[0] ?? '/'
      let router = routers.get(prefix)
      if (!router) {
        router = Router({ caseSensitive: true })
        routers.set(prefix, router)
        app.use(prefix, router)
      }
      const rest = prefix === '/' ? path : path.slice(prefix.length) || '/'
      router[declared.method](rest, ...middleware(declared, services))
    }
  }
}

/**
 * Who asks, counted against their plan.
 * @throws ApiError 401 without a good key, 403 without the scope, 429 above the plan's limit.
 */
export async function identify(
  { authenticator, rateLimiter, agents }: RouteServices,
  { headers: { authorization } }: Request,
  res: Response,
  scope: Scope | Scope[] | 'any',
): Promise<Principal> {
  const principal =
    (await agents.authenticate(authorization)) ?? (await authenticator.authenticate(authorization))
  await rateLimiter.consume(principal, res)
  if (scope !== 'any') requireScope(principal, [scope].flat())
  return principal
}

function middleware(declared: Route, services: RouteServices): RequestHandler[] {
  const admit: RequestHandler = async (req, res, next) => {
    if (declared.basic) takePassword(req)
    try {
      await admitCaller(declared, services, req, res)
    } catch (error) {
      throw declared.basic ? askForPassword(error) : error
    }
    next()
  }
  const answer: RequestHandler = async (req, res) => {
    const gone = new AbortController()
    res.once('close', () => {
      if (!res.writableFinished) gone.abort()
    })
    const result = await declared.handle({
      principal: res.locals.principal,
      agent: res.locals.agent,
      params: declared.params && parse(declared.params, req.params),
      query: declared.query && parse(declared.query, req.query),
      body: declared.body && parse(declared.body, req.body, declared.invalidBody),
      prefer: declared.operation ? parsePrefer(req.headers.prefer) : { waitMs: undefined },
      idempotencyKey: declared.operation ? idempotencyKey(req) : undefined,
      req,
      res,
      signal: gone.signal,
    })
    if (!result || res.headersSent) return
    res.status(result.status ?? declared.success.status)
    if (result.headers) res.set(result.headers)
    res.json(result.body)
  }
  // The key is checked before the body is read.
  return declared.body ? [admit, limitBodyTime, bodyParser(declared), answer] : [admit, answer]
}

/** Leaves the caller, and the agent of the path, in `res.locals`. @throws ApiError */
async function admitCaller(declared: Route, services: RouteServices, req: Request, res: Response) {
  const { scope, agent, openToAgents } = declared
  if (scope === null) return
  const principal = await identify(services, req, res, scope)
  const { agents } = services
  if (agent) res.locals.agent = await agents.admit(principal, String(req.params.agentId), agent)
  else if (!openToAgents) agents.admitToWorkspace(principal)
  res.locals.principal = principal
}

/** Reads JSON; where the contract fixes a message for a bad body, text that is no JSON gets it as well. */
function bodyParser({ invalidBody }: Route): RequestHandler {
  if (!invalidBody) return parseJson
  return (req, res, next) =>
    parseJson(req, res, (error?: unknown) => {
      const isNoJson = (error as { type?: string } | undefined)?.type === 'entity.parse.failed'
      next(isNoJson ? contractError(400, 'bad_request', invalidBody, 'body: not valid JSON') : error)
    })
}

/** @throws ApiError 403 unless the key has one of the scopes, and its user may use it. */
export function requireScope(principal: Principal, scopes: Scope[]): void {
  const granted = scopes.filter((scope) => grants(principal.scopes, scope))
  if (granted.length === 0) throw forbidden(`Missing scope: ${scopes.join(' or ')}`, 'missing_scope')
  if (principal.role === 'viewer' && granted.every(isWrite)) throw forbidden(messages.permissionDenied)
}

/** @throws ApiError 400 naming the first field at fault, in `Error-Detail` where there is a fixed message. */
function parse(shape: Shape, input: unknown, message?: string): unknown {
  const parsed = shape.safeParse(input)
  if (parsed.success) return parsed.data
  const detail = input === undefined ? 'body: a JSON body is required' : describeIssue(parsed.error)
  throw message ? contractError(400, 'bad_request', message, detail) : badRequest(detail)
}

/** What is wrong with an input, for people: the first field at fault, and why. */
export function describeIssue({ issues: [issue] }: z.ZodError): string {
  // What is wrong with a key stands inside; the key itself may be anything, and is not repeated.
  const key = issue?.code === 'invalid_key' ? issue.issues[0] : undefined
  const path = fieldPath(issue?.path.slice(0, key ? -1 : undefined) ?? [])
  return `${path || 'body'}: ${(key ?? issue)?.message}`
}

/** As clients write it: `mappings[0].port`. */
const fieldPath = (path: PropertyKey[]): string =>
  path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '')

function idempotencyKey(req: Request): string | undefined {
  const key = req.get('idempotency-key')
  if (key === undefined) return undefined
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw badRequest('Idempotency-Key: must be 1 to 255 visible ASCII characters')
}
