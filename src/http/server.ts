/** The Express application: the steps that every request passes, in order. */
import { randomUUID } from 'node:crypto'
import express, { type Express, type RequestHandler } from 'express'
import helmet from 'helmet'
import { pinoHttp } from 'pino-http'
import { Histogram } from 'prom-client'
import { badRequest } from '../errors.ts'
import { LINGER_MS } from '../lib/net/malformed.ts'
import { describeError, type Logger, shortUrl } from '../log.ts'
import type { RouteServices } from './admission.ts'
import { errorHandler, pointToGateway, unknownRoute } from './error-handler.ts'
import { mountRoutes } from './mount.ts'
import type { Route } from './route.ts'
import { isUpgrade } from './upgrade.ts'

/** The contract's value of Strict-Transport-Security. */
const HSTS_SECONDS = 15_724_800

export interface ServerOptions {
  routes: Route[]
  services: RouteServices
  /** Handles requests for hosts other than the API's, before anything of the API. */
  vhosts: RequestHandler
  /** Handles requests of Berth's own processes. They count towards no limit, and are not in the OpenAPI document. */
  controls?: RequestHandler[]
  /** Handles requests without a matching route, if set. */
  pages?: RequestHandler | undefined
  /** URL of gateways' hosts, with a placeholder for the name. */
  gatewayUrl: string
  log: Logger
}

export function createServer(options: ServerOptions): Express {
  const { routes, services, vhosts, controls = [], pages, gatewayUrl, log } = options
  const app = express()
  app.set('query parser', parseQuery)
  app.set('etag', false)
  app.enable('case sensitive routing')
  app.disable('x-powered-by')
  app.use(requestLog(log))
  app.use(timeRequest)
  app.use(discardUnread)
  app.use(vhosts)
  app.use(refuseUpgrades(routes))
  app.use(helmet({ strictTransportSecurity: { maxAge: HSTS_SECONDS } }))
  for (const control of controls) app.use(control)
  mountRoutes(app, routes, services)
  if (pages) app.use(pages)
  app.use(pointToGateway(gatewayUrl))
  app.use(unknownRoute)
  app.use(errorHandler(log))
  return app
}

/** Rejects upgrades elsewhere than at a WebSocket: their client could not read any other response. */
function refuseUpgrades(routes: Route[]): RequestHandler {
  const sockets = routes
    .filter(({ connection }) => connection)
    .map(({ path }) => new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`))
  return (req, _res, next) => {
    if (isUpgrade(req) && !sockets.some((socket) => socket.test(req.path)))
      throw badRequest('upgrade: there is no WebSocket here')
    next()
  }
}

/** Logs a line for each request; its id is in the response (`X-Request-Id`, 32 hexadecimal digits). */
function requestLog(logger: Logger) {
  return pinoHttp({
    logger,
    genReqId: (_req, res) => {
      const id = randomUUID().replaceAll('-', '')
      res.setHeader('X-Request-Id', id)
      return id
    },
    customLogLevel: (_req, res, error) =>
      error || res.statusCode >= 500 ? 'warn' : res.statusCode >= 400 ? 'info' : 'debug',
    // Serializers get the logged value itself, not pino's wrapped version.
    wrapSerializers: false,
    serializers: {
      err: describeError,
      req: ({ id, method, url }) => ({ id, method, url: shortUrl(url) }),
      res: ({ statusCode }) => ({ statusCode }),
    },
  })
}

/**
 * After a response that was sent before the end of the request's body, the rest is read and discarded. If the
 * connection were closed while the client still sends, it would be reset, and the client might never see the response.
 * A request that continues for too long is cut off.
 */
export const discardUnread: RequestHandler = (req, res, next) => {
  res.once('finish', () => {
    if (req.complete) return
    const cut = setTimeout(() => req.destroy(), LINGER_MS)
    req.once('close', () => clearTimeout(cut))
    req.resume()
  })
  next()
}

const requestSeconds = new Histogram({
  name: 'berth_http_request_seconds',
  help: 'Time from a request to the end of its answer, by method and status.',
  labelNames: ['method', 'status'],
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30, 300],
})

/** Times every request by method and status, never by path: ids would create a series each. */
const timeRequest: RequestHandler = (req, res, next) => {
  const start = performance.now()
  res.once('finish', () => {
    requestSeconds.observe({ method: req.method, status: res.statusCode }, (performance.now() - start) / 1000)
  })
  next()
}

/**
 * Parses a query string: `a=1&b[c]=2` is `{a: '1', b: {c: '2'}}`, and a name that occurs twice is a list. Brackets nest
 * only one level (OpenAPI's `deepObject`), and their content is always a key: `b[0]=x` is not a list, because metadata
 * may have numeric keys.
 */
function parseQuery(text: string): Record<string, unknown> {
  const query = emptyRecord()
  for (const [name, value] of new URLSearchParams(text)) {
    const [, outer, key] = /^([^[]+)\[(.*)\]$/s.exec(name) ?? []
    if (outer === undefined || key === undefined) append(query, name, value)
    else {
      const inner = isRecord(query[outer]) ? query[outer] : emptyRecord()
      append(inner, key, value)
      query[outer] = inner
    }
  }
  return query
}

type Values = Record<string, unknown>

/** Without a prototype, because names come from the client. */
const emptyRecord = (): Values => Object.create(null)

const isRecord = (value: unknown): value is Values => typeof value === 'object' && !Array.isArray(value)

function append(values: Values, name: string, value: string): void {
  const known = values[name]
  // In place: copying the list for each value would take seconds, for all callers, if a URL is full of them.
  if (Array.isArray(known)) known.push(value)
  else values[name] = known === undefined ? value : [known, value]
}
