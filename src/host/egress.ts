/**
 * The egress proxy: the one way of agents to the outside. An HTTP/1.1 forward proxy (RFC 9110, 7) that takes
 * requests in absolute form, WebSocket upgrades and CONNECT, and connects to public addresses only.
 */
import { createServer, type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Logger } from '../log.ts'
import { type Binding, bind } from '../net/bind.ts'
import { type Destination, formatDestination, parseAbsoluteForm, parseDestination } from './destination.ts'
import { dial, EgressError, type Resolve, resolveBySystem } from './dial.ts'
import { forward } from './forward.ts'
import { joinSockets } from './tunnel.ts'

const LIMITS = {
  /** Requests and tunnels side by side; the next is answered with 503. */
  exchanges: 1024,
  headerBytes: 16 * 1024,
  /** Most time until a client has sent the head of its request. */
  headerMs: 10_000,
  /** Most time to resolve and connect. */
  connectMs: 10_000,
  /** Most time without a byte. A model may think for minutes before its first word. */
  idleMs: 600_000,
  /** On shutdown, the time that exchanges under way have to end on their own. */
  drainMs: 5000,
}

export interface EgressOptions {
  /** Reached although their addresses are private. */
  allowed: readonly Destination[]
  log: Logger
  registry: Registry
  limits?: Partial<typeof LIMITS>
  resolve?: Resolve
}

/** A connection that Node's server has let go of after a CONNECT or an upgrade, and what it read past the head. */
interface Detached {
  client: Socket
  head: Buffer
}

export class EgressProxy {
  readonly #log: Logger
  readonly #limits: typeof LIMITS
  readonly #allowed: ReadonlySet<string>
  readonly #resolve: Resolve
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #outcomes: Counter<'kind' | 'outcome'>
  #open = 0

  constructor({ allowed, log, registry, limits, resolve = resolveBySystem }: EgressOptions) {
    this.#log = log
    this.#limits = { ...LIMITS, ...limits }
    this.#allowed = new Set(allowed.map(formatDestination))
    this.#resolve = resolve
    this.#server = this.#createServer()
    this.#outcomes = new Counter({
      name: 'berth_egress_exchanges_total',
      help: 'What came to the egress proxy, by kind, and `passed` or the status it was refused with.',
      labelNames: ['kind', 'outcome'],
      registers: [registry],
    })
    const open = () => this.#open
    new Gauge({
      name: 'berth_egress_open',
      help: 'Requests and tunnels that are open.',
      registers: [registry],
      collect() {
        this.set(open())
      },
    })
  }

  /** Resolves with the port. @throws ConfigError when it cannot listen where it is told to. */
  listen(binding: Binding): Promise<number> {
    return bind(this.#server, binding)
  }

  /** Takes no more, lets what is under way end for a while, then closes every connection. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      const cut = setTimeout(() => {
        for (const socket of this.#sockets) socket.destroy()
      }, this.#limits.drainMs)
      this.#server.close(() => {
        clearTimeout(cut)
        resolve()
      })
    })
  }

  #createServer(): Server {
    const limits = this.#limits
    const server = createServer({
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headerMs,
      connectionsCheckingInterval: Math.min(1000, limits.headerMs),
      // A body may take as long as it flows: its bound is the idle limit.
      requestTimeout: 0,
      shouldUpgradeCallback: isWebSocket,
    })
    // Headers are bounded by their size; Node's bound on their number drops those beyond it in silence.
    server.maxHeadersCount = 0
    server.maxConnections = 2 * limits.exchanges
    // Later than the limit of the other side, which can still be answered with a 504.
    server.timeout = 2 * limits.idleMs
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
      // Node's server handles errors only until a CONNECT or an upgrade. After each comes a close.
      socket.on('error', () => {})
    })
    server.on('clientError', (error, socket) => refuseMalformed(error, socket as Socket))
    server.on('request', (req, res) => void this.#exchange('request', req, res))
    server.on('upgrade', (req, client, head) =>
      this.#detached('upgrade', req, { client: client as Socket, head }),
    )
    server.on('connect', (req, client, head) =>
      this.#detached('connect', req, { client: client as Socket, head }),
    )
    return server
  }

  #detached(kind: 'upgrade' | 'connect', req: IncomingMessage, detached: Detached): void {
    const { client } = detached
    const res = new ServerResponse(req)
    res.shouldKeepAlive = false
    try {
      res.assignSocket(client)
    } catch {
      // Sent behind a request that is not answered yet: an answer now would come out of order.
      client.destroy()
      return
    }
    res.once('finish', () => client.destroySoon())
    void this.#exchange(kind, req, res, detached)
  }

  /** One request, upgrade or tunnel from its beginning to its end. Never rejects. */
  async #exchange(
    kind: 'request' | 'upgrade' | 'connect',
    req: IncomingMessage,
    res: ServerResponse,
    detached?: Detached,
  ): Promise<void> {
    const start = performance.now()
    let outcome = 'passed'
    let name: string | undefined
    this.#open++
    try {
      if (this.#open > this.#limits.exchanges) throw new EgressError(503, 'Too many connections')
      const { destination, path } = readTarget(req)
      name = formatDestination(destination)
      const upstream = await dial(destination, {
        isAllowed: this.#allowed.has(name),
        connectMs: this.#limits.connectMs,
        resolve: this.#resolve,
      })
      const { idleMs, headerBytes } = this.#limits
      if (req.socket.destroyed) upstream.destroy()
      else if (kind === 'connect' && detached) await openTunnel(res, detached, upstream, idleMs)
      else await forward(req, res, { destination, path, upstream, upgrade: detached, idleMs, headerBytes })
    } catch (error) {
      const refusal = error instanceof EgressError ? error : new EgressError(500, 'Internal error')
      if (refusal !== error) this.#log.error({ err: error }, 'egress failed')
      outcome = String(refusal.status)
      refuse(res, refusal)
    } finally {
      this.#open--
      this.#outcomes.inc({ kind, outcome })
      const ms = Math.round(performance.now() - start)
      // Neither path nor headers: both carry credentials.
      this.#log.debug({ kind, destination: name, outcome, ms, open: this.#open }, 'egress')
    }
  }
}

/** @throws EgressError 400 */
function readTarget(req: IncomingMessage): { destination: Destination; path: string } {
  const target = req.url ?? ''
  if (req.method === 'CONNECT') {
    const destination = parseDestination(target)
    if (!destination) throw new EgressError(400, 'CONNECT takes host:port')
    return { destination, path: '' }
  }
  const read = parseAbsoluteForm(target)
  if (!read)
    throw new EgressError(400, 'This is a proxy: it takes CONNECT, and requests for http://host[:port]/…')
  return read
}

/** Other upgrades (h2c) are optional for clients, which get an answer in HTTP/1.1 without. */
function isWebSocket(req: IncomingMessage): boolean {
  const bodiless = !('content-length' in req.headers || 'transfer-encoding' in req.headers)
  return bodiless && req.method === 'GET' && req.headers.upgrade?.toLowerCase() === 'websocket'
}

async function openTunnel(
  res: ServerResponse,
  { client, head }: Detached,
  upstream: Socket,
  idleMs: number,
): Promise<void> {
  res.detachSocket(client)
  client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
  upstream.write(head)
  await joinSockets(client, upstream, idleMs)
}

function refuse(res: ServerResponse, { status, message }: EgressError): void {
  if (res.headersSent) return void res.destroy()
  res.statusCode = status
  res.setHeader('Content-Type', 'text/plain; charset=utf-8')
  res.setHeader('Connection', 'close')
  res.end(`${message}\n`)
}

/** Answers what Node's parser did not take for a request. */
function refuseMalformed(error: NodeJS.ErrnoException, client: Socket): void {
  // After an earlier answer on this connection, these bytes could be read as a part of it.
  if (!client.writable || client.bytesWritten > 0) return void client.destroy()
  const status = { ERR_HTTP_REQUEST_TIMEOUT: 408, HPE_HEADER_OVERFLOW: 431 }[error.code ?? ''] ?? 400
  const text = `${STATUS_CODES[status]}\n`
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: text/plain\r\nContent-Length: ${text.length}`
  client.end(`${head}\r\nConnection: close\r\n\r\n${text}`, () => client.destroy())
}
