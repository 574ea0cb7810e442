/**
 * Connections to model servers, kept open between requests. Destinations are dialled like those of agents: only public
 * addresses, except where the operator or the agent's owner named the server.
 */
import * as http from 'node:http'
import * as https from 'node:https'
import type { BlockList } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { urlToHttpOptions } from 'node:url'
import { FALLBACK_PROVIDER, LOCAL_PROVIDER, OPERATOR_PROVIDER } from '../../model-providers.ts'
import { type Destination, hasDestination, parseDestination } from '../destination.ts'
import { dial, ProxyError, type Resolve, resolveByDns, resolveBySystem } from '../dial.ts'
import type { Provider } from './protocol.ts'

const LIMITS = {
  connectMs: 10_000,
  headerBytes: 32 * 1024,
  freeSockets: 256,
  idleSocketMs: 60_000,
  /** Maximum time without a byte. A model may think for minutes before its first word. */
  silentMs: 600_000,
  /** For how long other servers go first after one could not be reached: each try may take `connectMs`. */
  downMs: 30_000,
}

/** Providers whose servers the operator chose, or Berth found on the agent's machine. */
const MAY_BE_PRIVATE = [OPERATOR_PROVIDER, FALLBACK_PROVIDER, LOCAL_PROVIDER]

export interface UpstreamOptions {
  /** Destinations that may have private addresses. */
  allowed: readonly Destination[]
  /** Public addresses that are refused like private ones. */
  refused?: BlockList
  resolve?: Resolve | undefined
  silentMs?: number
  downMs?: number
}

/** Why a model server cannot be called or gave no valid response, without its address. */
export class UpstreamError extends Error {
  override name = 'UpstreamError'
  /** True if the request did not reach the server. */
  readonly isUnsent: boolean

  constructor(message: string, isUnsent: boolean) {
    super(message)
    this.isUnsent = isUnsent
  }
}

export interface UpstreamRequest {
  method: string
  /** Behind the provider's base URL. */
  path: string
  /** Names and values in turn. */
  headers: string[]
  body: Buffer
  signal: AbortSignal
}

/** How to send requests to a provider's server. */
interface Server {
  open: typeof http.request
  host: string
  /** The name and password in the URL, for a provider without a key. */
  auth: string | null | undefined
  /** `path` is the one that is in front of every request's. */
  options: http.RequestOptions & { agent: http.Agent }
}

export class Upstream {
  readonly #options: UpstreamOptions
  /** By base URL, those that may have private addresses apart. */
  readonly #servers = new Map<string, Server>()
  /** Servers that could not be reached, by base URL: when to try them again, by `performance.now()`. */
  readonly #down = new Map<string, number>()

  constructor(options: UpstreamOptions) {
    this.#options = options
  }

  /** The targets in order, except that those whose servers could not be reached lately come last. */
  inOrder<Target extends { provider: Provider }>(targets: readonly Target[]): Target[] {
    const [first, ...others] = targets
    if (!first || others.length === 0 || !this.#isDown(first.provider)) return [...targets]
    return [...others, first]
  }

  /** Once the time is up, one request tries the server again, and the others still wait for its outcome. */
  #isDown({ baseUrl }: Provider): boolean {
    const until = this.#down.get(baseUrl)
    if (until === undefined) return false
    const now = performance.now()
    if (now < until) return true
    this.#noteDown(baseUrl)
    return false
  }

  #noteDown(baseUrl: string): void {
    this.#down.set(baseUrl, performance.now() + (this.#options.downMs ?? LIMITS.downMs))
  }

  /** Resolves with the head of a response. @throws UpstreamError */
  send(provider: Provider, request: UpstreamRequest): Promise<http.IncomingMessage> {
    const { open, host, auth, options } = this.#server(provider)
    const { silentMs = LIMITS.silentMs } = this.#options
    const { signal } = request
    const length = `${request.body.length}`
    return new Promise((resolve, reject) => {
      const req = open({
        ...options,
        method: request.method,
        path: `${options.path}${request.path}`,
        timeout: silentMs,
        headers: ['host', host, ...request.headers, ...keyHeader(provider, auth), 'content-length', length],
      })
      // Cheaper than the option `signal`, with which Node also watches how the request ends.
      signal.addEventListener('abort', () => req.destroy(signal.reason), { once: true })
      if (signal.aborted) req.destroy(signal.reason)
      req.once('timeout', () => {
        req.destroy(new UpstreamError(`${provider.id} was silent for ${silentMs / 1000} s`, false))
      })
      req.once('response', (response) => {
        this.#down.delete(provider.baseUrl)
        resolve(response)
      })
      req.once('upgrade', (_response, socket) => {
        socket.destroy()
        reject(new UpstreamError(`${provider.id} sent an upgrade unasked`, false))
      })
      req.once('error', (error: NodeJS.ErrnoException) => {
        if (signal.aborted || error instanceof UpstreamError) return reject(error)
        // The other side may close an idle connection just as it is used.
        const isStale = req.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
        if (isStale) return void this.send(provider, request).then(resolve, reject)
        const reason =
          error.code ?? (error instanceof ProxyError ? String(error.status) : 'no valid response')
        const isUnsent = !req.socket
        if (isUnsent) this.#noteDown(provider.baseUrl)
        reject(new UpstreamError(`${provider.id} cannot be reached: ${reason}`, isUnsent))
      })
      req.end(request.body)
    })
  }

  close(): void {
    for (const { options } of this.#servers.values()) options.agent.destroy()
  }

  #server({ id, baseUrl }: Provider): Server {
    const isAllowed = MAY_BE_PRIVATE.includes(id)
    const name = `${baseUrl} ${isAllowed}`
    const known = this.#servers.get(name)
    if (known) return known
    const url = new URL(baseUrl)
    const { Agent, request: open } = url.protocol === 'https:' ? https : http
    const agent = new Agent({
      keepAlive: true,
      maxFreeSockets: LIMITS.freeSockets,
      scheduling: 'lifo',
      timeout: 0,
    })
    agent.createConnection = (_options, done) => {
      this.#connect(url, isAllowed).then(
        (socket) => done?.(null, socket),
        (error) => done?.(error, undefined as never),
      )
      return undefined
    }
    const path = `${url.pathname}${url.search}`.replace(/\/$/, '')
    const { hostname, port, auth } = urlToHttpOptions(url)
    const options = { hostname, port, path, agent, maxHeaderSize: LIMITS.headerBytes }
    const server = { open, host: url.host, auth, options }
    this.#servers.set(name, server)
    return server
  }

  async #connect(url: URL, isAllowed: boolean): Promise<Duplex> {
    const isTls = url.protocol === 'https:'
    const destination = parseDestination(url.host, isTls ? 443 : 80)
    if (!destination) throw new ProxyError(502, 'The address is not host:port')
    const { allowed, refused, resolve } = this.#options
    const isNamed = isAllowed || hasDestination(allowed, destination)
    const socket = await dial(destination, {
      isAllowed: isNamed,
      connectMs: LIMITS.connectMs,
      resolve: resolve ?? (isNamed ? resolveBySystem : resolveByDns),
      ...(refused && { refused }),
    })
    socket.allowHalfOpen = false
    socket.setNoDelay(true)
    socket.setKeepAlive(true, LIMITS.idleSocketMs)
    if (!isTls) return socket
    return connectTls({ socket, servername: url.hostname, ALPNProtocols: ['http/1.1'] })
  }
}

/** The real key, in the provider's own header. */
function keyHeader({ dialect, key }: Provider, auth: Server['auth']): string[] {
  if (!key) return auth ? ['authorization', `Basic ${Buffer.from(auth).toString('base64')}`] : []
  if (dialect === 'anthropic') return ['x-api-key', key]
  return dialect === 'google' ? ['x-goog-api-key', key] : ['authorization', `Bearer ${key}`]
}
