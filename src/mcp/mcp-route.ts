/** `/mcp`: the API for models, over the Model Context Protocol (streamable HTTP, without sessions). */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { McpHttpHandler } from '@modelcontextprotocol/server'
import type { Express, Response as ExpressResponse, Request } from 'express'
import { z } from 'zod'
import { ApiError, forbidden } from '../errors.ts'
import { InProcess } from '../http/in-process.ts'
import { type Route, routesOf } from '../http/route.ts'
import type { Bounds } from '../lib/bounds.ts'
import type { Closers } from '../lib/closers.ts'
import type { Logger } from '../log.ts'
import { Api } from './api.ts'

interface McpOptions {
  /** The API's routes, which the tools call. */
  routes: Route[]
  publicUrl: string | undefined
  version: string
  /** `WWW-Authenticate` of a 401. */
  challenge: ((req: Request) => string) | undefined
  log: Logger
  bounds: Bounds
  parts: Closers
}

/** Headers of the protocol, and those that it depends on. */
const HEADERS = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name']

/** @returns the route, and a function that gives it the application whose routes the tools call. */
export function mcpRoute({ routes, publicUrl, version, challenge, log, bounds, parts }: McpOptions) {
  const byId = new Map(routes.map((route) => [route.id, route]))
  let inProcess: InProcess | undefined
  let loading: Promise<McpHttpHandler> | undefined
  const load = async () => {
    const { createProtocol } = await import('./protocol.ts')
    const protocol = createProtocol({ version, log })
    parts.add('MCP', () => protocol.close())
    return protocol
  }
  const route = routesOf('MCP')({
    method: 'post',
    path: '/mcp',
    id: 'mcp',
    summary: 'Use Berth from a client of the Model Context Protocol',
    scope: 'any',
    audience: 'mcp',
    ...(challenge && { challenge }),
    origins: 'own',
    // The routes that it calls are.
    audited: false,
    body: z.looseObject({ method: z.string() }),
    success: { description: 'The response, or a stream that ends with it.', body: z.looseObject({}) },
    async handle({ principal, body, req, res, signal }) {
      requireOwnOrigin(req, publicUrl)
      if (!inProcess) throw new Error('The route has no application')
      loading ??= load()
      const protocol = await loading
      const api = new Api({ principal, signal, req, routes: byId, inProcess })
      const { keyId, scopes } = principal
      const authInfo = { token: '', clientId: keyId, scopes, extra: { api } }
      const answer = async () => {
        const response = await protocol.fetch(webRequest(req, signal), { parsedBody: body, authInfo })
        // Its key no longer works.
        if (signal.reason instanceof ApiError && !res.headersSent) throw signal.reason
        await send(response, res)
      }
      // Such a stream lasts until its client goes.
      if (body.method === 'subscriptions/listen') await bounds.run('eventStreams', principal, answer)
      else await answer()
      return undefined
    },
  })
  return {
    route,
    use(app: Express) {
      inProcess = new InProcess(app)
    },
  }
}

/**
 * A page of another site must not reach Berth on its reader's machine or network, by a name that it made point there.
 * Programs send no origin. @throws ApiError 403
 */
function requireOwnOrigin(req: Request, publicUrl: string | undefined): void {
  const { origin } = req.headers
  if (origin === undefined) return
  const { host, hostname } = URL.canParse(origin) ? new URL(origin) : {}
  const isLoopback = /^(127(\.\d+){3}|\[::1\]|localhost)$/.test(hostname ?? '')
  const isOwn = publicUrl !== undefined && origin === new URL(publicUrl).origin
  if (!isOwn && !(isLoopback && host === req.host))
    throw forbidden('Pages of other sites cannot use /mcp', 'other_origin')
}

/** A request for the library, which gets the body separately. */
export function webRequest(req: Request, signal: AbortSignal): globalThis.Request {
  const headers = HEADERS.flatMap((name): [string, string][] => {
    const value = req.get(name)
    return value === undefined ? [] : [[name, value]]
  })
  return new Request('http://berth/mcp', { method: 'POST', headers, signal })
}

/** Sends the library's response. */
export async function send(answer: globalThis.Response, res: ExpressResponse): Promise<void> {
  res.status(answer.status)
  for (const [name, value] of answer.headers) res.setHeader(name, value)
  if (!answer.body) return void res.end()
  res.setHeader('x-accel-buffering', 'no')
  res.flushHeaders()
  // Together with the route's own listeners, those of a pipeline look like a leak to Node.
  res.setMaxListeners(0)
  // A client that has gone is not an error.
  await pipeline(Readable.fromWeb(answer.body as never), res).catch(() => {})
}
