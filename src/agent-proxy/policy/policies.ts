/** The egress policies of the agents that use this proxy: asked for when an agent comes, and again twice a second. */
import { isDeepStrictEqual } from 'node:util'
import { startLoop } from '../../lib/loop.ts'
import type { Logger } from '../../log.ts'
import type { Destination } from '../destination.ts'
import { ProxyError } from '../dial.ts'
import {
  type Client,
  type EgressAnswer,
  type EgressPolicy,
  type EgressRequest,
  type HostCount,
  POLL_MS,
} from './protocol.ts'
import type { Requested } from './rules.ts'
import { Visit } from './visit.ts'

/** A client that has not come for this long is forgotten. */
const FORGET_MS = 60_000
/** Hosts of an agent that are counted one by one between two reports. */
const MAX_HOSTS = 200
const OTHERS = '(others)'
const NOTHING = { requests: 0, denied: 0, bytesSent: 0, bytesReceived: 0 }

export interface PoliciesOptions {
  control: { egress(request: EgressRequest): Promise<EgressAnswer> }
  log: Logger
}

/** A client and its policy. */
interface Known {
  client: Client
  /** Null if it is not an agent. Rejects if `web` could not be asked. */
  policy: Promise<EgressPolicy | null>
  visits: Set<Visit>
  usedAt: number
}

export class Policies {
  readonly #options: PoliciesOptions
  readonly #known = new Map<string, Known>()
  /** By agent and host. */
  #counts = new Map<string, Map<string, HostCount>>()
  readonly #loop: { stop(): Promise<void> }
  #isAnswered = true

  constructor(options: PoliciesOptions) {
    this.#options = options
    this.#loop = startLoop('egress policies', POLL_MS, options.log, async () => this.#poll())
  }

  /** Reports the last counts. Call it once all exchanges have ended. */
  async close(): Promise<void> {
    await this.#loop.stop()
    await this.#poll()
  }

  /**
   * Lets a client connect to a destination: with a request, or for a tunnel. The visit ends with the exchange.
   * @throws ProxyError 403 if its policy forbids it, 407 if it is not an agent, 503 if `web` does not answer.
   */
  async admit(client: Client, destination: Destination, request?: Requested): Promise<Visit> {
    const known = this.#find(client)
    const policy = await currentOf(known).catch(() => {
      throw new ProxyError(503, 'Berth cannot be asked for the egress policy of this agent')
    })
    if (!policy)
      throw new ProxyError(407, 'Use the proxy URL in HTTPS_PROXY, with its user name and password')
    const count = (more: Partial<HostCount>) => add(this.#countOf(policy.agentId, destination.host), more)
    const visit = new Visit({
      ...{ destination, policy, count, isTunnel: !request },
      ended: () => known.visits.delete(visit),
    })
    if (request) visit.admit(request)
    else visit.admitTunnel()
    known.visits.add(visit)
    return visit
  }

  #find(client: Client): Known {
    const key = `${client.credential} ${client.address}`
    const found = this.#known.get(key)
    if (found) {
      found.usedAt = performance.now()
      return found
    }
    const answer = this.#options.control.egress({ clients: [client], counts: [] })
    const policy = answer.then(({ policies: [policy = null] }) => policyFor(client, policy))
    const known: Known = { client, policy, visits: new Set(), usedAt: performance.now() }
    this.#known.set(key, known)
    // An agent could invent any number of credentials.
    const forget = () => this.#known.delete(key)
    policy.then((policy) => policy ?? forget(), forget)
    return known
  }

  /** Reports counts and renews policies. If `web` does not answer, those that are known stay in force. */
  async #poll(): Promise<void> {
    const before = performance.now() - FORGET_MS
    for (const [key, { usedAt, visits }] of this.#known)
      if (usedAt < before && visits.size === 0) this.#known.delete(key)
    const known = [...this.#known.values()]
    for (const { visits } of known) for (const visit of visits) visit.countBytes()
    const counts = [...this.#counts.values()].flatMap((ofAgent) => [...ofAgent.values()])
    if (known.length === 0 && counts.length === 0) return
    this.#counts = new Map()
    try {
      const { policies } = await this.#options.control.egress({
        clients: known.map(({ client }) => client),
        counts,
      })
      for (const [i, one] of known.entries()) await apply(one, policyFor(one.client, policies[i] ?? null))
      this.#isAnswered = true
    } catch (error) {
      for (const count of counts) add(this.#countOf(count.agentId, count.host), count)
      if (this.#isAnswered) this.#options.log.warn({ err: error }, 'egress policies cannot be renewed')
      this.#isAnswered = false
    }
  }

  #countOf(agentId: string, name: string): HostCount {
    const ofAgent = this.#counts.get(agentId) ?? new Map<string, HostCount>()
    this.#counts.set(agentId, ofAgent)
    const host = ofAgent.has(name) || ofAgent.size < MAX_HOSTS ? name : OTHERS
    const count = ofAgent.get(host) ?? { agentId, host, ...NOTHING }
    ofAgent.set(host, count)
    return count
  }
}

/** Replaces the policy of a client, and cuts what the new one forbids. */
async function apply(known: Known, policy: EgressPolicy | null): Promise<void> {
  if (isDeepStrictEqual(await known.policy.catch(() => undefined), policy)) return
  known.policy = Promise.resolve(policy)
  for (const visit of known.visits) visit.changePolicy(policy)
}

/** The policy that nothing has replaced while it was read: later changes then reach the visit. */
async function currentOf(known: Known): Promise<EgressPolicy | null> {
  for (;;) {
    const { policy } = known
    const current = await policy
    if (policy === known.policy) return current
  }
}

/** Only a credential brings the values of secrets, never an address. */
const policyFor = ({ credential }: Client, policy: EgressPolicy | null) =>
  policy && credential === '' ? { ...policy, secrets: [] } : policy

function add(sum: HostCount, more: Partial<HostCount>): void {
  for (const name of ['requests', 'denied', 'bytesSent', 'bytesReceived'] as const)
    sum[name] += more[name] ?? 0
}
