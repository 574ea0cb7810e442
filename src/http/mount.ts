/** Derives the Express routes from their declarations: admission, validation, bounds and the audit around each handler. */
import { once } from 'node:events'
import { type Express, type Request, type RequestHandler, type Response, Router } from 'express'
import { ApiError, badRequest, contractError } from '../errors.ts'
import { admitCaller, type RouteServices } from './admission.ts'
import { beginEntry, isAudited } from './audit.ts'
import { holdConnection } from './connection.ts'
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
import {
  askForPassword,
  challengeWith,
  idempotencyKey,
  parsePrefer,
  takePassword,
} from './request-headers.ts'
import { transferOf } from './request-transfer.ts'
import type { Route, Schema } from './route.ts'
import { describeIssue, describeQueryIssue } from './shapes.ts'

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

/** @throws ApiError 401 once the caller's key or token is no longer good. */
function throwIfEnded({ reason }: AbortSignal): void {
  if (reason instanceof ApiError) throw reason
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
