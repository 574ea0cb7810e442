/**
 * agentd's only port: HTTP with JSON, and upgrades. The token is checked before anything else is read.
 *
 * A service is a function `(agent: Agent) => Service`, listed in `main.ts`: its routes, and its upgrades if it has any.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { AgentdError } from './agentd-errors.ts'
import type { Log } from './logs.ts'
import type { Paths } from './paths.ts'
import {
  AGENTD_ERRORS,
  type AgentdConfig,
  EPOCH_HEADER,
  type GatewayState,
  type RpcResponse,
} from './protocol.ts'

/** The components of agentd that every service gets. */
export interface Agent {
  config: AgentdConfig
  paths: Paths
  gateway: GatewayHandle
  /** Calls the gateway's methods. */
  engine: EngineClient
  log: Log
}

/** The gateway as other services see it; read its fields for each use. */
export interface GatewayHandle {
  /** On 127.0.0.1. */
  readonly port: number
  readonly state: GatewayState
  /** Authenticates to the gateway; null before its first start. */
  readonly token: string | null
  /**
   * The environment of the agent's processes: the base, and after the first start what the worker sent. Contains
   * secrets.
   */
  readonly env: Readonly<Record<string, string>>
  /**
   * Values that nobody else may see: what the worker sent, except the agent's identity; empty before the first start.
   */
  readonly secrets: readonly string[]
  /**
   * The keys of openclaw.json that the worker owns, with the paths of this machine; null before the first start.
   * Contains secrets.
   */
  readonly ownedConfig: Readonly<Record<string, unknown>> | null
}

/** Calls methods of the gateway: `GatewayClient` in gateway-client.ts. */
export interface EngineClient {
  /**
   * @returns the method's result, or the engine's refusal with its most specific code.
   * @throws AgentdError not_ready if the call was not made; engine if its outcome is unknown; busy.
   */
  call(method: string, params: Record<string, unknown>, timeoutMs: number): Promise<RpcResponse>
  close(): void
}

/** The address and the token of a ready gateway. @throws AgentdError not_ready */
export function requireReady({ state, port, token }: GatewayHandle): { port: number; token: string } {
  if (state !== 'ready' || token === null) throw new AgentdError('not_ready', 'the gateway is not ready')
  return { port, token }
}

/** A call of a route. */
export interface Call {
  req: IncomingMessage
  res: ServerResponse
  url: URL
  /** The part of the path that matched `*`, still percent-encoded. */
  rest: string
  /** Fires when the client disconnects, or agentd stops. */
  signal: AbortSignal
  /** Parses the body as JSON. @throws AgentdError bad_request; too_large over `maxBytes` (default 1 MiB). */
  json<T>(maxBytes?: number): Promise<T>
}

/** JSON, with status 200 by default. */
export interface RouteResponse {
  status?: number
  body: unknown
}

export interface Route {
  /** `*` for every method. */
  method: string
  /** Path of the request, or a prefix that ends in `/*`. The first matching route handles the call. */
  path: string
  /** A change by a worker: needs {@link EPOCH_HEADER}, and is refused with an epoch lower than the highest seen. */
  fenced?: boolean
  /** Resolves to the response, or to undefined if it wrote `res` itself. @throws AgentdError */
  handle(call: Call): Promise<RouteResponse | undefined>
}

interface Upgrade {
  /** Path as in {@link Route}. */
  path: string
  /** Owns the socket from now on; the token has been checked. @throws AgentdError, which refuses the upgrade. */
  handle(call: { req: IncomingMessage; url: URL; rest: string }, socket: Socket, head: Buffer): void
}

export interface Service {
  routes: Route[]
  upgrades?: Upgrade[]
  /** Ends what the service started, in a bounded time. */
  stop?(): Promise<void>
}

const BODY_BYTES = 1_048_576
const HEADERS_MS = 10_000
const DISCARD_MS = 2000
/** Longer than clients keep a connection: a server that closed first could do so while a request is on its way. */
const KEEP_ALIVE_MS = 60_000

/** Serves `services` to clients with the token. `listen` and `close` work as in `node:http`. */
export class AgentdServer {
  readonly #http: Server
  readonly #tokenHash: Buffer
  readonly #routes: Route[]
  readonly #upgrades: Upgrade[]
  /** Connections of upgrades, which Node's server no longer closes. */
  readonly #upgraded = new Set<Socket>()
  readonly #log: Log
  readonly #stopped = new AbortController()
  /**
   * The highest epoch seen. Kept only in memory: a file would be in the agent's own volume, where the agent could lock
   * its workers out. An agentd that has just started has no gateway that a late worker could take from another.
   */
  #epoch = 0

  constructor(options: { config: AgentdConfig; log: Log; services: Service[] }) {
    this.#tokenHash = Buffer.from(options.config.tokenHash, 'hex')
    this.#routes = options.services.flatMap(({ routes }) => routes)
    this.#upgrades = options.services.flatMap(({ upgrades = [] }) => upgrades)
    this.#log = options.log
    this.#http = createServer({
      headersTimeout: HEADERS_MS,
      // Uploads and streams may take any time; their senders have the token.
      requestTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
    })
    this.#http.on('request', (req, res) => void this.#answer(req, res))
    this.#http.on('upgrade', (req, socket, head) => this.#upgrade(req, socket as Socket, head))
    // A request that cannot be parsed ends its connection without a response.
    this.#http.on('clientError', (_error, socket) => socket.destroy())
  }

  get epoch(): number {
    return this.#epoch
  }

  /** Resolves to the port once it listens. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#http.once('error', reject)
      this.#http.listen(port, host, () => {
        this.#http.off('error', reject)
        const address = this.#http.address()
        resolve(typeof address === 'object' && address ? address.port : port)
      })
    })
  }

  /** Accepts no more calls, and ends running ones. */
  async close(): Promise<void> {
    this.#stopped.abort()
    const closed = new Promise<void>((resolve) => this.#http.close(() => resolve()))
    this.#http.closeAllConnections()
    for (const socket of this.#upgraded) socket.destroy()
    await closed
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    // Without a listener a broken connection would be an uncaught error.
    res.on('error', () => {})
    try {
      this.#authorize(req)
      const url = requestUrl(req)
      const found = findRoute(this.#routes, req, url)
      if (!found) throw new AgentdError('not_found', `${req.method} ${url.pathname} is not known`)
      if (found.route.fenced) this.#fence(req)
      const stopped = this.#stopped.signal
      let signal: AbortSignal | undefined
      const answer = await found.route.handle({
        req,
        res,
        url,
        rest: found.rest,
        // Forwarded requests need no signal, and creating one costs a tenth of such a call.
        get signal() {
          signal ??= AbortSignal.any([goneSignal(res), stopped])
          return signal
        },
        json: async <T>(maxBytes = BODY_BYTES) => {
          const body = await readJson<T>(req, maxBytes)
          // The worker may have stalled over its body while another one took its place.
          if (found.route.fenced) this.#fence(req)
          return body
        },
      })
      if (answer) sendJson(res, answer.status ?? 200, answer.body)
    } catch (error) {
      this.#fail(req, res, error)
    }
  }

  #fail(req: IncomingMessage, res: ServerResponse, error: unknown): void {
    const known = error instanceof AgentdError
    if (!known && !res.destroyed)
      this.#log.error(`${req.method} ${req.url?.split('?')[0]}: ${describe(error)}`)
    if (res.headersSent) return void res.destroy()
    const { status, code, message } = known
      ? error
      : { status: 500, code: 'internal', message: describe(error) }
    // The unread rest of a body must not be parsed as the next request.
    if (!req.complete) res.setHeader('connection', 'close')
    sendJson(res, status, { error: code, message })
  }

  #upgrade(req: IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', () => socket.destroy())
    this.#upgraded.add(socket)
    socket.once('close', () => this.#upgraded.delete(socket))
    try {
      this.#authorize(req)
      const url = requestUrl(req)
      const found = findRoute(this.#upgrades, req, url)
      if (!found) throw new AgentdError('not_found', `${url.pathname} supports no upgrade`)
      found.route.handle({ req, url, rest: found.rest }, socket, head)
    } catch (error) {
      const code = error instanceof AgentdError ? error.code : 'internal'
      refuseUpgrade(socket, code, describe(error))
    }
  }

  #authorize(req: IncomingMessage): void {
    const [, token = ''] = /^Bearer (.+)$/.exec(req.headers.authorization ?? '') ?? []
    const hash = createHash('sha256').update(token).digest()
    if (!timingSafeEqual(hash, this.#tokenHash)) throw new AgentdError('unauthorized', 'the token is wrong')
  }

  #fence(req: IncomingMessage): void {
    const epoch = Number(req.headers[EPOCH_HEADER] ?? Number.NaN)
    if (!Number.isSafeInteger(epoch) || epoch < 0)
      throw new AgentdError('bad_request', `${EPOCH_HEADER} must be the epoch of the worker`)
    if (epoch < this.#epoch)
      throw new AgentdError('stale_epoch', `epoch ${epoch} is over: ${this.#epoch} was seen`)
    this.#epoch = epoch
  }
}

function findRoute<T extends { path: string; method?: string }>(
  routes: T[],
  req: IncomingMessage,
  url: URL,
): { route: T; rest: string } | undefined {
  for (const route of routes) {
    if (route.method !== undefined && route.method !== '*' && route.method !== req.method) continue
    const rest = matchPath(route.path, url.pathname)
    if (rest !== undefined) return { route, rest }
  }
}

/** Refuses an upgrade and ends the connection. */
export function refuseUpgrade(socket: Socket, code: keyof typeof AGENTD_ERRORS, message: string): void {
  const body = JSON.stringify({ error: code, message })
  const head = [
    `HTTP/1.1 ${AGENTD_ERRORS[code]} Refused`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/**
 * The part of `path` that matches the `*` of a route; '' for a route without one; undefined if the path does not match.
 */
function matchPath(route: string, path: string): string | undefined {
  if (!route.endsWith('/*')) return path === route ? '' : undefined
  return path.startsWith(route.slice(0, -1)) ? path.slice(route.length - 1) : undefined
}

function requestUrl(req: IncomingMessage): URL {
  // The path is appended, not resolved: `//host/x` would otherwise be treated as another host.
  const url = URL.parse(`http://agentd${req.url ?? ''}`)
  if (!url || !req.url?.startsWith('/')) throw new AgentdError('bad_request', 'the path is malformed')
  return url
}

/**
 * A whole number in a query.
 * @param fallback if the query does not have it. @param most the number if it is larger.
 * @throws AgentdError bad_request
 */
export function queryNumber(
  { searchParams }: URL,
  name: string,
  fallback: number,
  most = Number.MAX_SAFE_INTEGER,
): number {
  const text = searchParams.get(name)
  if (text === null) return fallback
  if (!/^\d{1,15}$/.test(text)) throw new AgentdError('bad_request', `${name}: must be a whole number`)
  return Math.min(Number(text), most)
}

/** Fires when the response is over, or its connection gone. */
function goneSignal(res: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (res.closed) gone.abort()
  else res.once('close', () => gone.abort())
  return gone.signal
}

function sendJson(res: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body)
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  res.end(text)
}

async function readJson<T>(req: IncomingMessage, maxBytes: number): Promise<T> {
  const chunks: Buffer[] = []
  let size = 0
  // The default would close the connection on the first failure, before the client gets the response.
  for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBytes) {
      discard(req)
      throw new AgentdError('too_large', `the body has more than ${maxBytes} bytes`)
    }
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch (error) {
    throw new AgentdError('bad_request', 'the body is not JSON', { cause: error })
  }
}

/** Discards the rest of a body for a moment: otherwise a client that is still sending would not see the response. */
function discard(req: IncomingMessage): void {
  req.resume()
  const timer = setTimeout(() => req.destroy(), DISCARD_MS)
  req.once('close', () => clearTimeout(timer))
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
