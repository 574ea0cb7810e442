/** The API as tools and resources call it: declared routes, in this process, as the caller of the MCP request. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Request } from 'express'
import { requireScope } from '../http/admission.ts'
import type { InProcess } from '../http/in-process.ts'
import type { Principal } from '../http/principal.ts'
import type { Route } from '../http/route.ts'

/** The most that a response may have: models cannot read more. */
const MAX_BYTES = 2_097_152

/** A failure that the client shows to its model: the API's message, or what is wrong with the arguments. */
export class ToolError extends Error {
  readonly status: number

  constructor(message: string, status = 400) {
    super(message)
    this.status = status
  }
}

export type Values = Record<string, unknown>

export interface Input {
  /** The parameters of the path. */
  path?: Values
  query?: Values
  /** Sent as JSON unless it is bytes. */
  body?: unknown
  headers?: Record<string, string>
}

export interface Reply {
  status: number
  headers: IncomingHttpHeaders
  body: Values
}

export class Api {
  readonly principal: Principal
  /** Ends every call: the client has gone, has cancelled, or its key no longer works. */
  readonly signal: AbortSignal
  readonly req: Request
  readonly #routes: ReadonlyMap<string, Route>
  readonly #inProcess: InProcess

  constructor(options: {
    principal: Principal
    signal: AbortSignal
    req: Request
    routes: ReadonlyMap<string, Route>
    inProcess: InProcess
  }) {
    this.principal = options.principal
    this.signal = options.signal
    this.req = options.req
    this.#routes = options.routes
    this.#inProcess = options.inProcess
  }

  /** The same API, until another signal fires too. */
  until(signal: AbortSignal): Api {
    const options = { principal: this.principal, req: this.req, routes: this.#routes }
    return new Api({ ...options, inProcess: this.#inProcess, signal: AbortSignal.any([this.signal, signal]) })
  }

  /** A declared route, by its id. */
  route(id: string): Route {
    const route = this.#routes.get(id)
    if (!route) throw new Error(`There is no route ${id}`)
    return route
  }

  /** Whether the caller's key and role allow a route. */
  allows(id: string): boolean {
    const { scope, role } = this.route(id)
    if (role === 'owner' && this.principal.role !== 'owner') return false
    if (scope === null || scope === 'any') return true
    try {
      requireScope(this.principal, [scope].flat())
      return true
    } catch {
      return false
    }
  }

  /** Calls a route. @throws ToolError for an error response. */
  async open(id: string, { path = {}, query = {}, body, headers = {} }: Input): Promise<IncomingMessage> {
    const { method, path: pattern } = this.route(id)
    const search = searchOf(query)
    const isBytes = typeof body === 'string' || body instanceof Uint8Array
    const message = await this.#inProcess.send(this.req, {
      method: method.toUpperCase(),
      path: `${pathOf(pattern, path)}${search && `?${search}`}`,
      headers: { ...(body !== undefined && !isBytes && { 'content-type': 'application/json' }), ...headers },
      body: isBytes || body === undefined ? body : JSON.stringify(body),
      signal: this.signal,
    })
    if ((message.statusCode ?? 500) < 400) return message
    throw await errorOf(message)
  }

  /** Calls a route with a JSON response. @throws ToolError */
  async call(id: string, input: Input = {}): Promise<Reply> {
    const message = await this.open(id, input)
    const { statusCode: status = 0, headers } = message
    const text = (await readWithin(message)).toString()
    return { status, headers, body: text === '' ? {} : JSON.parse(text) }
  }
}

/** Reads a body. @throws ToolError if it is too long. */
export async function readWithin(message: IncomingMessage, max = MAX_BYTES): Promise<Buffer> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of message) {
    size += part.length
    // Leaving the loop ends the request.
    if (size > max) throw new ToolError(`There are more than ${max} bytes: ask for less`, 413)
    parts.push(part)
  }
  return Buffer.concat(parts)
}

function pathOf(pattern: string, values: Values): string {
  return pattern.replace(/:(\w+)/g, (_, name: string) => {
    const value = values[name]
    if (typeof value !== 'string' || value === '') throw new ToolError(`${name}: required`)
    return encodeURIComponent(value)
  })
}

/** A query: an object is written with brackets, `undefined` and `null` are left out. */
function searchOf(query: Values): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue
    if (typeof value === 'object')
      for (const [key, one] of Object.entries(value)) search.append(`${name}[${key}]`, String(one))
    else search.append(name, String(value))
  }
  return search.toString()
}

/** The API's message, with its detail. */
async function errorOf(message: IncomingMessage): Promise<ToolError> {
  const { statusCode = 500, headers } = message
  const text = (await readWithin(message)).toString()
  const said = text.startsWith('{') ? JSON.parse(text).error : undefined
  const detail = headers['error-detail']
  const main = typeof said === 'string' ? said : `The request failed with ${statusCode}`
  const wait = headers['retry-after'] && `try again in ${headers['retry-after']} seconds`
  return new ToolError([main, detail, wait].filter(Boolean).join(': '), statusCode)
}
