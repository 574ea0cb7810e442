/** Limits per minute for clients without a valid key, by address; counted in this process's memory. */
import type { Request } from 'express'
import { ApiError } from '../errors.ts'
import { clientAddress } from '../lib/net/ip-address.ts'
import { WindowCounts } from './window-counts.ts'

const WINDOW_MS = 60_000
/** Maximum number of valid tokens that are remembered. */
const MAX_GOOD = 10_000

export interface AddressLimitsOptions {
  /** Requests per minute without a key; 0 for no limit. */
  requests: number
  /** Requests per minute with an invalid key or token; 0 for no limit. */
  failedLogins: number
  /**
   * True for an Authorization header with an agent's gateway token: checking it costs a query even if it is invalid.
   */
  isGatewayToken(authorization: string): boolean
}

export class AddressLimits {
  readonly #limits: AddressLimitsOptions
  readonly #requests = new WindowCounts(WINDOW_MS)
  readonly #failures = new WindowCounts(WINDOW_MS)
  /** Authorization headers with a valid gateway token of an agent. */
  readonly #good = new Set<string>()

  constructor(limits: AddressLimitsOptions) {
    this.#limits = limits
  }

  /** Counts a request that needs no key. @throws ApiError 429 above the limit. */
  countRequest({ ip }: Pick<Request, 'ip'>): void {
    const most = this.#limits.requests
    const address = clientAddress(ip)
    if (most === 0 || address === undefined) return
    const { count, msLeft } = this.#requests.add(address)
    if (count > most)
      throw tooMany(`Too many requests from your address: ${most} a minute without a key`, msLeft)
  }

  /**
   * Rejects an address that failed too often, for connections that authenticate later. Counts nothing.
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
   * Authenticates a request. An address with too many failures gets 429; a valid key still works from there, because
   * others may share the address. An invalid API key costs a signature check, but no query. An agent's gateway token
   * costs a query, so only tokens that were valid before are then looked up.
   * @throws ApiError 429, and whatever `authenticate` throws.
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
   * Signs in without an Authorization header. An address that failed too often is rejected before any lookup, even with
   * valid credentials: a person can wait, unlike a program with a key.
   * @throws ApiError 429, and whatever `signIn` throws.
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
    if (this.#good.size >= MAX_GOOD) this.#good.clear()
    this.#good.add(authorization)
  }
}

const tooManyFailed = (most: number, msLeft: number) =>
  tooMany(`Too many requests without a good key from your address: ${most} a minute`, msLeft)

const tooMany = (message: string, msLeft: number) =>
  new ApiError(429, 'rate_limited', message, { headers: { 'retry-after': `${Math.ceil(msLeft / 1000)}` } })
