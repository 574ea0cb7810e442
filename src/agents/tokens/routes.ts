import { contractError, forbidden, messages } from '../../errors.ts'
import { agentRoute, type Route } from '../../http/route.ts'
import { toRecord } from '../agent.ts'
import type { AgentServices } from '../services.ts'
import { agentUrls } from '../urls.ts'
import { gatewayToken, identity, metadataChange, metadataChanged, platformToken } from './schema.ts'
import { changeMetadata, rotateGatewayToken } from './service.ts'

const TAG = 'Agent tokens'
const AGENT = '/v0/agents/:agentId'
const PLATFORM = `${AGENT}/platform`

/** By what an agent is reached, and what it may say of itself (contract 5.4, compatibility 2.1 and 2.2). */
export function tokenRoutes({ pool, config, access, operations }: AgentServices): Route[] {
  return [
    agentRoute({
      method: 'get',
      path: `${AGENT}/gateway-token`,
      id: 'getGatewayToken',
      tag: TAG,
      summary: 'Get the gateway token of an agent',
      description:
        'Its holder may do with the agent what a key with the scope can; for this, its rotation and deleting the ' +
        'agent it takes a platform token, which the holder may mint.',
      // Whoever has the token may write.
      scope: 'org:agents:write',
      agent: 'owner',
      success: { status: 200, description: 'The token, and where it is good.', body: gatewayToken },
      async handle({ agent }) {
        return { body: { token: agent.gatewayToken, ...agentUrls(config, agent.agentId) } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${AGENT}/gateway-token/rotate`,
      id: 'rotateGatewayToken',
      tag: TAG,
      summary: 'Replace the gateway token of an agent',
      description:
        'The old one, and platform tokens that the agent got by it, are 401 from now on, and what they had open is ' +
        'closed. The agent restarts; the answer does not wait for that, unless `Prefer` says so.',
      scope: 'org:agents:write',
      agent: 'owner',
      operation: true,
      success: { status: 200, description: 'The new token.', body: gatewayToken },
      async handle({ agent, idempotencyKey, prefer, signal }) {
        const { token, operationId } = await rotateGatewayToken(pool, agent, idempotencyKey)
        const wait = { prefer, signal, waitMs: 0 }
        const { headers } = await operations.wait(agent.workspaceId, operationId, wait)
        return { headers, body: { token, ...agentUrls(config, agent.agentId) } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${PLATFORM}/token`,
      id: 'createPlatformToken',
      tag: TAG,
      summary: 'Get a platform token',
      description:
        'For an hour it is a key for this agent, or for its whole workspace where the operator says so. It ends with ' +
        'the gateway token.',
      scope: 'org:agents:write',
      agent: 'any',
      success: { status: 200, description: 'The token.', body: platformToken },
      async handle({ agent, principal }) {
        // It would never end.
        if (principal.agent?.by === 'platform') throw forbidden('A platform token cannot mint another one')
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
      tag: TAG,
      summary: 'Tell which agent this is',
      scope: 'org:agents:read',
      agent: 'any',
      success: { status: 200, description: 'The agent.', body: identity },
      async handle({ agent, principal }) {
        const { agentId, name, status, userId, workspaceId } = agent
        const tokenKind = principal.agent?.by ?? 'key'
        return { body: { agentId, name, status, userId, workspaceId, tokenKind } }
      },
    }),
    agentRoute({
      method: 'patch',
      path: `${PLATFORM}/metadata`,
      id: 'changeMetadata',
      tag: TAG,
      summary: 'Change what an agent is called',
      description:
        'What is left out stays as it is, null removes it. The agent’s own environment has it after its next restart.',
      scope: 'org:agents:write',
      agent: 'any',
      body: metadataChange,
      success: { status: 200, description: 'The agent as it is now.', body: metadataChanged },
      async handle({ agent, principal, body }) {
        const changed = await changeMetadata(pool, agent, body)
        return { body: { success: true, agent: toRecord(changed, principal) } }
      },
    }),
  ]
}
