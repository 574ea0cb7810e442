/**
 * The active agent networks of this Berth, read from the machine's interfaces. The egress proxy listens on the
 * machine's address in each of them. Interfaces are read instead of asking Docker, because this role has no Docker
 * socket.
 */
import { BlockList } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Logger } from '../log.ts'
import type { EgressProxy } from './egress.ts'

/** An agent's gateway takes several seconds to start, and needs outbound access only then. */
const POLL_MS = 1000

export interface AgentNetworksOptions {
  egress: EgressProxy
  /** Port of the egress proxy on each network. */
  port: number
  /** BERTH_AGENT_SUBNETS. */
  subnets: string
  /** True for the name of a bridge that belongs to this Berth's agents: another Berth may use the same subnets. */
  isOwn(bridge: string): boolean
  log: Logger
  /** The interfaces of this machine with their addresses, as `address/bits`. */
  interfaces?: () => Interface[]
}

export interface Interface {
  name: string
  cidr: string
}

export class AgentNetworks {
  readonly #options: AgentNetworksOptions
  readonly #subnets = new BlockList()
  /** Networks with a listener, by address; and addresses that failed, so that each failure is logged once. */
  readonly #open = new Map<string, string>()
  readonly #failed = new Set<string>()
  /** Networks that were up at the last poll, by address. */
  #up = new Map<string, string>()
  #timer: NodeJS.Timeout | undefined
  #looking = Promise.resolve()

  constructor(options: AgentNetworksOptions) {
    this.#options = options
    const [address = '', bits] = options.subnets.split('/')
    this.#subnets.addSubnet(address, Number(bits), 'ipv4')
  }

  /** Listens on the networks that are up, and tracks changes from now on. */
  async start(): Promise<void> {
    await this.#look().catch((error) => this.#options.log.warn({ err: error }, 'cannot see networks'))
    this.#timer = setTimeout(() => {
      this.#looking = this.start()
    }, POLL_MS)
  }

  /** Stops tracking networks. The listeners close with the proxy. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#looking
    clearTimeout(this.#timer)
  }

  /** True for an address in a network that is up now. */
  has(address: string): boolean {
    return isInside(this.#up, address) || isInside(this.#see(), address)
  }

  #see(): Map<string, string> {
    const { isOwn, interfaces = ownInterfaces } = this.#options
    const own = interfaces().filter(({ name }) => isOwn(name))
    this.#up = new Map(own.flatMap(({ cidr }) => this.#addressIn(cidr)))
    return this.#up
  }

  async #look(): Promise<void> {
    const { egress, log } = this.#options
    const up = this.#see()
    for (const [address, network] of this.#open) {
      if (up.get(address) === network) continue
      this.#open.delete(address)
      log.debug({ network }, "an agent's network is gone")
      // Requests on it have time to finish; the poll does not wait for them.
      void egress.unlisten(address)
    }
    for (const address of this.#failed) if (!up.has(address)) this.#failed.delete(address)
    for (const [address, network] of up) {
      if (!this.#open.has(address)) await this.#listen(address, network)
    }
  }

  async #listen(address: string, network: string): Promise<void> {
    const { egress, port, log } = this.#options
    const settings = { host: 'BERTH_AGENT_SUBNETS', port: 'BERTH_EGRESS_PORT' }
    try {
      await egress.listen({ host: address, port, settings }, { network, isOfOne: true })
      this.#open.set(address, network)
      this.#failed.delete(address)
      log.debug({ network }, "the egress proxy listens on an agent's network")
    } catch (error) {
      // The address may appear late, or may be gone again; the next poll retries.
      if (!this.#failed.has(address)) log.warn({ err: error, network }, 'an agent has no way out')
      this.#failed.add(address)
    }
  }

  /** The address in an agent's network, with the network; empty for other networks. */
  #addressIn(network: string): [address: string, network: string][] {
    const [address = ''] = network.split('/')
    return this.#subnets.check(address, 'ipv4') ? [[address, network]] : []
  }
}

function isInside(networks: Map<string, string>, address: string): boolean {
  const list = new BlockList()
  for (const network of networks.values()) {
    const [first = '', bits] = network.split('/')
    list.addSubnet(first, Number(bits), 'ipv4')
  }
  return list.check(address, 'ipv4')
}

function ownInterfaces(): Interface[] {
  return Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
    (addresses ?? []).flatMap(({ family, cidr }) => (family === 'IPv4' && cidr ? [{ name, cidr }] : [])),
  )
}
