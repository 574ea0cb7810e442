/**
 * The OpenAI-compatible API of an agent, on the API's own host: many programs cannot resolve an agent's host below
 * `localhost`. The agent's host offers the same at `/v1`.
 */

import { z } from 'zod'
import { type AgentServices, agentRoutesOf } from '../../agents/agent-route.ts'
import { SINCE_UNKNOWN } from '../../agents/connections.ts'
import { eventStream } from '../../http/docs/example.ts'
import { like, withExample } from '../../http/fields.ts'
import type { Route } from '../../http/route.ts'
import { joinSegments, text } from '../../http/shapes.ts'
import { type Admitted, askGateway, UNTRUSTED_ANSWER } from './gateway-http.ts'
import { NAMES } from './targets.ts'

const agentRoute = agentRoutesOf('OpenAI')

const BASE = '/v0/agents/:agentId/openai/v1'

const model = like('openclaw/default').describe('`openclaw/default`, or another model from the list.')
const stream = z.boolean().optional().describe('Respond with server-sent events while the agent writes.')
const newCompletion = z.looseObject({
  model,
  messages: z.array(
    z.looseObject({ role: like('user'), content: withExample(z.unknown(), 'Which books came?') }),
  ),
  stream,
})
const newResponse = z.looseObject({ model, input: withExample(z.unknown(), 'Which books came?'), stream })
const delta = z.object({ type: z.literal('response.output_text.delta'), delta: like('Three, all on ships.') })
const CHUNKS =
  'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Three"}}]}\n\ndata: [DONE]\n\n'
const said = { role: 'assistant', content: 'Three, all on ships.' }
const completion = withExample(z.looseObject({}), {
  object: 'chat.completion',
  choices: [{ index: 0, message: said, finish_reason: 'stop' }],
})
const response = withExample(z.looseObject({}), {
  object: 'response',
  output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: said.content }] }],
})
const MODEL = { id: 'openclaw/default', object: 'model', owned_by: 'openclaw' }
const params = z.object({
  agentId: z.string(),
  model: z.preprocess(joinSegments, text(256).regex(new RegExp(`^${NAMES}$`), 'must be the id of a model')),
})

const NEEDS_STREAM = 'JSON, or server-sent events if `stream` is true.'

/**
 * Routes for OpenAI clients, whose base URL is {@link BASE} and whose API key is the gateway token or a Berth API key.
 */
export function openAiRoutes(services: AgentServices): Route[] {
  const common = {
    callers: ['gateway', 'platform'] as const,
    bound: 'agentRequests' as const,
    errors: [502, 504],
  }

  async function pass(request: Omit<Admitted, 'since'>, path: string): Promise<undefined> {
    request.res.set(UNTRUSTED_ANSWER)
    await askGateway(services, { ...request, since: SINCE_UNKNOWN }, path)
  }

  return [
    agentRoute({
      ...common,
      method: 'post',
      path: `${BASE}/chat/completions`,
      id: 'createChatCompletion',
      summary: 'Chat with an agent through OpenAI’s Chat Completions API',
      description:
        'The base URL of a client is `…/v0/agents/{agentId}/openai/v1`, and its API key is the gateway token of the agent or ' +
        'an API key of Berth. The engine’s own errors have OpenAI’s format: `{"error": {"message", "type"}}`.',
      scope: 'org:agents:write',
      stream: { mediaType: 'application/json', schema: newCompletion },
      success: {
        description: `A completion: ${NEEDS_STREAM}`,
        body: completion,
        lines: { mediaType: 'text/event-stream', body: like(CHUNKS) },
      },
      handle: (request) => pass(request, '/v1/chat/completions'),
    }),
    agentRoute({
      ...common,
      method: 'post',
      path: `${BASE}/responses`,
      id: 'createResponse',
      summary: 'Chat with an agent through OpenAI’s Responses API',
      scope: 'org:agents:write',
      stream: { mediaType: 'application/json', schema: newResponse },
      success: {
        description: `A response: ${NEEDS_STREAM}`,
        body: response,
        lines: eventStream(['response.output_text.delta', delta]),
      },
      handle: (request) => pass(request, '/v1/responses'),
    }),
    agentRoute({
      ...common,
      method: 'get',
      path: `${BASE}/models`,
      id: 'listModels',
      summary: 'List the models of an agent',
      scope: 'org:agents:read',
      success: {
        description: 'The models.',
        body: withExample(z.looseObject({}), { object: 'list', data: [MODEL] }),
      },
      handle: (request) => pass(request, '/v1/models'),
    }),
    agentRoute({
      ...common,
      method: 'get',
      path: `${BASE}/models/:model`,
      aliases: [`${BASE}/models/*model`],
      id: 'readModel',
      summary: 'Get a model of an agent',
      scope: 'org:agents:read',
      params,
      success: { description: 'The model.', body: withExample(z.looseObject({}), MODEL) },
      handle: (request) => pass(request, `/v1/models/${request.params.model}`),
    }),
  ]
}
