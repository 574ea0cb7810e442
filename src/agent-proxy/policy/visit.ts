import type { Socket } from 'node:net'
import type { Destination } from '../destination.ts'
import { ProxyError } from '../dial.ts'
import type { BrokeredSecret, EgressPolicy, HostCount } from './protocol.ts'
import { hasLimits, type Requested, refusalOf, secretsFor } from './rules.ts'

/** Bytes that were counted. */
interface Bytes {
  sent: number
  received: number
}

export interface VisitOptions {
  destination: Destination
  policy: EgressPolicy
  isTunnel: boolean
  count(more: Partial<HostCount>): void
  ended(): void
}

/** A request or a tunnel that a policy allowed, from its admission to its end. */
export class Visit {
  readonly #options: VisitOptions
  readonly #upstreams = new Map<Socket, Bytes>()
  readonly #requests = new Set<Requested>()
  #policy: EgressPolicy
  #onCut: (() => void) | undefined
  #isCut = false

  constructor(options: VisitOptions) {
    this.#options = options
    this.#policy = options.policy
  }

  get agentId(): string {
    return this.#policy.agentId
  }

  /** True for a tunnel whose requests have to be seen. */
  get isTerminated(): boolean {
    return this.#options.isTunnel && (this.isLimited || this.secrets.length > 0)
  }

  /** True if the policy limits the methods or paths of requests. */
  get isLimited(): boolean {
    return hasLimits(this.#policy, this.#options.destination)
  }

  /** The secrets that requests may carry. */
  get secrets(): BrokeredSecret[] {
    return secretsFor(this.#policy, this.#options.destination)
  }

  /** Counts a tunnel, unless its requests are counted. @throws ProxyError 403 if the policy forbids it. */
  admitTunnel(): void {
    const why = refusalOf(this.#policy, this.#options.destination)
    if (why || !this.isTerminated) this.#options.count(why ? { denied: 1 } : { requests: 1 })
    if (why) throw new ProxyError(403, why)
  }

  /** Counts a request, which ends when the result is disposed of. @throws ProxyError 403 if the policy forbids it. */
  admit(request: Requested): Disposable {
    const why = refusalOf(this.#policy, this.#options.destination, request)
    this.#options.count(why ? { denied: 1 } : { requests: 1 })
    if (why) throw new ProxyError(403, why)
    this.#requests.add(request)
    return { [Symbol.dispose]: () => void this.#requests.delete(request) }
  }

  /**
   * Counts the bytes of this connection from now on; it closes once the policy forbids it.
   * @throws ProxyError 403 if the policy has changed while the connection was opened.
   */
  opened(upstream: Socket): void {
    if (this.#isCut) {
      upstream.destroy()
      throw new ProxyError(403, 'The egress policy of this agent no longer allows this host')
    }
    this.#upstreams.set(upstream, { sent: 0, received: 0 })
    upstream.once('close', () => {
      this.countBytes()
      this.#upstreams.delete(upstream)
    })
  }

  /** Calls `cut` once the policy forbids the visit; at once if it does already. */
  onCut(cut: () => void): void {
    this.#onCut = cut
    if (this.#isCut) cut()
  }

  /** Replaces the policy, and cuts the visit if the new one forbids it, an open request of it, or one of its secrets. */
  changePolicy(policy: EgressPolicy | null): void {
    const { isTerminated, secrets } = this
    const { destination } = this.#options
    if (policy) this.#policy = policy
    const isKept =
      policy &&
      !refusalOf(policy, destination) &&
      this.isTerminated === isTerminated &&
      secrets.every(({ placeholder }) => this.secrets.some((one) => one.placeholder === placeholder)) &&
      ![...this.#requests].some((request) => refusalOf(policy, destination, request))
    if (!isKept) this.#cut()
  }

  /** Counts the bytes since the last call. */
  countBytes(): void {
    for (const [{ bytesWritten, bytesRead }, counted] of this.#upstreams) {
      const [bytesSent, bytesReceived] = [bytesWritten - counted.sent, bytesRead - counted.received]
      counted.sent = bytesWritten
      counted.received = bytesRead
      this.#options.count({ bytesSent, bytesReceived })
    }
  }

  #cut(): void {
    this.#isCut = true
    for (const upstream of this.#upstreams.keys()) upstream.destroy()
    this.#onCut?.()
  }

  [Symbol.dispose](): void {
    this.countBytes()
    this.#options.ended()
  }
}
