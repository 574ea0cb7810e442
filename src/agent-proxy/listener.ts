/** The server of a proxy on one address: bounded heads and connections, CONNECT and upgrades, and an orderly end. */
import { createServer, type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { type Binding, bind, bindSocket } from '../lib/net/bind.ts'
import { isWebSocket } from '../lib/net/websocket.ts'
import type { ProxyError } from './dial.ts'

export type ExchangeKind = 'request' | 'upgrade' | 'connect'

/** A connection that Node's server has let go of after a CONNECT or an upgrade, and what it read past the head. */
export interface Detached {
  client: Socket
  head: Buffer
}

export interface ListenerOptions {
  /** Serves a request, upgrade or tunnel from its beginning to its end. Never rejects. */
  exchange(
    kind: ExchangeKind,
    req: IncomingMessage,
    res: ServerResponse,
    detached: Detached | undefined,
  ): Promise<void>
  /** True for the address of a client that may connect; without this function every client may. */
  admits?(address: string): boolean
  /** Connections side by side. */
  connections: number
  /** Connections of one address; without it, as many as `connections`. */
  connectionsOfOne?: number
  headerBytes: number
  /** Most time until a client has sent the head of its request. */
  headerMs: number
  /** Most time without a byte. */
  idleMs: number
  /** On shutdown, the time that exchanges under way have to end on their own. */
  drainMs: number
}

export class Listener {
  readonly #options: ListenerOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Connections by the address of the client. */
  readonly #clients = new Map<string, number>()

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#server = this.#createServer()
  }

  /** Resolves with the port. @throws ConfigError when it cannot listen where it is told to. */
  listen(binding: Binding): Promise<number> {
    return bind(this.#server, binding)
  }

  /** Listens on a Unix socket. @throws ConfigError naming `setting` when it cannot. */
  listenOnSocket(path: string, setting: string): Promise<void> {
    return bindSocket(this.#server, path, setting)
  }

  /** Takes no more, lets what is under way end for a while, then closes every connection. */
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
      // A body may take as long as it flows: its bound is the idle limit.
      requestTimeout: 0,
      shouldUpgradeCallback: isWebSocket,
    })
    // Headers are bounded by their size; Node's bound on their number drops those beyond it in silence.
    server.maxHeadersCount = 0
    server.maxConnections = connections
    // Later than the limit of the other side, which can still be answered with a 504.
    server.timeout = 2 * idleMs
    server.on('connection', (socket: Socket) => {
      // Node's server handles errors only until a CONNECT or an upgrade. After each comes a close.
      socket.on('error', () => {})
      if (!this.#admit(socket)) socket.destroy()
    })
    server.on('clientError', (error, socket) => refuseMalformed(error, socket as Socket))
    server.on('request', (req, res) => void this.#options.exchange('request', req, res, undefined))
    server.on('upgrade', (req, client, head) =>
      this.#detached('upgrade', req, { client: client as Socket, head }),
    )
    server.on('connect', (req, client, head) =>
      this.#detached('connect', req, { client: client as Socket, head }),
    )
    return server
  }

  /** Counts a connection until it is closed; false where it may not be. */
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
    void this.#options.exchange(kind, req, res, detached)
  }
}

/** Answers a CONNECT with success, and joins both connections until they are closed. */
export async function openTunnel(
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

/** Answers with a refusal and ends the connection. */
export function refuse(res: ServerResponse, { status, message }: ProxyError): void {
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

const KEEP_ALIVE_MS = 60_000

/**
 * Joins two connections, and resolves when both are closed. Each direction ends on its own; a connection
 * that breaks takes the other with it, and both end when nothing passes for `idleMs`.
 */
export async function joinSockets(client: Socket, upstream: Socket, idleMs: number): Promise<void> {
  for (const socket of [client, upstream]) {
    // Finds a peer that is gone without a word sooner than the idle limit does.
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    socket.setNoDelay(true)
    socket.setTimeout(idleMs, () => socket.destroy())
  }
  await Promise.allSettled([pipeline(client, upstream), pipeline(upstream, client)])
  client.destroy()
  upstream.destroy()
}
