/** Finds gateways by their hosts and checks their access tokens, for every request to every gateway. */
import { createHash } from 'node:crypto'
import type { Pool } from '../../db/pool.ts'
import { findGateway, findGatewayAt } from '../../db/statements/gateways.ts'
import { mayBeCustom } from '../../domains/names.ts'
import { readGatewayHost } from '../gateway-domain.ts'

export interface Gateway {
  id: string
  workspaceId: string
  /** The left label of its host. */
  domain: string
  /**
   * Reading public content requires one of its access tokens ({@link GatewayService.mayRead}); private content requires
   * a signed link.
   */
  restricted: boolean
  /** Swapped CIDs are served from their replacements. */
  hasSwaps: boolean
  /** CIDs inside the workspace's public files are served directly. */
  innerCids: boolean
  /** Public content is redirected to the CID's own host. */
  cidHosts: boolean
  /** A header carries the signature of the content. */
  showsSignatures: boolean
  /** SHA-256 of each access token, in hex. */
  tokenHashes: readonly string[]
}

type Limit = (read: () => Promise<Gateway | undefined>) => Promise<Gateway | undefined>

/** How long a cached gateway is trusted; changes by this process take effect at once. */
const CACHE_MS = 2000
const CACHE_SIZE = 10_000

export class GatewayService {
  readonly #pool: Pool
  readonly #gatewayDomain: string
  #known = new Map<string, { found: Promise<Gateway | undefined>; until: number }>()

  /** @param gatewayDomain `BERTH_GATEWAY_DOMAIN`: gateways are at `<domain>.<gatewayDomain>`. */
  constructor(pool: Pool, gatewayDomain: string) {
    this.#pool = pool
    this.#gatewayDomain = gatewayDomain
  }

  /**
   * The gateway at its own host or a custom domain, with or without a port, case-insensitive; undefined if there is
   * none.
   */
  async findByHost(host: string): Promise<Gateway | undefined> {
    const found = await this.findServed(host)
    return found?.cid === undefined ? found?.gateway : undefined
  }

  /**
   * Finds a gateway like {@link findByHost}, and also by the host of a CID at the gateway; the CID, if any, may be
   * malformed.
   */
  async findServed(host: string): Promise<{ gateway: Gateway; cid: string | undefined } | undefined> {
    const named = readGatewayHost(host, this.#gatewayDomain)
    const gateway = await (named ? this.#find(named.domain) : this.findCustom(host))
    return gateway && { gateway, cid: named?.cid }
  }

  /**
   * The gateway at a verified custom domain, with or without a port, case-insensitive; undefined for hosts that cannot
   * be custom domains.
   * @param limit runs the query, or refuses it, because anyone may request any name.
   */
  async findCustom(host: string, limit: Limit = (read) => read()): Promise<Gateway | undefined> {
    const name = host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
    return mayBeCustom(name) && !name.endsWith(`.${this.#gatewayDomain}`)
      ? this.#find(name, limit)
      : undefined
  }

  /** The gateway that a user names: by its host, as in {@link findByHost}, or only by its left label. */
  async findByName(name: string): Promise<Gateway | undefined> {
    return (await this.findByHost(name)) ?? (await this.findByHost(this.hostOf(name)))
  }

  /** The host of a gateway, without a port. */
  hostOf(domain: string): string {
    return `${domain}.${this.#gatewayDomain}`
  }

  /** True if a client may read at the gateway with this access token, or without a token. */
  mayRead({ restricted, tokenHashes }: Gateway, token: string | undefined): boolean {
    // Comparing hashes reveals nothing about a token through timing.
    return !restricted || (token !== undefined && tokenHashes.includes(hashToken(token).toString('hex')))
  }

  /** Drops all cached gateways. */
  forget(): void {
    this.#known = new Map()
  }

  /** Concurrent callers share one query; a failure is shared and cached like a result, unless it may be a refusal. */
  #find(domain: string, limit?: Limit): Promise<Gateway | undefined> {
    const known = this.#known.get(domain)
    if (known && known.until > Date.now()) return known.found
    const read = () => this.#read(domain)
    const found = limit ? limit(read) : read()
    // Clients may request any number of names without a gateway.
    if (this.#known.size >= CACHE_SIZE) this.#known.clear()
    this.#known.set(domain, { found, until: Date.now() + CACHE_MS })
    if (limit) found.catch(() => this.#known.delete(domain))
    return found
  }

  /** @param domain a left label, or a custom domain, which has a dot. */
  async #read(domain: string): Promise<Gateway | undefined> {
    const found = await (domain.includes('.') ? findGatewayAt : findGateway).first(this.#pool, domain)
    return found && { ...found, restricted: found.tokenHashes.length > 0 }
  }
}

/** Tokens are random and long, so a plain hash is enough to store them. */
export function hashToken(token: string): Buffer<ArrayBuffer> {
  return createHash('sha256').update(token).digest()
}
