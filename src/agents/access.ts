/**
 * Who may reach an agent: keys of its workspace, its own gateway token (contract 5.4), and the platform token that
 * it mints for itself, which is good for that agent alone unless a setting widens it.
 */
import { createHash } from 'node:crypto'
import { decodeJwt, jwtVerify, SignJWT } from 'jose'
import { PLAN, type Plan, type Principal } from '../accounts/authenticator.ts'
import type { Pool } from '../db/pool.ts'
import { forbidden, messages, notFound, unauthorized } from '../errors.ts'
import { AGENT_ID, type Agent, findAgent } from './agent.ts'

const AUDIENCE = 'berth:platform'
const PLATFORM_TOKEN_S = 3600
export const GATEWAY_TOKEN = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

export interface AgentAccessOptions {
  pool: Pool
  signingKey: Uint8Array
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
    if (GATEWAY_TOKEN.test(token))
      return this.#find('gateway', 'agent.gateway_token = $1', [token.toLowerCase()])
    const minted = await this.#verifyPlatformToken(token)
    if (!minted) return undefined
    return this.#find('platform', `agent.agent_id = $1 AND ${TOKEN_MARK} = $2`, [minted.agentId, minted.mark])
  }

  /** A platform token of an agent: good for an hour, or until its gateway token is rotated. */
  mintPlatformToken({ agentId, gatewayToken }: Pick<Agent, 'agentId' | 'gatewayToken'>): Promise<string> {
    return new SignJWT({ mark: tokenMark(gatewayToken) })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setIssuedAt()
      .setSubject(agentId)
      .setAudience(AUDIENCE)
      .setExpirationTime(`${PLATFORM_TOKEN_S}s`)
      .sign(this.#options.signingKey)
  }

  /**
   * The agent of a path, for a caller who may reach it.
   * @throws ApiError 404 for an id that no live agent has; 401 for an agent of another workspace, or another
   *   agent's token; 403 for the gateway token where only the owner may.
   */
  async admit(principal: Principal, agentId: string, who: 'any' | 'owner'): Promise<Agent> {
    const agent = AGENT_ID.test(agentId) ? await findAgent(this.#options.pool, agentId) : undefined
    if (!agent) throw notFound(messages.noAgent)
    const isOther = principal.agent && principal.agent.agentId !== agentId && !this.#isWide(principal)
    if (agent.workspaceId !== principal.workspaceId || isOther) {
      throw unauthorized(messages.badToken, 'bad_token')
    }
    if (who === 'owner' && principal.agent?.by === 'gateway') {
      throw forbidden('The gateway token cannot do this', 'owner_only')
    }
    return agent
  }

  /** @throws ApiError 403 for an agent's own tokens, on routes that are about the workspace. */
  admitToWorkspace(principal: Principal): void {
    if (principal.agent && !this.#isWide(principal)) {
      throw forbidden("An agent's token is good for that agent only", 'agent_only')
    }
  }

  #isWide(principal: Principal): boolean {
    return principal.agent?.by === 'platform' && this.#options.platformScope === 'workspace'
  }

  async #verifyPlatformToken(token: string): Promise<{ agentId: string; mark: string } | undefined> {
    try {
      // API keys are JWTs as well, and in every request: what is none of ours costs no signature.
      if (decodeJwt(token).aud !== AUDIENCE) return undefined
      const options = { algorithms: ['HS256'], audience: AUDIENCE, requiredClaims: ['sub', 'exp', 'mark'] }
      const { payload } = await jwtVerify(token, this.#options.signingKey, options)
      return { agentId: String(payload.sub), mark: String(payload.mark) }
    } catch {
      return undefined
    }
  }

  async #find(by: 'gateway' | 'platform', condition: string, values: unknown[]): Promise<Principal> {
    const { rows } = await this.#options.pool.query<{
      agentId: string
      workspaceId: string
      userId: string
      plan: Plan
    }>({
      name: `agent-principal-${by}`,
      text: `SELECT agent.agent_id AS "agentId", agent.workspace_id AS "workspaceId", agent.user_id AS "userId",
          ${PLAN} AS plan
        FROM agent JOIN workspace w ON w.id = agent.workspace_id JOIN plan p ON p.name = w.plan
        WHERE agent.deleted_at IS NULL AND ${condition}`,
      values,
    })
    const found = rows[0]
    if (!found) throw unauthorized(messages.badToken, 'bad_token')
    const { agentId, workspaceId, userId, plan } = found
    return {
      keyId: `agent:${agentId}`,
      maxUses: null,
      expiresAt: null,
      workspaceId,
      userId,
      role: 'member',
      scopes: ['org:agents:write'],
      plan,
      agent: { agentId, by },
    }
  }
}

/** What a platform token knows of the gateway token under which it was minted. */
const tokenMark = (gatewayToken: string): string =>
  createHash('sha256').update(gatewayToken).digest('hex').slice(0, 16)
const TOKEN_MARK = `left(encode(sha256(agent.gateway_token::bytea), 'hex'), 16)`
