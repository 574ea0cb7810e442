/** The connections of a terminated tunnel to its host: verified TLS, kept open between requests. */
import { Agent, type ClientRequest, request } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import {
  connect as connectTls,
  createSecureContext,
  getCACertificates,
  type SecureContext,
  type TLSSocket,
} from 'node:tls'
import { orAborted, withDeadline } from '../../lib/signals.ts'
import { type Destination, formatDestination } from '../destination.ts'
import { ProxyError } from '../dial.ts'
import type { Answer, UpstreamRequest } from './asked.ts'
import { Http2Upstream } from './upstream-http2.ts'

export interface UpstreamOptions {
  destination: Destination
  /** Opens a connection to the host. @throws ProxyError */
  dial(): Promise<Socket>
  trust: SecureContext
  limits: UpstreamLimits
  /** Connections at once; further requests wait. */
  connections: number
  /** How long a connection without a request stays open. */
  keepMs: number
  /** Called when the host has closed a connection without a request. */
  onIdleClose?(): void
}

interface UpstreamLimits {
  headerBytes: number
  connectMs: number
  /** Maximum time without a byte. */
  idleMs: number
}

export interface UpstreamResponse {
  response: Answer
  /** For an upgrade: the connection, and what was read past the response's head. */
  upgraded?: { socket: Duplex; head: Buffer }
}

/** The roots with which hosts are verified: Node's, the system's, those of NODE_EXTRA_CA_CERTS, and more of a test. */
export function trustedRoots(more: readonly string[] = []): SecureContext {
  const roots = new Set([...getCACertificates('default'), ...getCACertificates('system'), ...more])
  return createSecureContext({ ca: [...roots].join('\n') })
}

/** The request was not answered on a connection that had been kept open, and may be repeated on a new one. */
export class StaleConnection extends Error {
  override name = 'StaleConnection'
}

export class Upstream {
  readonly #options: UpstreamOptions
  readonly #agent: Agent
  readonly #http2: Http2Upstream
  readonly name: string

  constructor(options: UpstreamOptions) {
    this.#options = options
    this.name = formatDestination(options.destination)
    this.#http2 = new Http2Upstream({
      name: this.name,
      connect: () => this.#connect(['h2', 'http/1.1']),
      idleMs: options.limits.idleMs,
    })
    this.#agent = new Agent({ keepAlive: true, maxSockets: options.connections, timeout: options.keepMs })
    this.#agent.createConnection = (_options, done) => {
      this.#connect(['http/1.1']).then(
        (socket) => done?.(null, socket),
        (error) => done?.(error, undefined as never),
      )
      return undefined
    }
  }

  /** Sends a request with its body, and resolves when a response begins. @throws ProxyError 502, 504; StaleConnection */
  send(asked: UpstreamRequest): Promise<UpstreamResponse> {
    const { idleMs } = this.#options.limits
    return new Promise((resolve, reject) => {
      const outgoing = this.#open(asked)
      outgoing.setTimeout(idleMs, () =>
        outgoing.destroy(new ProxyError(504, `${this.name} was silent for ${idleMs / 1000} s`)),
      )
      outgoing.once('response', (response) => resolve({ response }))
      outgoing.once('upgrade', (response, socket, head) => {
        if (asked.upgrade) return resolve({ response, upgraded: { socket, head } })
        socket.destroy()
        reject(new ProxyError(502, `${this.name} sent an upgrade unasked`))
      })
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        const isStale = outgoing.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(error.code ?? '')
        if (isStale) return reject(new StaleConnection())
        const why = error.code ?? error.message
        reject(
          error instanceof ProxyError
            ? error
            : new ProxyError(502, `${this.name} sent no valid response: ${why}`),
        )
      })
      // A client that leaves closes the connection to the host, whatever its state.
      asked.onOver(() => outgoing.destroy())
      if (!asked.body) return void outgoing.end()
      asked.body.once('close', () => asked.body?.complete || outgoing.destroy())
      asked.body.pipe(outgoing)
    })
  }

  /** The same in HTTP/2; resolves with undefined if the host does not offer it. @throws ProxyError 502, 504 */
  async sendHttp2(asked: UpstreamRequest): Promise<UpstreamResponse | undefined> {
    const response = await this.#http2.send(asked)
    return response && { response }
  }

  close(): void {
    this.#agent.destroy()
    this.#http2.close()
  }

  #open({ method, target, headers, body, upgrade }: UpstreamRequest): ClientRequest {
    const names = headers.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
    const isSized = names.includes('content-length')
    const isEmpty = !body && !isSized && ['POST', 'PUT', 'PATCH'].includes(method)
    const framing =
      body && !isSized ? ['Transfer-Encoding', 'chunked'] : isEmpty ? ['Content-Length', '0'] : []
    const connection = upgrade ? ['Connection', 'Upgrade', 'Upgrade', upgrade] : []
    try {
      return request({
        agent: this.#agent,
        method,
        path: target,
        maxHeaderSize: this.#options.limits.headerBytes,
        headers: ['Host', this.name.replace(/:443$/, ''), ...headers, ...framing, ...connection],
      })
    } catch (error) {
      throw new ProxyError(400, `The request cannot be passed on: ${(error as Error).message}`)
    }
  }

  /** Opens a connection and verifies the host. @throws ProxyError 403, 502, 504 */
  async #connect(protocols: string[]): Promise<TLSSocket> {
    const { destination, dial, trust, limits, onIdleClose } = this.#options
    const socket = await dial()
    socket.allowHalfOpen = false
    socket.setNoDelay(true)
    const servername = destination.host.replace(/\.$/, '')
    const secure = connectTls({ socket, servername, secureContext: trust, ALPNProtocols: protocols })
    const late = () => new ProxyError(504, `${this.name} did not answer in time`)
    try {
      await withDeadline({ ms: limits.connectMs, late }, (signal) => orAborted(opened(secure), signal))
    } catch (error) {
      secure.destroy()
      if (error instanceof ProxyError) throw error
      const { code, message } = error as NodeJS.ErrnoException
      throw new ProxyError(502, `${this.name} cannot be reached by verified TLS: ${code ?? message}`)
    }
    secure.on('error', () => {})
    secure.once('close', () => {
      const isIdle = Object.values(this.#agent.sockets).every((all) => all?.length === 0)
      if (isIdle) onIdleClose?.()
    })
    return secure
  }
}

function opened(secure: TLSSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    secure.once('secureConnect', resolve)
    secure.once('error', reject)
    secure.once('close', () => reject(new Error('closed')))
  })
}
