/** A proxy's server on one address, with bounded heads and connections, CONNECT and upgrades, and graceful shutdown. */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { joinSockets } from '../../agentd/relay.ts'
import { type Binding, bind, bindSocket } from '../lib/net/bind.ts'
import { refuseMalformed } from '../lib/net/malformed.ts'
import { detachedResponse, isWebSocket } from '../lib/net/websocket.ts'
import type { ProxyError } from './dial.ts'

export type ExchangeKind = 'request' | 'upgrade' | 'connect'

/** A connection that Node's server released after a CONNECT or an upgrade, and the bytes it read past the head. */
export interface Detached {
  client: Socket
  head: Buffer
}

export interface ListenerOptions {
  /** Handles a request, upgrade or tunnel until it ends. Never rejects. */
  exchange(
    kind: ExchangeKind,
    req: IncomingMessage,
    res: ServerResponse,
    detached: Detached | undefined,
  ): Promise<void>
  /** True for the address of a client that may connect. Without this function every client may connect. */
  admits?(address: string): boolean
  /** Maximum number of concurrent connections. */
  connections: number
  /** Maximum number of connections from one address; `connections` if not set. */
  connectionsOfOne?: number
  headerBytes: number
  /** Maximum time for a client to send the head of its request. */
  headerMs: number
  /** Maximum time without a byte. */
  idleMs: number
  /** On shutdown, how long active exchanges may take to end on their own. */
  drainMs: number
}

export class Listener {
  readonly #options: ListenerOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Number of connections by client address. */
  readonly #clients = new Map<string, number>()

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#server = this.#createServer()
  }

  /** Resolves with the port. @throws ConfigError if it cannot listen on the address. */
  listen(binding: Binding): Promise<number> {
    return bind(this.#server, binding)
  }

  /** Listens on a Unix socket. @throws ConfigError that names `setting` if it cannot. */
  listenOnSocket(path: string, setting: string): Promise<void> {
    return bindSocket(this.#server, path, setting)
  }

  /** Stops accepting, lets active exchanges finish for a while, then closes every connection. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      const cut = setTimeout(() => {
        for (const socket of this.#sockets) socket.destroy()
      }, this.#options.drainMs)
      this.#server.close(() => {
        clearTimeout(cut)
        resolve()
      })
    })
  }

  #createServer(): Server {
    const { connections, headerBytes, headerMs, idleMs } = this.#options
    const server = createServer({
      maxHeaderSize: headerBytes,
      headersTimeout: headerMs,
      connectionsCheckingInterval: Math.min(1000, headerMs),
      // A body may take as long as it keeps flowing: the idle limit bounds it.
      requestTimeout: 0,
      shouldUpgradeCallback: isWebSocket,
    })
    // Headers are bounded by size. Node's limit on their number silently drops the rest.
    server.maxHeadersCount = 0
    server.maxConnections = connections
    // Longer than the upstream's idle limit, so that a 504 can still be sent.
    server.timeout = 2 * idleMs
    server.on('connection', (socket: Socket) => {
      // Node's server handles errors only until a CONNECT or an upgrade. A `close` follows each error.
      socket.on('error', () => {})
      if (!this.#admit(socket)) socket.destroy()
    })
    refuseMalformed(server, 'text/plain', (status) => `${STATUS_CODES[status]}\n`)
    server.on('request', (req, res) => void this.#options.exchange('request', req, res, undefined))
    server.on('upgrade', (req, client, head) =>
      this.#detached('upgrade', req, { client: client as Socket, head }),
    )
    server.on('connect', (req, client, head) =>
      this.#detached('connect', req, { client: client as Socket, head }),
    )
    return server
  }

  /** Counts a connection until it closes; false if the client may not connect. */
  #admit(socket: Socket): boolean {
    const { admits, connectionsOfOne = Infinity } = this.#options
    const address = socket.remoteAddress ?? ''
    const count = this.#clients.get(address) ?? 0
    if (count >= connectionsOfOne || (admits && !admits(address))) return false
    this.#clients.set(address, count + 1)
    this.#sockets.add(socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      const left = (this.#clients.get(address) ?? 1) - 1
      if (left === 0) this.#clients.delete(address)
      else this.#clients.set(address, left)
    })
    return true
  }

  #detached(kind: 'upgrade' | 'connect', req: IncomingMessage, detached: Detached): void {
    const res = detachedResponse(req, detached.client)
    if (res) void this.#options.exchange(kind, req, res, detached)
  }
}

/** Accepts a CONNECT. */
export function acceptTunnel(res: ServerResponse, { client }: Detached): void {
  res.detachSocket(client)
  client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
}

/** Accepts a CONNECT, and joins both connections until they close. */
export async function openTunnel(
  res: ServerResponse,
  { client, head }: Detached,
  upstream: Socket,
  idleMs: number,
): Promise<void> {
  acceptTunnel(res, { client, head })
  upstream.write(head)
  await joinSockets(client, upstream, { idleMs })
}

/** Sends a refusal and ends the connection. */
export function refuse(res: ServerResponse, { status, message }: ProxyError): void {
  if (res.headersSent) return void res.destroy()
  res.statusCode = status
  res.setHeader('Content-Type', 'text/plain; charset=utf-8')
  res.setHeader('Connection', 'close')
  if (status === 407) res.setHeader('Proxy-Authenticate', 'Basic realm="berth"')
  res.end(`${message}\n`)
}
