/** Limits a minute for clients without a good key, by address; counted in this process, in memory. */
import type { Request } from 'express'
import { ApiError } from '../errors.ts'
import { clientAddress } from '../lib/net/ip-address.ts'
import { WindowCounts } from './window-counts.ts'

const WINDOW_MS = 60_000
/** Tokens that were good and are remembered. */
const MOST_GOOD = 10_000

export interface AddressLimitsOptions {
  /** Requests a minute without a key; 0 for no limit. */
  requests: number
  /** Requests a minute with a key or token that is not good; 0 for no limit. */
  failedLogins: number
  /** True for an Authorization header with an agent's gateway token: checking it costs a query also when it is not good. */
  isGatewayToken(authorization: string): boolean
}

export class AddressLimits {
  readonly #limits: AddressLimitsOptions
  readonly #requests = new WindowCounts(WINDOW_MS)
  readonly #failures = new WindowCounts(WINDOW_MS)
  /** Authorization headers with an agent's gateway token that was good. */
  readonly #good = new Set<string>()

  constructor(limits: AddressLimitsOptions) {
    this.#limits = limits
  }

  /** Counts a request for which no key is asked. @throws ApiError 429 above the limit. */
  countRequest({ ip }: Pick<Request, 'ip'>): void {
    const most = this.#limits.requests
    const address = clientAddress(ip)
    if (most === 0 || address === undefined) return
    const { count, msLeft } = this.#requests.add(address)
    if (count > most)
      throw tooMany(`Too many requests from your address: ${most} a minute without a key`, msLeft)
  }

  /**
   * Refuses an address that failed too often, where what it has to say for itself comes later. Counts nothing.
   * @throws ApiError 429
   */
  refuseFailed({ ip }: Pick<Request, 'ip'>): void {
    const most = this.#limits.failedLogins
    const address = clientAddress(ip)
    if (most === 0 || address === undefined) return
    const { count, msLeft } = this.#failures.read(address)
    if (count >= most) throw tooManyFailed(most, msLeft)
  }

  /**
   * Authenticates a request. An address with too many failures is answered 429; a good key still works from there,
   * since others may share the address. An API key costs a signature, and no query where that is wrong; an agent's
   * gateway token costs a query, so then only those are looked up that were good before.
   * @throws ApiError 429, and what `authenticate` throws.
   */
  async login<T>(
    { ip, headers: { authorization } }: Pick<Request, 'ip' | 'headers'>,
    authenticate: () => Promise<T>,
  ): Promise<T> {
    if (authorization === undefined) this.countRequest({ ip })
    const most = this.#limits.failedLogins
    const address = clientAddress(ip)
    if (most === 0 || address === undefined || authorization === undefined) return authenticate()
    const isGatewayToken = this.#limits.isGatewayToken(authorization)
    const before = this.#failures.read(address)
    if (before.count >= most && isGatewayToken && !this.#good.has(authorization))
      throw tooManyFailed(most, before.msLeft)
    try {
      const caller = await authenticate()
      if (isGatewayToken) this.#remember(authorization)
      return caller
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error
      this.#good.delete(authorization)
      const { count, msLeft } = this.#failures.add(address)
      throw count > most ? tooManyFailed(most, msLeft) : error
    }
  }

  /**
   * A sign-in with something else than a header. An address that failed too often is refused before anything is looked up,
   * also with what is good: it can wait, which programs with keys cannot.
   * @throws ApiError 429, and what `signIn` throws.
   */
  async signIn<T>(req: Pick<Request, 'ip'>, signIn: () => Promise<T>): Promise<T> {
    this.refuseFailed(req)
    try {
      return await signIn()
    } catch (error) {
      const address = clientAddress(req.ip)
      if (address !== undefined && error instanceof ApiError && error.status === 401)
        this.#failures.add(address)
      throw error
    }
  }

  #remember(authorization: string): void {
    if (this.#good.size >= MOST_GOOD) this.#good.clear()
    this.#good.add(authorization)
  }
}

const tooManyFailed = (most: number, msLeft: number) =>
  tooMany(`Too many requests without a good key from your address: ${most} a minute`, msLeft)

const tooMany = (message: string, msLeft: number) =>
  new ApiError(429, 'rate_limited', message, { headers: { 'retry-after': `${Math.ceil(msLeft / 1000)}` } })
