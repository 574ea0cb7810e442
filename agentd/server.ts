/**
 * agentd's one port: HTTP with JSON, and upgrades. The token is checked before anything else is looked at.
 *
 * A service is a function `(agent: Agent) => Service`, listed in `main.ts`: its routes, and its upgrades if it has any.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { AgentdError } from './agentd-errors.ts'
import type { Log } from './logs.ts'
import type { Paths } from './paths.ts'
import { AGENTD_ERRORS, type AgentdConfig, EPOCH_HEADER, type GatewayState } from './protocol.ts'

/** The parts of agentd that every service gets. */
export interface Agent {
  config: AgentdConfig
  paths: Paths
  gateway: GatewayHandle
  log: Log
}

/** The gateway as the other services see it; read it anew for each use. */
export interface GatewayHandle {
  /** On 127.0.0.1. */
  readonly port: number
  readonly state: GatewayState
  /** Opens the gateway; null before its first start. */
  readonly token: string | null
  /** The environment of the agent's processes: the base, and after the first start what the worker sent. Has secrets. */
  readonly env: Readonly<Record<string, string>>
  /** Values that nobody else may see: what the worker sent that is not the agent's name; empty before the first start. */
  readonly secrets: readonly string[]
  /**
   * The keys of openclaw.json that the worker owns, with the paths of this machine; null before the first start. Has
   * secrets.
   */
  readonly ownedConfig: Readonly<Record<string, unknown>> | null
}

/** A call of a route. */
export interface Call {
  req: IncomingMessage
  res: ServerResponse
  url: URL
  /** The part of the path that `*` stood for, still percent-encoded. */
  rest: string
  /** Fires when the client has gone, or agentd stops. */
  signal: AbortSignal
  /** Reads the body as JSON. @throws AgentdError bad_request; too_large over `maxBytes` (default 1 MiB). */
  json<T>(maxBytes?: number): Promise<T>
}

/** JSON, with status 200 unless it says otherwise. */
export interface RouteResponse {
  status?: number
  body: unknown
}

export interface Route {
  /** `*` for every method. */
  method: string
  /** Path of the request, or a prefix that ends in `/*`. The first route that fits takes the call. */
  path: string
  /** A change by a worker: needs {@link EPOCH_HEADER}, and is refused with a lower epoch than was seen before. */
  fenced?: boolean
  /** Resolves to the answer, or to undefined when it wrote `res` itself. @throws AgentdError */
  handle(call: Call): Promise<RouteResponse | undefined>
}

interface Upgrade {
  /** Path as in {@link Route}. */
  path: string
  /** Owns the socket from now on, errors included; the token is checked. */
  handle(call: { req: IncomingMessage; url: URL; rest: string }, socket: Duplex, head: Buffer): void
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

/** Serves `services` to whoever has the token. `listen` and `close` are as of `node:http`. */
export class AgentdServer {
  readonly #http: Server
  readonly #tokenHash: Buffer
  readonly #routes: Route[]
  readonly #upgrades: Upgrade[]
  readonly #log: Log
  readonly #stopped = new AbortController()
  /**
   * The highest epoch seen. Only in memory: a file would be in the agent's own volume, where the agent could lock
   * its workers out; and an agentd that has just started has no gateway that a late worker could take from another.
   */
  #epoch = 0

  constructor(options: { config: AgentdConfig; log: Log; services: Service[] }) {
    this.#tokenHash = Buffer.from(options.config.tokenHash, 'hex')
    this.#routes = options.services.flatMap(({ routes }) => routes)
    this.#upgrades = options.services.flatMap(({ upgrades = [] }) => upgrades)
    this.#log = options.log
    this.#http = createServer({
      headersTimeout: HEADERS_MS,
      // Uploads and streams take as long as they take; whoever sends them has the token.
      requestTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
    })
    this.#http.on('request', (req, res) => void this.#answer(req, res))
    this.#http.on('upgrade', (req, socket, head) => this.#upgrade(req, socket, head))
    // A request that cannot be parsed ends its connection, without an answer.
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

  /** Takes no more calls and ends those that run. */
  async close(): Promise<void> {
    this.#stopped.abort()
    const closed = new Promise<void>((resolve) => this.#http.close(() => resolve()))
    this.#http.closeAllConnections()
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
        // Requests that are passed on need no signal, and a signal costs a tenth of such a call.
        get signal() {
          signal ??= AbortSignal.any([goneSignal(res), stopped])
          return signal
        },
        json: async <T>(maxBytes = BODY_BYTES) => {
          const body = await readJson<T>(req, maxBytes)
          // The worker may have stood still over its body while another one took its place.
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
    // The rest of a body that nobody reads must not be taken for the next request.
    if (!req.complete) res.setHeader('connection', 'close')
    sendJson(res, status, { error: code, message })
  }

  #upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy())
    try {
      this.#authorize(req)
      const url = requestUrl(req)
      const found = findRoute(this.#upgrades, req, url)
      if (!found) throw new AgentdError('not_found', `${url.pathname} takes no upgrade`)
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

/** Answers an upgrade that cannot be made and ends the connection. */
export function refuseUpgrade(socket: Duplex, code: keyof typeof AGENTD_ERRORS, message: string): void {
  const body = JSON.stringify({ error: code, message })
  const head = [
    `HTTP/1.1 ${AGENTD_ERRORS[code]} Refused`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** The part of `path` that the `*` of a route stands for; '' when it has none; undefined when it does not fit. */
function matchPath(route: string, path: string): string | undefined {
  if (!route.endsWith('/*')) return path === route ? '' : undefined
  return path.startsWith(route.slice(0, -1)) ? path.slice(route.length - 1) : undefined
}

function requestUrl(req: IncomingMessage): URL {
  // The path is appended, not resolved: `//host/x` would otherwise be taken for another host.
  const url = URL.parse(`http://agentd${req.url ?? ''}`)
  if (!url || !req.url?.startsWith('/')) throw new AgentdError('bad_request', 'the path makes no sense')
  return url
}

/** Fires when the answer is over, or its connection gone. */
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
  // The default would close the connection with the first failure, before the client is told of it.
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
    throw new AgentdError('bad_request', 'the body is no JSON', { cause: error })
  }
}

/** Reads the rest of a body away for a moment: a client that still sends would not see the answer otherwise. */
function discard(req: IncomingMessage): void {
  req.resume()
  const timer = setTimeout(() => req.destroy(), DISCARD_MS)
  req.once('close', () => clearTimeout(timer))
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
