/**
 * A route is declared once: method, path, permissions, the shapes of input and output, and the handler. The Express
 * route, the validation and the OpenAPI document are derived from that declaration.
 */
import type { Request, Response } from 'express'
import type { z } from 'zod'
import type { BoundKind } from '../lib/bounds.ts'
import type { EntryOfChange } from './audit.ts'
import type { Callers } from './cross-origin.ts'
import type { AgentCaller, Audience, Principal, Scope } from './principal.ts'
import type { Prefer } from './request-headers.ts'

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
