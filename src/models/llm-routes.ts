import { createHash } from 'node:crypto'
import { z } from 'zod'
import { loadAgentProxy } from '../agent-proxy/tunnel-client.ts'
import type { Core } from '../core.ts'
import { notFound, unauthorized } from '../errors.ts'
import { beginEntry, noteCaller } from '../http/audit.ts'
import { like, withExample } from '../http/fields.ts'
import { type Route, routesOf } from '../http/route.ts'
import { passToGateway } from './llm-calls.ts'
import { PER_TOKEN } from './prices.ts'
import type { Sessions } from './sessions.ts'

const route = routesOf('Models')

const rate = withExample(z.number().nullable(), 2.5)
const models = z.array(
  z.object({
    model_id: like('gpt-5.5'),
    input_usd_per_1m_tokens: rate.describe('Null if the model has no price.'),
    output_usd_per_1m_tokens: rate,
    cache_read_usd_per_1m_tokens: rate,
  }),
)
const newCompletion = z.looseObject({
  model: like('gpt-5.5'),
  messages: z.array(z.looseObject({ role: like('user'), content: withExample(z.unknown(), 'Hello!') })),
  stream: z.boolean().optional().describe('Respond with server-sent events.'),
})
const completion = withExample(z.looseObject({}), {
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello!' }, finish_reason: 'stop' }],
})
const CHUNKS =
  'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\ndata: [DONE]\n\n'
const spent = z.object({
  error: z.object({
    message: like('Budget spent: $5.00 per month for this workspace. Resets at 2026-12-01.'),
    type: like('budget_exceeded'),
    code: like('budget_exceeded'),
  }),
  availableMicrocredits: like(0).describe('Millionths of a US dollar that are left of the budget.'),
})

/** The operator's model for clients with the workspace's LLM key, in OpenAI's dialect. */
export function llmRoutes({ config, prisma, addresses, bounds }: Core, sessions: Sessions): Route[] {
  const gateway = loadAgentProxy(config)
  const usdOf = (picodollars: number | undefined) =>
    picodollars === undefined ? null : picodollars / PER_TOKEN

  /** The secret of an LLM key. @throws ApiError 401 */
  const findKey = async (authorization: string | undefined) => {
    if (authorization === undefined) throw unauthorized(NO_KEY, 'no_authorization')
    const key = /^Bearer +(\S+)$/i.exec(authorization)?.[1] ?? ''
    const modelKeyHash = new Uint8Array(createHash('sha256').update(key).digest())
    const select = { id: true, workspaceId: true }
    const found = await prisma.secret.findUnique({ where: { modelKeyHash }, select })
    if (!found) throw unauthorized(BAD_KEY, 'bad_token')
    return found
  }

  return [
    route({
      method: 'get',
      path: '/v0/llm/models',
      id: 'listLlmModels',
      summary: 'List the models for calls with an LLM key',
      description:
        'The models of the operator, with prices in US dollars. Empty if the operator has set none.',
      scope: null,
      success: { description: 'The models.', body: models },
      async handle() {
        const found = await sessions.operatorModels()
        return {
          body: found.map(({ model, price }) => ({
            model_id: model,
            input_usd_per_1m_tokens: usdOf(price?.input),
            output_usd_per_1m_tokens: usdOf(price?.output),
            cache_read_usd_per_1m_tokens: usdOf(price?.cachedInput ?? price?.input),
          })),
        }
      },
    }),
    route({
      method: 'post',
      path: '/v0/llm/chat/completions',
      id: 'createLlmCompletion',
      summary: 'Call a model with the LLM key',
      description:
        'The base URL of an OpenAI client is `…/v0/llm`, and its API key is the key of `POST /v0/llm/enable`. Calls count ' +
        'towards the budget of the workspace: beyond it, 402. 429 beyond its requests per minute, and for an address that ' +
        'sends too much. Errors of the model gateway and of the model have OpenAI’s format: ' +
        '`{"error": {"message", "type", "code"}}`. 404 if the operator has set no model.',
      scope: null,
      stream: { mediaType: 'application/json', schema: newCompletion },
      success: {
        description: 'A completion: JSON, or server-sent events if `stream` is true.',
        body: completion,
        lines: { mediaType: 'text/event-stream', body: like(CHUNKS) },
      },
      errors: [401, 402, 404, 502, 503],
      otherFailure: { status: 402, body: spent },
      async handle({ req, res, signal }) {
        const { id, workspaceId } = await addresses.login(req, () => findKey(req.headers.authorization))
        noteCaller(res, { via: 'key', workspaceId })
        if (!config.BERTH_MODEL_URL) throw notFound('The operator has set no model: BERTH_MODEL_URL')
        await beginEntry(res)
        await bounds.run('modelCalls', { keyId: id, workspaceId }, () =>
          passToGateway(gateway, { req, res, signal }),
        )
        return undefined
      },
    }),
  ]
}

const NO_KEY = 'Missing Authorization header: send "Authorization: Bearer <LLM key>"'
const BAD_KEY = 'Invalid LLM key: POST /v0/llm/enable makes one'
