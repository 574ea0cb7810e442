import { z } from 'zod'
import { contractError, messages } from '../../errors.ts'
import { agentId, apiKey, like, userId, workspaceId } from '../../http/fields.ts'
import type { Route } from '../../http/route.ts'
import { agentRecord } from '../agent.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { agentUrls } from '../urls.ts'
import { rotateGatewayToken } from './token-service.ts'

const agentRoute = agentRoutesOf('Agent tokens')
const AGENT = '/v0/agents/:agentId'
const PLATFORM = `${AGENT}/platform`

/** `GET A/gateway-token` and its rotation. */
const gatewayToken = z.object({
  token: agentRecord.shape.gatewayToken.unwrap(),
  wsUrl: like('wss://x7f3k2ab.agents.example').describe('The agent’s own host, for WebSockets.'),
  baseUrl: like('https://x7f3k2ab.agents.example').describe('The same for HTTP.'),
})

const platformToken = z.object({ token: apiKey.describe('A JWT, valid for one hour.') })

/** `GET A/platform/whoami`: the agent, and the caller's kind of token. */
const identity = z.object({
  agentId,
  name: like('Librarian'),
  status: agentRecord.shape.status,
  userId,
  workspaceId,
  tokenKind: z.enum(['gateway', 'platform', 'key']).describe('`key`: an API key of the workspace.'),
})

/**
 * Routes of the tokens that give access to an agent, and of the platform tokens that it mints for itself (contract
 * 5.4).
 */
export function tokenRoutes({ prisma, config, access, operations }: AgentServices): Route[] {
  return [
    agentRoute({
      method: 'get',
      path: `${AGENT}/gateway-token`,
      id: 'getGatewayToken',
      summary: 'Get the gateway token of an agent',
      description:
        'Its holder may do with the agent whatever a key with the scope may, except this, its rotation, ' +
        'deleting the agent and attaching secrets to it.',
      // The token lets its holder write.
      scope: 'org:agents:write',
      success: { description: 'The token, and the URLs that accept it.', body: gatewayToken },
      async handle({ agent }) {
        return { body: { token: agent.gatewayToken, ...agentUrls(config, agent.agentId) } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${AGENT}/gateway-token/rotate`,
      id: 'rotateGatewayToken',
      summary: 'Replace the gateway token of an agent',
      description:
        'The old token, and the agent’s platform tokens minted with it, return 401 from now on, and their ' +
        'connections are closed. The agent restarts; the response does not wait for that, unless `Prefer` says so.',
      scope: 'org:agents:write',
      operation: true,
      success: { description: 'The new token.', body: gatewayToken },
      async handle({ principal, agent, idempotencyKey, prefer, signal }) {
        const { token, operationId } = await rotateGatewayToken(prisma, agent, idempotencyKey)
        const asked = { principal, prefer, signal, waitMs: 0 }
        const { headers } = await operations.started('agent.restart', operationId, asked)
        return { headers, body: { token, ...agentUrls(config, agent.agentId) } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${PLATFORM}/token`,
      id: 'createPlatformToken',
      summary: 'Get a platform token',
      description:
        'For an hour it works as a key for this agent; if the operator allows it, it can also see the ' +
        'rest of the workspace. It expires when the gateway token changes.',
      scope: 'org:agents:write',
      // Closed to platform tokens: tokens that mint one another would never end.
      callers: ['gateway'],
      success: { description: 'The token.', body: platformToken },
      async handle({ agent }) {
        const token = await access.mintPlatformToken(agent).catch((error: Error) => {
          throw contractError(500, 'token_failed', messages.tokenFailed, error.message, { cause: error })
        })
        return { body: { token } }
      },
    }),
    agentRoute({
      method: 'get',
      path: `${PLATFORM}/whoami`,
      id: 'whoami',
      summary: 'Identify the agent and the caller’s token',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: { description: 'The agent.', body: identity },
      async handle({ agent, principal }) {
        const { agentId, name, status, userId, workspaceId } = agent
        const tokenKind = principal.agent?.by ?? 'key'
        return { body: { agentId, name, status, userId, workspaceId, tokenKind } }
      },
    }),
  ]
}
