/**
 * The egress proxy: the agents' only way out. It is an HTTP/1.1 forward proxy (RFC 9110, 7) that accepts absolute-form
 * requests, WebSocket upgrades and CONNECT. It connects to public addresses, and to destinations allowed by name, whose
 * addresses it does not check.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { BlockList, type Socket } from 'node:net'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Binding } from '../lib/net/bind.ts'
import { MODEL_HOST, MODEL_PORT } from '../lib/net/host-machine.ts'
import { toIPv4 } from '../lib/net/ip-address.ts'
import type { Logger } from '../log.ts'
import { passwordHash } from './credential.ts'
import {
  type Destination,
  formatDestination,
  hasDestination,
  parseAbsoluteForm,
  parseDestination,
} from './destination.ts'
import { dial, ProxyError, type Resolve, resolveByDns, resolveBySystem } from './dial.ts'
import { forward } from './forward.ts'
import { acceptTunnel, type Detached, type ExchangeKind, Listener, openTunnel, refuse } from './listener.ts'
import type { ModelGateway } from './model/gateway.ts'
import { refuseProvider } from './model/hosts.ts'
import type { Policies } from './policy/policies.ts'
import type { Client } from './policy/protocol.ts'
import type { Terminator } from './tls/terminator.ts'

const LIMITS = {
  /** Concurrent requests and tunnels; the next gets 503. */
  exchanges: 4096,
  /** One agent's share of `exchanges`. */
  agentExchanges: 128,
  headerBytes: 16 * 1024,
  /** Maximum time for a client to send the head of its request. */
  headerMs: 10_000,
  /** Maximum time to resolve and connect. */
  connectMs: 10_000,
  /** Maximum time without a byte. A model may think for minutes before its first word. */
  idleMs: 600_000,
  /** On shutdown, how long active exchanges may take to end on their own. */
  drainMs: 5000,
}

/** Where to connect for some hosts, whose names stay in the request; the addresses are then not checked. */
export interface EgressRoute {
  hosts: readonly Destination[]
  at: Destination
}

export interface EgressOptions {
  /**
   * Destinations reached even though their addresses are private; a host that begins with `*.` matches every name below
   * it.
   */
  allowed: readonly Destination[]
  /** Public addresses that are refused like private ones. */
  refused?: BlockList
  /** Hosts that lead to another place than their names suggest. */
  routes?: readonly EgressRoute[]
  /** Serves {@link MODEL_HOST} and requests to the proxy itself; hosts of model providers are then refused. */
  gateway?: ModelGateway
  /** Restricts where agents connect to. Clients outside of agents' networks have no policy. */
  policies?: Policies
  /** Reads the requests of tunnels for which a policy needs it. */
  terminator?: Terminator
  log: Logger
  registry: Registry
  limits?: Partial<typeof LIMITS>
  /** If undefined, allowed destinations are resolved by the system, and names that agents may invent only by DNS. */
  resolve?: Resolve
  /** Called for each exchange that was refused or failed. */
  onRefusal?: (refusal: ProxyError) => void
}

/** The clients that may connect to an address on which the proxy listens. */
export interface Admitted {
  /** `address/bits`; clients outside it are refused. */
  network: string
  /** True if the network belongs to one agent. In a network of several agents each address is an agent. */
  isOfOne: boolean
}

/** An address on which the proxy listens. */
interface Door {
  listener: Listener
  /** Open exchanges, by address where each address is an agent; and their limit. */
  open: Map<string, number>
  limit: number
  isByAddress: boolean
  /** True if only agents connect. */
  isOfAgents: boolean
}

export class EgressProxy {
  readonly #log: Logger
  readonly #limits: typeof LIMITS
  readonly #allowed: readonly Destination[]
  readonly #resolve: Resolve | undefined
  readonly #refused: BlockList | undefined
  readonly #routes: readonly EgressRoute[]
  readonly #gateway: ModelGateway | undefined
  readonly #policies: Policies | undefined
  readonly #terminator: Terminator | undefined
  readonly #onRefusal: EgressOptions['onRefusal']
  readonly #doors = new Map<string, Door>()
  readonly #outcomes: Counter<'kind' | 'outcome'>
  #open = 0

  constructor(options: EgressOptions) {
    const { allowed, refused, routes = [], gateway, log, registry, limits, resolve, onRefusal } = options
    this.#policies = options.policies
    this.#terminator = options.terminator
    this.#log = log
    this.#gateway = gateway
    this.#limits = { ...LIMITS, ...limits }
    this.#allowed = allowed
    this.#refused = refused
    this.#routes = routes
    this.#resolve = resolve
    this.#onRefusal = onRefusal
    this.#outcomes = new Counter({
      name: 'berth_egress_exchanges_total',
      help: "Agents' requests and tunnels that reached the egress proxy, by kind and outcome: `passed`, or the status of the refusal.",
      labelNames: ['kind', 'outcome'],
      registers: [registry],
    })
    const open = () => this.#open
    new Gauge({
      name: 'berth_egress_open',
      help: 'Open requests and tunnels of agents through the egress proxy.',
      registers: [registry],
      collect() {
        this.set(open())
      },
    })
  }

  /**
   * Starts listening on an address, and resolves with the port. An agent that exceeds its share of exchanges is
   * refused.
   * @throws ConfigError if it cannot listen on the address.
   */
  async listen(binding: Binding, admitted?: Admitted): Promise<number> {
    const limits = this.#limits
    const isByAddress = admitted?.isOfOne === false
    const limit = admitted ? limits.agentExchanges : limits.exchanges
    const door: Door = {
      open: new Map(),
      limit,
      isByAddress,
      isOfAgents: admitted !== undefined,
      listener: new Listener({
        ...limits,
        connections: 2 * (isByAddress ? limits.exchanges : limit),
        ...(isByAddress && { connectionsOfOne: 2 * limit }),
        ...(admitted && { admits: insideOf(admitted.network) }),
        exchange: (...exchange) => this.#exchange(door, ...exchange),
      }),
    }
    const port = await door.listener.listen(binding)
    this.#doors.set(binding.host, door)
    return port
  }

  /** Stops listening on an address. Never rejects. */
  async unlisten(host: string): Promise<void> {
    const door = this.#doors.get(host)
    this.#doors.delete(host)
    await door?.listener.close()
  }

  /** Stops accepting, lets active exchanges finish for a while, then closes every connection. */
  async close(): Promise<void> {
    await Promise.all([...this.#doors.keys()].map((host) => this.unlisten(host)))
  }

  /** Handles a request, upgrade or tunnel until it ends. Never rejects. */
  async #exchange(
    door: Door,
    kind: ExchangeKind,
    req: IncomingMessage,
    res: ServerResponse,
    detached: Detached | undefined,
  ): Promise<void> {
    const start = performance.now()
    let outcome = 'passed'
    let name: string | undefined
    const agent = door.isByAddress ? (req.socket.remoteAddress ?? '') : ''
    const open = (door.open.get(agent) ?? 0) + 1
    door.open.set(agent, open)
    this.#open++
    try {
      if (this.#open > this.#limits.exchanges || open > door.limit)
        throw new ProxyError(503, 'Too many connections')
      if (this.#gateway && kind === 'request' && req.url?.startsWith('/'))
        return await this.#gateway.handle(req, res, arrivalOf(req, req.url))
      const { destination, path } = readTarget(req)
      name = formatDestination(destination)
      if (this.#gateway && hasDestination([GATEWAY], destination))
        return await serveModels(this.#gateway, req, res, path, detached)
      if (this.#gateway) refuseProvider(destination)
      const request = kind === 'connect' ? undefined : { method: req.method ?? '', target: path }
      using visit = door.isOfAgents
        ? await this.#policies?.admit(clientOf(req), destination, request)
        : undefined
      if (visit?.isTerminated && detached) {
        if (!this.#terminator) throw new ProxyError(503, 'This proxy cannot read requests of tunnels')
        const dialled = () => this.#dial(destination)
        return await this.#terminator.serve(res, detached, { destination, visit, dial: dialled })
      }
      const upstream = await this.#dial(destination)
      visit?.opened(upstream)
      const { idleMs, headerBytes } = this.#limits
      if (req.socket.destroyed) upstream.destroy()
      else if (kind === 'connect' && detached) await openTunnel(res, detached, upstream, idleMs)
      else await forward(req, res, { destination, path, upstream, upgrade: detached, idleMs, headerBytes })
    } catch (error) {
      const refusal = error instanceof ProxyError ? error : new ProxyError(500, 'Internal error')
      if (refusal !== error) this.#log.error({ err: error }, 'egress failed')
      outcome = String(refusal.status)
      this.#onRefusal?.(refusal)
      refuse(res, refusal)
    } finally {
      this.#open--
      const left = (door.open.get(agent) ?? 1) - 1
      if (left === 0) door.open.delete(agent)
      else door.open.set(agent, left)
      this.#outcomes.inc({ kind, outcome })
      const ms = Math.round(performance.now() - start)
      // Paths and headers are not logged, because both carry credentials.
      this.#log.debug({ kind, destination: name, outcome, ms, open: this.#open }, 'egress')
    }
  }

  /** @throws ProxyError */
  #dial(destination: Destination): Promise<Socket> {
    const route = this.#routes.find(({ hosts }) => hasDestination(hosts, destination))
    const isAllowed = route !== undefined || hasDestination(this.#allowed, destination)
    return dial(route?.at ?? destination, {
      isAllowed,
      connectMs: this.#limits.connectMs,
      resolve: this.#resolve ?? (isAllowed ? resolveBySystem : resolveByDns),
      ...(this.#refused && { refused: this.#refused }),
    })
  }
}

const GATEWAY: Destination = { host: MODEL_HOST, port: MODEL_PORT }

function clientOf({ headers, socket: { remoteAddress = '' } }: IncomingMessage): Client {
  const credential = passwordHash(headers['proxy-authorization']) ?? ''
  return { credential, address: toIPv4(remoteAddress) ?? remoteAddress }
}

const arrivalOf = ({ headers }: IncomingMessage, path: string) => ({
  path,
  proxyAuthorization: headers['proxy-authorization'],
})

/** Serves a request or a tunnel to the model gateway. @throws ProxyError 400 for an upgrade. */
async function serveModels(
  gateway: ModelGateway,
  req: IncomingMessage,
  res: ServerResponse,
  path: string,
  detached: Detached | undefined,
): Promise<void> {
  if (!detached) return gateway.handle(req, res, arrivalOf(req, path))
  if (req.method !== 'CONNECT') throw new ProxyError(400, 'The model gateway takes no WebSockets')
  acceptTunnel(res, detached)
  await gateway.serve(detached.client, detached.head, req.headers['proxy-authorization'])
}

/** @throws ProxyError 400 */
function readTarget(req: IncomingMessage): { destination: Destination; path: string } {
  const target = req.url ?? ''
  if (req.method === 'CONNECT') {
    const destination = parseDestination(target)
    if (!destination) throw new ProxyError(400, 'CONNECT takes host:port')
    return { destination, path: '' }
  }
  const read = parseAbsoluteForm(target)
  if (!read)
    throw new ProxyError(400, 'This is a proxy: it takes CONNECT, and requests for http://host[:port]/…')
  return read
}

function insideOf(network: string): (address: string) => boolean {
  const [address = '', bits] = network.split('/')
  const inside = new BlockList()
  inside.addSubnet(address, Number(bits), 'ipv4')
  return (client) => inside.check(toIPv4(client) ?? '::', 'ipv4')
}
