/**
 * Credentials that reach an agent: keys of its workspace, its gateway token (contract 5.4), and the platform token that
 * it mints for itself, which is good for that agent alone unless a setting lets it see the rest of its workspace.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { decodeJwt } from 'jose/jwt/decode'
import { SignJWT } from 'jose/jwt/sign'
import type { Pool } from '../db/pool.ts'
import { findByGatewayToken, findByTokenFingerprint } from '../db/statements/agents.ts'
import { forbidden, messages, notFound, unauthorized } from '../errors.ts'
import type { AgentCaller, Principal } from '../http/principal.ts'
import { AGENT_ID } from '../lib/agent-id.ts'
import { type SigningKeys, verifyJwt } from '../lib/signing-keys.ts'
import { type Agent, findAgent } from './agent.ts'

const AUDIENCE = 'berth:platform'
const PLATFORM_TOKEN_S = 3600
export const GATEWAY_TOKEN = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** True for an Authorization header that holds what looks like a gateway token. */
export const isGatewayToken = (authorization: string): boolean =>
  GATEWAY_TOKEN.test(authorization.replace(/^Bearer +/i, ''))

export interface AgentAccessOptions {
  pool: Pool
  signingKeys: SigningKeys
  /** How far a platform token reaches. */
  platformScope: 'agent' | 'workspace'
}

export class AgentAccess {
  readonly #options: AgentAccessOptions

  constructor(options: AgentAccessOptions) {
    this.#options = options
  }

  /**
   * The caller, where the Authorization header holds a gateway or a platform token; undefined for any other.
   * Both are looked up at every use, so that a rotated token is refused at once.
   * @throws ApiError 401 for a gateway token that no live agent has, or a platform token minted before a rotation.
   */
  async authenticate(header: string | undefined): Promise<Principal | undefined> {
    const token = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1]
    if (!token) return undefined
    const { pool } = this.#options
    if (GATEWAY_TOKEN.test(token))
      return this.#principal('gateway', await findByGatewayToken.first(pool, token.toLowerCase()))
    const minted = await this.#verifyPlatformToken(token)
    if (!minted) return undefined
    const found = await findByTokenFingerprint.first(pool, minted.agentId, minted.fingerprint)
    return { ...this.#principal('platform', found), expiresAt: minted.expiresAt }
  }

  /**
   * The caller who has the gateway token of this very agent: it is compared, and no other agent is looked for.
   * @throws ApiError 401 for any other text, and where there is no such agent.
   */
  async authenticateFor(agentId: string, token: string): Promise<Principal> {
    const { pool } = this.#options
    const agent = GATEWAY_TOKEN.test(token) ? await findAgent(pool, agentId) : undefined
    if (!agent || !isSameToken(token, agent.gatewayToken))
      throw unauthorized('This is not the gateway token of the agent', 'bad_token')
    return this.#principal('gateway', await findByGatewayToken.first(pool, agent.gatewayToken))
  }

  /** A platform token of an agent: good for an hour, or until its gateway token is rotated. */
  mintPlatformToken({ agentId, gatewayToken }: Pick<Agent, 'agentId' | 'gatewayToken'>): Promise<string> {
    return new SignJWT({ mark: tokenFingerprint(gatewayToken) })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setIssuedAt()
      .setSubject(agentId)
      .setAudience(AUDIENCE)
      .setExpirationTime(`${PLATFORM_TOKEN_S}s`)
      .sign(this.#options.signingKeys[0])
  }

  /**
   * The agent of a path, for a caller who may reach it.
   * @param callers the tokens of agents that the route takes.
   * @throws ApiError 404 for an id that no live agent has; 401 for an agent of another workspace, or another
   *   agent's token; 403 for a token that the route does not take.
   */
  async authorize(principal: Principal, agentId: string, callers: readonly AgentCaller[]): Promise<Agent> {
    const agent = AGENT_ID.test(agentId) ? await findAgent(this.#options.pool, agentId) : undefined
    if (!agent) throw notFound(messages.noAgent)
    const { agent: caller } = principal
    const isOther = caller && caller.agentId !== agentId
    if (agent.workspaceId !== principal.workspaceId || (isOther && !caller.isWide)) {
      throw unauthorized(messages.badToken, 'bad_token')
    }
    if (!caller || callers.includes(isOther ? 'workspace' : caller.by)) return agent
    if (isOther || !callers.includes('widened')) throw ownerOnly()
    if (this.#options.platformScope !== 'workspace') throw agentOnly(callers)
    return agent
  }

  /**
   * Lets a caller reach what is not one agent's. Handlers of routes that take `gateway` or `platform` keep to what is
   * the caller's own agent's.
   * @throws ApiError 403 for a token of an agent that the route does not take.
   */
  admitToWorkspace({ agent: caller }: Principal, callers: readonly AgentCaller[]): void {
    if (!caller || callers.includes(caller.by) || (caller.isWide && callers.includes('workspace'))) return
    if (caller.isWide) throw ownerOnly()
    throw agentOnly(callers)
  }

  async #verifyPlatformToken(
    token: string,
  ): Promise<{ agentId: string; fingerprint: string; expiresAt: Date } | undefined> {
    try {
      // API keys are JWTs as well, and in every request: what is none of ours costs no signature.
      if (decodeJwt(token).aud !== AUDIENCE) return undefined
      const options = { algorithms: ['HS256'], audience: AUDIENCE, requiredClaims: ['sub', 'exp', 'mark'] }
      const { payload } = await verifyJwt(this.#options.signingKeys, token, options)
      const expiresAt = new Date(Number(payload.exp) * 1000)
      return { agentId: String(payload.sub), fingerprint: String(payload.mark), expiresAt }
    } catch {
      return undefined
    }
  }

  /** @throws ApiError 401 where there is no such agent. */
  #principal(
    by: 'gateway' | 'platform',
    found: Awaited<ReturnType<typeof findByGatewayToken.first>>,
  ): Principal {
    if (!found) throw unauthorized(messages.badToken, 'bad_token')
    const { agentId, workspaceId, userId, plan, fingerprint } = found
    return {
      keyId: `agent:${agentId}`,
      maxUses: null,
      expiresAt: null,
      workspaceId,
      userId,
      role: 'member',
      isInstanceAdmin: false,
      scopes: ['org:agents:write'],
      plan,
      agent: {
        agentId,
        by,
        fingerprint,
        isWide: by === 'platform' && this.#options.platformScope === 'workspace',
      },
    }
  }
}

/** Compares gateway tokens in constant time: the time tells nothing about how much of one is right. */
export function isSameToken(text: string, token: string): boolean {
  const hash = (value: string) => createHash('sha256').update(value.toLowerCase()).digest()
  return timingSafeEqual(hash(text), hash(token))
}

const ownerOnly = () => forbidden("An agent's token cannot do this", 'owner_only')

/** Names the setting where it would let the agent in. */
function agentOnly(callers: readonly AgentCaller[]) {
  const more = callers.some((caller) => caller === 'workspace' || caller === 'widened')
    ? ': BERTH_PLATFORM_TOKEN_SCOPE=workspace would let its platform token do more'
    : ''
  return forbidden(`An agent's token is good for that agent only${more}`, 'agent_only')
}

/**
 * The hash of a gateway token. A platform token carries it, so that a new gateway token ends all platform tokens of the
 * one before. `TOKEN_FINGERPRINT` is the same in SQL.
 */
export const tokenFingerprint = (gatewayToken: string): string =>
  createHash('sha256').update(gatewayToken).digest('hex').slice(0, 16)
