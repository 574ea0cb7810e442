import { z } from 'zod'
import { messages } from '../../errors.ts'
import { like, timestamp } from '../../http/fields.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { LLM_KEY } from '../../model-providers.ts'
import type { AgentServices } from '../agent-route.ts'
import { createLlmKey, llmKeySince, removeLlmKey } from './llm-key.ts'

const route = routesOf('Models')
const success = z.literal(true)

/** The LLM key of a workspace: a key for `POST /v0/llm/chat/completions`. */
export function llmKeyRoutes({ prisma, encryption }: AgentServices): Route[] {
  return [
    route({
      method: 'post',
      path: '/v0/llm/enable',
      id: 'enableLlm',
      summary: 'Make the LLM key of the workspace',
      description:
        `The response shows the key once; Berth stores it encrypted, as the secret \`${LLM_KEY}\`. 409 ` +
        `\`${messages.duplicateSecret}\` if there is a secret of that name: \`DELETE /v0/llm/disable\` removes the ` +
        'LLM key. No agent’s token is accepted, because calls with the key do not count towards the agent’s budget.',
      scope: 'org:agents:write',
      success: {
        description: 'The key.',
        body: z.object({ success, privateKey: like('MC4CAQAwBQYDK2VwBCIEIJ…') }),
      },
      errors: [409],
      async handle({ principal }) {
        return { body: { success: true, privateKey: await createLlmKey(prisma, encryption, principal) } }
      },
    }),
    route({
      method: 'get',
      path: '/v0/llm/status',
      id: 'getLlmStatus',
      summary: 'Get whether the workspace has an LLM key',
      scope: 'org:agents:read',
      success: {
        description: 'Whether it has one, and since when.',
        body: z.object({ enabled: like(true), createdAt: timestamp.nullable() }),
      },
      async handle({ principal }) {
        const since = await llmKeySince(prisma, principal.workspaceId)
        return { body: { enabled: since !== undefined, createdAt: since?.toISOString() ?? null } }
      },
    }),
    route({
      method: 'delete',
      path: '/v0/llm/disable',
      id: 'disableLlm',
      summary: 'Remove the LLM key of the workspace',
      description:
        `New calls get 401 at once, and open streams end within about a second. The secret \`${LLM_KEY}\` is removed, ` +
        'also from agents. It succeeds too if there is no LLM key.',
      scope: 'org:agents:write',
      success: { description: 'There is no LLM key.', body: z.object({ success }) },
      async handle({ principal }) {
        await removeLlmKey(prisma, principal.workspaceId)
        return { body: { success: true } }
      },
    }),
  ]
}
