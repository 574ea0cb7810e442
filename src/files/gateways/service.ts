/** Which gateway a host is, and who may read there: asked for every request of every gateway. */
import { createHash } from 'node:crypto'
import type { Pool } from '../../db/pool.ts'
import { domainOfHost } from './domain.ts'

export interface Gateway {
  id: string
  workspaceId: string
  /** The left label of its host. */
  domain: string
  /** Only those may read who have one of its access tokens: {@link GatewayService.mayRead}. */
  restricted: boolean
  /** Whether swapped CIDs are served from what they were swapped to. */
  hasSwaps: boolean
  /** SHA-256 of each access token, in hex. */
  tokenHashes: readonly string[]
}

/** What is known of a gateway is trusted this long; what this process changes, it knows at once. */
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

  /** The gateway at a host, with or without port, in any case; undefined where there is none. */
  async findByHost(host: string): Promise<Gateway | undefined> {
    const domain = domainOfHost(host, this.#gatewayDomain)
    return domain === undefined ? undefined : this.#find(domain)
  }

  /** The gateway that a person names: by its host, as in {@link findByHost}, or by its left label alone. */
  async findByName(name: string): Promise<Gateway | undefined> {
    return (await this.findByHost(name)) ?? (await this.findByHost(this.hostOf(name)))
  }

  /** The host of a gateway, without a port. */
  hostOf(domain: string): string {
    return `${domain}.${this.#gatewayDomain}`
  }

  /** Whether somebody who shows this access token, or none, may read at a gateway. */
  mayRead({ restricted, tokenHashes }: Gateway, token: string | undefined): boolean {
    // What is compared are hashes: how far they agree says nothing about a token.
    return !restricted || (token !== undefined && tokenHashes.includes(hashToken(token).toString('hex')))
  }

  /** Reads every gateway again at its next use. */
  forget(): void {
    this.#known = new Map()
  }

  /** One query for all who ask at once; its failure is shared like its result, and lasts as long. */
  #find(domain: string): Promise<Gateway | undefined> {
    const known = this.#known.get(domain)
    if (known && known.until > Date.now()) return known.found
    const found = this.#read(domain)
    // Names that nobody has come from the outside, in any number.
    if (this.#known.size >= CACHE_SIZE) this.#known.clear()
    this.#known.set(domain, { found, until: Date.now() + CACHE_MS })
    return found
  }

  async #read(domain: string): Promise<Gateway | undefined> {
    const { rows } = await this.#pool.query({
      name: 'gateway-find',
      text: `SELECT g.id, g.workspace_id AS "workspaceId", g.domain, g.hot_swaps AS "hasSwaps",
          array(SELECT encode(token_hash, 'hex') FROM gateway_token WHERE gateway_id = g.id) AS "tokenHashes"
        FROM gateway g WHERE g.domain = $1`,
      values: [domain],
    })
    return rows[0] && { ...rows[0], restricted: rows[0].tokenHashes.length > 0 }
  }
}

/** Tokens are random and long, so a plain hash is enough to store them. */
export function hashToken(token: string): Buffer<ArrayBuffer> {
  return createHash('sha256').update(token).digest()
}
