/**
 * Authenticates callers of an agent: keys of its workspace, its gateway token (contract 5.4), and platform tokens that
 * it mints for itself. A platform token is valid only for that agent unless a setting widens it to the rest of its
 * workspace.
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

/** True if an Authorization header seems to hold a gateway token. */
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
   * The caller, if the Authorization header holds a gateway or a platform token; undefined otherwise. Looks both up at
   * every use, so that a rotated token is refused at once.
   * @throws ApiError 401 for a gateway token that belongs to no live agent, or a platform token minted before a
   *   rotation.
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
   * Authenticates a caller by the gateway token of this agent. Compares the token, and looks for no other agent.
   * @throws ApiError 401 for any other token, or if the agent does not exist.
   */
  async authenticateFor(agentId: string, token: string): Promise<Principal> {
    const { pool } = this.#options
    const agent = GATEWAY_TOKEN.test(token) ? await findAgent(pool, agentId) : undefined
    if (!agent || !isSameToken(token, agent.gatewayToken))
      throw unauthorized('This is not the gateway token of the agent', 'bad_token')
    return this.#principal('gateway', await findByGatewayToken.first(pool, agent.gatewayToken))
  }

  /** A platform token of an agent, valid for an hour, or until its gateway token is rotated. */
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
   * The agent in a path, if the caller may reach it.
   * @param callers the kinds of agent tokens that the route accepts.
   * @throws ApiError 404 if no live agent has the id; 401 for an agent of another workspace, or another agent's token;
   *   403 for a token that the route does not accept.
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
   * Admits a caller to workspace-wide routes. Handlers of routes that accept `gateway` or `platform` restrict these
   * callers to their own agent's data.
   * @throws ApiError 403 for an agent token that the route does not accept.
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
      // API keys are JWTs too, and come with every request: check the audience before paying for a signature check.
      if (decodeJwt(token).aud !== AUDIENCE) return undefined
      const options = { algorithms: ['HS256'], audience: AUDIENCE, requiredClaims: ['sub', 'exp', 'mark'] }
      const { payload } = await verifyJwt(this.#options.signingKeys, token, options)
      const expiresAt = new Date(Number(payload.exp) * 1000)
      return { agentId: String(payload.sub), fingerprint: String(payload.mark), expiresAt }
    } catch {
      return undefined
    }
  }

  /** @throws ApiError 401 if the agent does not exist. */
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

/** Compares gateway tokens in constant time, so that timing does not reveal how much of a guess is right. */
export function isSameToken(text: string, token: string): boolean {
  const hash = (value: string) => createHash('sha256').update(value.toLowerCase()).digest()
  return timingSafeEqual(hash(text), hash(token))
}

const ownerOnly = () => forbidden("An agent's token cannot do this", 'owner_only')

/** Names the setting if changing it would admit the agent. */
function agentOnly(callers: readonly AgentCaller[]) {
  const more = callers.some((caller) => caller === 'workspace' || caller === 'widened')
    ? ': BERTH_PLATFORM_TOKEN_SCOPE=workspace would let its platform token do more'
    : ''
  return forbidden(`An agent's token is good for that agent only${more}`, 'agent_only')
}

/**
 * The hash of a gateway token. Platform tokens carry it, so that a new gateway token invalidates all platform tokens of
 * the previous one. `TOKEN_FINGERPRINT` is the same in SQL.
 */
export const tokenFingerprint = (gatewayToken: string): string =>
  createHash('sha256').update(gatewayToken).digest('hex').slice(0, 16)
