/**
 * Tunnels to agents: a proxy that accepts only CONNECT (RFC 9110, 9.3.6), only from clients that have AGENT_PROXY_KEY,
 * and only to agents' addresses and the model gateway. `GET /` returns the facts that the worker needs.
 * `tunnel-client.ts` is its client.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { BlockList } from 'node:net'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Binding } from '../lib/net/bind.ts'
import { MODEL_HOST, MODEL_PORT } from '../lib/net/host-machine.ts'
import type { Logger } from '../log.ts'
import { formatDestination, parseDestination } from './destination.ts'
import { dial, ProxyError, type Resolve } from './dial.ts'
import { acceptTunnel, type Detached, type ExchangeKind, Listener, openTunnel, refuse } from './listener.ts'
import type { ModelGateway } from './model/gateway.ts'
import type { AgentProxyFacts } from './tunnel-client.ts'

const LIMITS = {
  /** Concurrent tunnels; the next gets 503. */
  tunnels: 8192,
  headerBytes: 8 * 1024,
  /** Maximum time for a client to send the head of its request. */
  headerMs: 5000,
  /** Maximum time to connect, less than clients wait. */
  connectMs: 4000,
  /** Maximum time without a byte, longer than a console command may take (`consoleSeconds` of BERTH_AGENT_LIMITS). */
  idleMs: 3_900_000,
  /** On shutdown, how long tunnels may take to end on their own. */
  drainMs: 5000,
}

export interface TunnelServerOptions {
  /** AGENT_PROXY_KEY. */
  key: string
  /** Networks that may contain agents, as `address/bits`. */
  networks: string[]
  /** True if the address belongs to an agent of this Berth right now: other Berths may share the networks. */
  isOwn(address: string): boolean
  facts: AgentProxyFacts
  /** Serves {@link MODEL_HOST}. */
  gateway?: ModelGateway
  log: Logger
  registry: Registry
  limits?: Partial<typeof LIMITS>
}

/** Targets are addresses, because a name could change hands before it is resolved. */
const noNames: Resolve = () => Promise.reject(new ProxyError(403, 'Only addresses of agents'))

export class TunnelServer {
  readonly #limits: typeof LIMITS
  readonly #log: Logger
  readonly #keyHash: Buffer
  readonly #facts: AgentProxyFacts
  readonly #isOwn: TunnelServerOptions['isOwn']
  readonly #gateway: ModelGateway | undefined
  readonly #targets = new BlockList()
  readonly #listener: Listener
  readonly #outcomes: Counter<'outcome'>
  #open = 0

  constructor({ key, networks, isOwn, facts, gateway, log, registry, limits }: TunnelServerOptions) {
    this.#limits = { ...LIMITS, ...limits }
    this.#log = log
    this.#keyHash = hash(key)
    this.#facts = facts
    this.#isOwn = isOwn
    this.#gateway = gateway
    for (const network of networks) {
      const [address = '', bits] = network.split('/')
      this.#targets.addSubnet(address, Number(bits), 'ipv4')
    }
    this.#listener = new Listener({
      ...this.#limits,
      connections: 2 * this.#limits.tunnels,
      exchange: (...exchange) => this.#exchange(...exchange),
    })
    this.#outcomes = new Counter({
      name: 'berth_tunnels_total',
      help: 'Requested tunnels to agents, by outcome: `passed`, or the status of the refusal.',
      labelNames: ['outcome'],
      registers: [registry],
    })
    const open = () => this.#open
    new Gauge({
      name: 'berth_tunnels_open',
      help: 'Open tunnels to agents.',
      registers: [registry],
      collect() {
        this.set(open())
      },
    })
  }

  /** Resolves with the port. @throws ConfigError if it cannot listen on the address. */
  listen(binding: Binding): Promise<number> {
    return this.#listener.listen(binding)
  }

  /** Listens on a Unix socket. @throws ConfigError that names `setting` if it cannot. */
  listenOnSocket(path: string, setting: string): Promise<void> {
    return this.#listener.listenOnSocket(path, setting)
  }

  /** Stops accepting, lets tunnels finish for a while, then closes every connection. */
  close(): Promise<void> {
    return this.#listener.close()
  }

  /** Opens and serves a tunnel, or refuses it. Never rejects. */
  async #exchange(
    kind: ExchangeKind,
    req: IncomingMessage,
    res: ServerResponse,
    detached: Detached | undefined,
  ): Promise<void> {
    const start = performance.now()
    let outcome: string | undefined = 'passed'
    this.#open++
    try {
      if (this.#open > this.#limits.tunnels) throw new ProxyError(503, 'Too many tunnels')
      this.#authorize(req)
      if (kind === 'request' && req.method === 'GET' && req.url === '/') {
        outcome = undefined
        return this.#tellFacts(res)
      }
      if (kind !== 'connect' || !detached) throw new ProxyError(405, 'CONNECT, or GET /')
      const target = parseDestination(req.url ?? '')
      if (!target) throw new ProxyError(400, 'CONNECT takes address:port')
      if (this.#gateway && target.host === MODEL_HOST && target.port === MODEL_PORT) {
        acceptTunnel(res, detached)
        return await this.#gateway.serve(detached.client, detached.head, undefined)
      }
      if (!this.#isAgent(target.host)) throw new ProxyError(403, 'Only addresses of agents')
      // The same error as for an address where nothing responds: the network of a starting agent appears a moment
      // later.
      if (!this.#isOwn(target.host)) throw new ProxyError(502, 'No agent of this Berth has this address')
      const { connectMs, idleMs } = this.#limits
      const options = { isAllowed: true, connectMs, resolve: noNames, to: detached.client }
      const upstream = await dial(target, options)
      if (req.socket.destroyed) upstream.destroy()
      else await openTunnel(res, detached, upstream, idleMs)
    } catch (error) {
      const refusal = error instanceof ProxyError ? error : new ProxyError(500, 'Internal error')
      if (refusal !== error) this.#log.error({ err: error }, 'a tunnel failed')
      outcome = String(refusal.status)
      if (refusal.status === 405) res.setHeader('Allow', 'CONNECT, GET')
      if (refusal.status === 407) res.setHeader('Proxy-Authenticate', 'Bearer')
      refuse(res, refusal)
    } finally {
      this.#open--
      if (outcome) this.#outcomes.inc({ outcome })
      const ms = Math.round(performance.now() - start)
      this.#log.debug({ target: readable(req.url), outcome, ms, open: this.#open }, 'tunnel')
    }
  }

  #tellFacts(res: ServerResponse): void {
    res.setHeader('Content-Type', 'application/json')
    res.setHeader('Connection', 'close')
    res.end(JSON.stringify(this.#facts))
  }

  /** @throws ProxyError 407. Compares hashes, so that the timing reveals nothing. */
  #authorize(req: IncomingMessage): void {
    const [, key = ''] = /^Bearer +(\S+)$/i.exec(req.headers['proxy-authorization'] ?? '') ?? []
    if (!timingSafeEqual(hash(key), this.#keyHash)) throw new ProxyError(407, 'AGENT_PROXY_KEY is required')
  }

  #isAgent(host: string): boolean {
    return /^[\d.]+$/.test(host) && this.#targets.check(host, 'ipv4')
  }
}

const hash = (text: string): Buffer => createHash('sha256').update(text).digest()

/** The target for the log; undefined if malformed, because it may then be any text. */
function readable(text = ''): string | undefined {
  const target = parseDestination(text)
  return target && formatDestination(target)
}
