/** The Express application: what every request passes, in order. */
import { randomUUID } from 'node:crypto'
import express, { type Express, type RequestHandler } from 'express'
import helmet from 'helmet'
import { pinoHttp } from 'pino-http'
import type { Registry } from 'prom-client'
import { badRequest } from '../errors.ts'
import { describeError, type Logger } from '../log.ts'
import { errorHandler, unknownRoute } from './errors.ts'
import { requestTimer } from './metrics.ts'
import { parseQuery } from './query.ts'
import { mountRoutes, type Route, type RouteServices } from './route.ts'
import { discardUnread } from './unread.ts'
import { isUpgrade } from './upgrade.ts'

/** The contract's value of Strict-Transport-Security (compatibility 1.1). */
const HSTS_SECONDS = 15_724_800

export interface ServerOptions {
  routes: Route[]
  services: RouteServices
  registry: Registry
  /** Takes the requests for hosts that are not the API's, before anything of the API. */
  edge: RequestHandler
  trustProxy: number
  log: Logger
}

export function createServer({ routes, services, registry, edge, trustProxy, log }: ServerOptions): Express {
  const app = express()
  app.set('trust proxy', trustProxy)
  app.set('query parser', parseQuery)
  app.set('etag', false)
  app.enable('case sensitive routing')
  app.disable('x-powered-by')
  app.use(requestLog(log))
  app.use(requestTimer(registry))
  app.use(discardUnread)
  app.use(edge)
  app.use(refuseUpgrades)
  app.use(helmet({ strictTransportSecurity: { maxAge: HSTS_SECONDS } }))
  mountRoutes(app, routes, services)
  app.use(unknownRoute)
  app.use(errorHandler(log))
  return app
}

/** The API has no WebSockets: what asks for one is told so, instead of getting an answer that it cannot read. */
const refuseUpgrades: RequestHandler = (req, _res, next) => {
  if (isUpgrade(req)) throw badRequest('upgrade: there is no WebSocket here')
  next()
}

/** One line for each request; its id is in the answer (`X-Request-Id`, 32 hexadecimal digits). */
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
    // Serializers get what was logged itself, not what pino's own make of it.
    wrapSerializers: false,
    serializers: {
      err: describeError,
      req: ({ id, method, url }) => ({
        id,
        method,
        url: url
          .replace(/([?&](?:token|pinataGatewayToken|X-Signature)=)[^&]*/g, '$1…')
          // The token of a resumable upload is a part of its path.
          .replace(/^(\/v3\/files\/tus\/[^/]+\/)[^?]*/i, '$1…'),
      }),
      res: ({ statusCode }) => ({ statusCode }),
    },
  })
}
