/** From an Authorization header to who is asking, what they may do, and on which plan. */
import type { Notifications } from '../db/notifications.ts'
import type { Pool } from '../db/pool.ts'
import { messages, unauthorized } from '../errors.ts'
import { type TokenClaims, verifyToken } from './tokens.ts'

export type Role = 'owner' | 'member' | 'viewer'

/** What a workspace may do; `null` is no limit. */
export interface Plan {
  name: string
  pinByCid: boolean
  maxFileBytes: number | null
  storageBytes: number | null
  requestsPerMinute: number | null
  agentLimit: number | null
  secretLimit: number | null
  channels: boolean
  customDomains: boolean
}

/** The caller of a request. */
export interface Principal {
  keyId: string
  /** The key's limits; `null` for none. */
  maxUses: number | null
  expiresAt: Date | null
  workspaceId: string
  userId: string
  role: Role
  scopes: string[]
  plan: Plan
  /** Set where the caller is an agent, and what it may do ends there: by its gateway token or a platform token. */
  agent?: { agentId: string; by: 'gateway' | 'platform' }
}

/** A {@link Plan} of the row `p`. */
export const PLAN = `json_build_object('name', p.name, 'pinByCid', p.pin_by_cid, 'maxFileBytes', p.max_file_bytes,
  'storageBytes', p.storage_bytes, 'requestsPerMinute', p.requests_per_minute, 'agentLimit', p.agent_limit,
  'secretLimit', p.secret_limit, 'channels', p.channels, 'customDomains', p.custom_domains)`

/** A cached key is trusted this long; a change is notified at once. */
const CACHE_MS = 5000
const CACHE_SIZE = 10_000

export class Authenticator {
  readonly #pool: Pool
  readonly #key: Uint8Array
  readonly #notifications: Notifications
  /** Tokens whose signature was checked, and keys read from the database. */
  readonly #claims = new Map<string, TokenClaims>()
  #keys = new Map<string, { row: Principal | undefined; until: number }>()

  constructor(pool: Pool, signingKey: Uint8Array, notifications: Notifications) {
    this.#pool = pool
    this.#key = signingKey
    this.#notifications = notifications
    notifications.on('berth_api_key', () => this.forgetKeys())
    notifications.on('lost', () => this.forgetKeys())
  }

  /** Reads every key again at its next use; one that is being read right now is not cached either. */
  forgetKeys(): void {
    this.#keys = new Map()
  }

  /**
   * Resolves the caller.
   * @param header the Authorization header.
   * @throws ApiError 401 without a header, for a token that is unknown, expired or revoked, and
   *   `Missing userId` for one that belongs to no member of its workspace (contract 5.5).
   */
  async authenticate(header: string | undefined): Promise<Principal> {
    if (!header) throw unauthorized(messages.noAuthorization, 'no_authorization')
    const token = /^Bearer +(\S+)$/i.exec(header)?.[1]
    const claims = token && (await this.#verify(token))
    if (!claims) throw unauthorized(messages.badToken, 'bad_token')
    const key = await this.#find(claims)
    if (!key || (key.expiresAt && key.expiresAt.getTime() <= Date.now())) {
      throw unauthorized(messages.badToken, 'bad_token')
    }
    if (!key.userId || !key.role) throw unauthorized(messages.missingUserId, 'missing_user_id')
    if (key.maxUses !== null && !(await this.#countUse(key.keyId))) {
      throw unauthorized(messages.badToken, 'bad_token')
    }
    return key
  }

  async #verify(token: string): Promise<TokenClaims | undefined> {
    const known = this.#claims.get(token)
    if (known && (!known.expiresAt || known.expiresAt.getTime() > Date.now())) return known
    const claims = await verifyToken(this.#key, token)
    if (claims) {
      if (this.#claims.size >= CACHE_SIZE) this.#claims.clear()
      this.#claims.set(token, claims)
    }
    return claims
  }

  async #find({ keyId, workspaceId }: TokenClaims): Promise<Principal | undefined> {
    const keys = this.#keys
    const cached = keys.get(keyId)
    if (cached && cached.until > Date.now() && this.#notifications.connected) return cached.row
    const { rows } = await this.#pool.query({
      name: 'api-key-find',
      text: `SELECT k.id AS "keyId", k.workspace_id AS "workspaceId", k.user_id AS "userId", m.role, k.scopes,
          k.max_uses AS "maxUses", k.expires_at AS "expiresAt",
          ${PLAN} AS plan
        FROM api_key k
        JOIN workspace w ON w.id = k.workspace_id
        JOIN plan p ON p.name = w.plan
        LEFT JOIN membership m ON m.workspace_id = k.workspace_id AND m.user_id = k.user_id
        WHERE k.id = $1 AND k.workspace_id = $2 AND k.revoked_at IS NULL`,
      values: [keyId, workspaceId],
    })
    if (keys.size >= CACHE_SIZE) keys.clear()
    keys.set(keyId, { row: rows[0], until: Date.now() + CACHE_MS })
    return rows[0]
  }

  /** Counts a use of a key that has a limited number of them. */
  async #countUse(keyId: string): Promise<boolean> {
    const { rowCount } = await this.#pool.query(
      'UPDATE api_key SET uses = uses + 1 WHERE id = $1 AND uses < max_uses',
      [keyId],
    )
    return rowCount === 1
  }
}
