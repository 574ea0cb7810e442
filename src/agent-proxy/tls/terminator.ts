/**
 * Ends TLS of tunnels whose requests have to be seen: to hosts of brokered secrets, and to hosts for which a policy has
 * rules of methods or paths. Answers as the host, with the certificate authority of the agent.
 */
import type { Server as Http1Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { createServer, type SecureContext, type TLSSocket, type Server as TlsServer } from 'node:tls'
import type { Logger } from '../../log.ts'
import type { Destination } from '../destination.ts'
import { ProxyError } from '../dial.ts'
import { acceptTunnel, type Detached } from '../listener.ts'
import type { Visit } from '../policy/visit.ts'
import type { Asked } from './asked.ts'
import { type AgentAuthority, agentAuthority, type Leaf } from './authority.ts'
import { exchange, type Terms } from './exchange.ts'
import { serveHttp1 } from './http1.ts'
import { serveHttp2 } from './http2.ts'
import { trustedRoots, Upstream } from './upstream.ts'

const LIMITS = {
  headerBytes: 64 * 1024,
  /** Maximum time for a handshake, and for the head of a request. */
  headerMs: 10_000,
  /** Maximum time to connect to the host. */
  connectMs: 10_000,
  /** Maximum time without a byte. */
  idleMs: 600_000,
  /** Requests at once on a connection of HTTP/2, each on a connection of its own to the host. */
  streams: 32,
  /** How long such a connection stays open: less than servers usually wait. */
  keepMs: 4000,
}
/** Agents whose authorities are kept. */
const MAX_AUTHORITIES = 1024

export interface TerminatorOptions {
  agentProxyKey: string
  log: Logger
  /** Certificates of roots that are trusted besides the system's. */
  roots?: readonly string[]
  limits?: Partial<typeof LIMITS>
}

export interface Tunnel {
  destination: Destination
  visit: Visit
  /** Opens a connection to the host. @throws ProxyError */
  dial(): Promise<Socket>
}

/** A tunnel and its client, whose TLS is ended. */
interface Served extends Tunnel {
  client: Socket
}

export class Terminator {
  readonly #options: TerminatorOptions
  readonly #limits: typeof LIMITS
  readonly #http1: Http1Server
  readonly #authorities = new Map<string, AgentAuthority>()
  readonly #servers = new WeakMap<Leaf, TlsServer>()
  /** Tunnels before their handshakes, by the addresses of their connections. */
  readonly #tunnels = new Map<string, Served>()
  readonly #terms = new WeakMap<Socket, Terms>()
  #trust: SecureContext | undefined

  constructor(options: TerminatorOptions) {
    this.#options = options
    this.#limits = { ...LIMITS, ...options.limits }
    this.#http1 = serveHttp1(this.#limits, (socket, asked) => {
      const terms = this.#terms.get(socket)
      if (terms) void this.#exchange(asked, terms)
      else socket.destroy()
    })
  }

  /** Accepts a tunnel and handles its requests; resolves when it is closed. */
  serve(res: ServerResponse, { client, head }: Detached, tunnel: Tunnel): Promise<void> {
    acceptTunnel(res, { client, head })
    if (head.length > 0) client.unshift(head)
    return new Promise((resolve) => {
      const id = idOf(client)
      const ended = () => {
        this.#tunnels.delete(id)
        resolve()
      }
      client.once('close', ended)
      if (client.destroyed) return ended()
      this.#tunnels.set(id, { ...tunnel, client })
      tunnel.visit.onCut(() => client.destroy())
      const host = tunnel.destination.host.replace(/\.$/, '')
      this.#serverFor(this.#authority(tunnel.visit.agentId).leafFor(host)).emit('connection', client)
    })
  }

  #authority(agentId: string): AgentAuthority {
    const found = this.#authorities.get(agentId)
    if (found) return found
    const made = agentAuthority(this.#options.agentProxyKey, agentId)
    const [oldest] = this.#authorities.keys()
    if (this.#authorities.size >= MAX_AUTHORITIES && oldest !== undefined) this.#authorities.delete(oldest)
    this.#authorities.set(agentId, made)
    return made
  }

  #serverFor(leaf: Leaf): TlsServer {
    const found = this.#servers.get(leaf)
    if (found) return found
    const server = createServer({
      ...leaf,
      ALPNProtocols: ['h2', 'http/1.1'],
      handshakeTimeout: this.#limits.headerMs,
    })
    server.on('tlsClientError', (error, socket) => {
      this.#options.log.debug({ err: error }, 'an agent’s TLS failed')
      socket.destroy()
    })
    server.on('secureConnection', (socket) => this.#secured(socket))
    this.#servers.set(leaf, server)
    return server
  }

  #secured(socket: TLSSocket): void {
    const tunnel = this.#tunnels.get(idOf(socket))
    if (!tunnel) return void socket.destroy()
    const isHttp2 = socket.alpnProtocol === 'h2'
    const { destination, visit } = tunnel
    const { connectMs, headerBytes, idleMs, streams, keepMs } = this.#limits
    this.#trust ??= trustedRoots(this.#options.roots)
    const upstream = new Upstream({
      destination,
      dial: async () => {
        const upstream = await tunnel.dial()
        visit.opened(upstream)
        return upstream
      },
      trust: this.#trust,
      limits: { connectMs, headerBytes, idleMs },
      connections: isHttp2 ? streams : 1,
      keepMs: isHttp2 ? keepMs : idleMs,
      // The client sees the same as without a proxy between.
      ...(!isHttp2 && { onIdleClose: () => socket.end() }),
    })
    const terms: Terms = {
      ...{ destination, visit, upstream, idleMs },
      serverName: typeof socket.servername === 'string' ? socket.servername : undefined,
    }
    socket.on('error', () => {})
    socket.once('close', () => {
      upstream.close()
      tunnel.client.destroy()
    })
    if (isHttp2) {
      const session = serveHttp2(
        socket,
        { headerBytes, streams },
        (asked) => void this.#exchange(asked, terms),
      )
      session.setTimeout(2 * idleMs, () => session.destroy())
    } else {
      this.#terms.set(socket, terms)
      this.#http1.emit('connection', socket)
    }
  }

  async #exchange(asked: Asked, terms: Terms): Promise<void> {
    try {
      await exchange(asked, terms)
    } catch (error) {
      const refusal = error instanceof ProxyError ? error : new ProxyError(500, 'Internal error')
      if (refusal !== error) this.#options.log.error({ err: error }, 'egress of a brokered host failed')
      asked.refuse(refusal)
    }
  }
}

const idOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket) =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
