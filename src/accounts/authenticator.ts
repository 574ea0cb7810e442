/** Resolves an Authorization header or a session cookie to the caller, their permissions and their plan. */
import type { Notifications } from '../db/notifications.ts'
import type { Pool } from '../db/pool.ts'
import { countKeyUse, findApiKey, findSession } from '../db/statements/api-keys.ts'
import { messages, unauthorized } from '../errors.ts'
import type { Audience, Principal } from '../http/principal.ts'
import type { SigningKeys } from '../lib/signing-keys.ts'
import { KeyUses } from './key-uses.ts'
import { hashSecret, type TokenClaims, verifyToken } from './tokens.ts'

/** How long a cached key is trusted; changes are notified at once. */
const CACHE_MS = 5000
const CACHE_SIZE = 10_000

type FoundKey = NonNullable<Awaited<ReturnType<typeof findApiKey.first>>> & { isSession?: boolean }

export class Authenticator {
  readonly uses: KeyUses
  readonly #pool: Pool
  readonly #signingKeys: SigningKeys
  readonly #notifications: Notifications
  readonly #sessionIdleSeconds: number
  /** Tokens with a verified signature, and keys and sessions read from the database. */
  readonly #claims = new Map<string, TokenClaims>()
  #keys = new Map<string, { row: FoundKey | undefined; until: number }>()

  /** @param sessionIdleSeconds a session that is unused for this long has ended. */
  constructor(
    pool: Pool,
    signingKeys: SigningKeys,
    notifications: Notifications,
    sessionIdleSeconds: number,
  ) {
    this.#pool = pool
    this.#sessionIdleSeconds = sessionIdleSeconds
    this.uses = new KeyUses(pool)
    this.#signingKeys = signingKeys
    this.#notifications = notifications
    notifications.on('berth_api_key', () => this.forgetKeys())
    notifications.on('lost', () => this.forgetKeys())
  }

  /** Drops all cached keys, including one that is being read right now. */
  forgetKeys(): void {
    this.#keys = new Map()
  }

  /** True if the header's token is known to be an API key's, valid or not: only API keys have its claims. */
  isKey(header: string | undefined): boolean {
    return header !== undefined && this.#claims.has(tokenOf(header) ?? '')
  }

  /**
   * Resolves the caller.
   * @param header the Authorization header. @param audience where the caller is; a key may work only there.
   * @throws ApiError 401 without a header, or if the token is unknown, expired or revoked; 401 `Missing userId` if it
   *   belongs to no member of its workspace (contract 5.5).
   */
  async authenticate(header: string | undefined, audience?: Audience): Promise<Principal> {
    if (!header) throw unauthorized(messages.noAuthorization, 'no_authorization')
    const token = tokenOf(header)
    const claims = token && (await this.#verify(token))
    if (!claims) throw unauthorized(messages.badToken, 'bad_token')
    const key = await this.#find(claims)
    if (!key || (key.expiresAt && key.expiresAt.getTime() <= Date.now())) {
      throw unauthorized(messages.badToken, 'bad_token')
    }
    if (key.audience && key.audience !== audience) throw unauthorized(messages.mcpOnly, 'wrong_audience')
    const { userId, role } = key
    if (!userId || !role) throw unauthorized(messages.missingUserId, 'missing_user_id')
    if (key.maxUses !== null && (await countKeyUse.run(this.#pool, key.keyId)).rowCount !== 1) {
      throw unauthorized(messages.badToken, 'bad_token')
    }
    this.uses.note(key.keyId)
    return { ...key, userId, role }
  }

  /** Resolves the caller of a session cookie. @throws ApiError 401 if the session is unknown or has ended. */
  async authenticateSession(cookie: string): Promise<Principal> {
    const [, id, secret] =
      /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9a-f]{64})$/.exec(cookie) ?? []
    const found =
      id && secret
        ? await this.#cached(cookie, () => {
            const hash = Buffer.from(hashSecret(secret)).toString('hex')
            return findSession.first(this.#pool, id, hash, this.#sessionIdleSeconds)
          })
        : undefined
    const { userId, role } = found ?? {}
    if (!found || !userId || !role || (found.expiresAt?.getTime() ?? 0) <= Date.now())
      throw unauthorized(messages.sessionEnded, 'session_ended')
    this.uses.note(found.keyId)
    return { ...found, userId, role }
  }

  async #verify(token: string): Promise<TokenClaims | undefined> {
    const known = this.#claims.get(token)
    if (known && (!known.expiresAt || known.expiresAt.getTime() > Date.now())) return known
    const claims = await verifyToken(this.#signingKeys, token)
    if (claims) {
      if (this.#claims.size >= CACHE_SIZE) this.#claims.clear()
      this.#claims.set(token, claims)
    }
    return claims
  }

  #find({ keyId, workspaceId }: TokenClaims): Promise<FoundKey | undefined> {
    return this.#cached(keyId, () => findApiKey.first(this.#pool, keyId, workspaceId))
  }

  async #cached(name: string, read: () => Promise<FoundKey | undefined>): Promise<FoundKey | undefined> {
    const keys = this.#keys
    const cached = keys.get(name)
    if (cached && cached.until > Date.now() && this.#notifications.connected) return cached.row
    const row = await read()
    if (keys.size >= CACHE_SIZE) keys.clear()
    keys.set(name, { row, until: Date.now() + CACHE_MS })
    return row
  }
}

const tokenOf = (header: string): string | undefined => /^Bearer +(\S+)$/i.exec(header)?.[1]
