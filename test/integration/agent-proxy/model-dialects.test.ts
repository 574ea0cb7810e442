/** Calls in the dialects other than OpenAI's chat: what the provider gets, what the agent gets, and what is charged. */
import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import type { UsageRecord } from '../../../src/agent-proxy/model/protocol.ts'
import type { Dialect } from '../../../src/model-providers.ts'
import { statusOf, talk } from '../../support/egress.ts'
import { REAL_KEY, startModelGateway, VIRTUAL_KEY } from '../../support/model-gateway.ts'

/** Picodollars per token: each kind of token shows in the cost. */
const PRICE = { input: 1, cachedInput: 100, cacheWrite: 1e4, output: 1e6, reasoning: 1e9 }
/** User agents that make the provider answer an error, or only half of the events. */
const [MISTAKEN, LEAVING] = ['mistaken', 'leaving']
const ERROR = '{"error":{"message":"no such tool"}}'

interface Case {
  dialect: Dialect
  path: string
  body?: object
  /** The path at the provider, and the header with its key. */
  sent: [path: string, header: keyof IncomingHttpHeaders, value: string]
  /** The response, or its events. */
  reply: object | object[]
  used: Partial<UsageRecord>
  /** The record of an agent that leaves after half of the events. */
  left?: Partial<UsageRecord>
}

const bearer = `Bearer ${REAL_KEY}`
const responsesUsage = {
  ...{ input_tokens: 100, input_tokens_details: { cached_tokens: 60 } },
  ...{ output_tokens: 50, output_tokens_details: { reasoning_tokens: 30 }, total_tokens: 150 },
}
const claudeInput = { input_tokens: 10, cache_read_input_tokens: 60, cache_creation_input_tokens: 30 }
const geminiUsage = {
  ...{ promptTokenCount: 100, cachedContentTokenCount: 60 },
  ...{ candidatesTokenCount: 20, thoughtsTokenCount: 30, totalTokenCount: 150 },
}
const openaiUsed = { input: 100, cachedInput: 60, output: 50, reasoning: 30, usd: 40 + 6000 + 20e6 + 30e9 }
const claudeUsed = { input: 100, cachedInput: 60, cacheWrite: 30, output: 50, usd: 10 + 6000 + 30e4 + 50e6 }
const gemini = '/berth/v1beta/models/m'
const parts = (text: string) => ({ candidates: [{ content: { parts: [{ text }] } }] })

const CASES: Record<string, Case> = {
  responses: {
    ...{ dialect: 'openai', path: '/berth/v1/responses', sent: ['/v1/responses', 'authorization', bearer] },
    reply: { id: 'r', output: [{ type: 'message' }], usage: responsesUsage },
    used: openaiUsed,
  },
  'streamed responses': {
    ...{ dialect: 'openai', path: '/berth/v1/responses', sent: ['/v1/responses', 'authorization', bearer] },
    body: { stream: true, input: 'x' },
    reply: [
      { type: 'response.created', response: { usage: null } },
      { type: 'response.output_text.delta', delta: '12345678' },
      { type: 'response.output_text.delta', delta: '12345678' },
      { type: 'response.completed', response: { usage: responsesUsage } },
    ],
    used: openaiUsed,
    left: { output: 3 },
  },
  embeddings: {
    ...{ dialect: 'openai', path: '/berth/v1/embeddings', sent: ['/v1/embeddings', 'authorization', bearer] },
    reply: { data: [{ embedding: [0.5] }], usage: { prompt_tokens: 7, total_tokens: 7 } },
    used: { input: 7, output: 0, usd: 7 },
  },
  messages: {
    ...{ dialect: 'anthropic', path: '/berth/v1/messages?beta=true' },
    sent: ['/v1/messages?beta=true', 'x-api-key', REAL_KEY],
    reply: { type: 'message', content: [], usage: { ...claudeInput, output_tokens: 50 } },
    used: claudeUsed,
  },
  'streamed messages': {
    ...{ dialect: 'anthropic', path: '/berth/v1/messages', body: { stream: true } },
    sent: ['/v1/messages', 'x-api-key', REAL_KEY],
    reply: [
      { type: 'message_start', message: { usage: { ...claudeInput, output_tokens: 1 } } },
      { type: 'content_block_delta', delta: { text: '12345678' } },
      { type: 'content_block_delta', delta: { text: '12345678' } },
      { type: 'message_delta', usage: { output_tokens: 50 } },
    ],
    used: claudeUsed,
    left: { input: 100, cachedInput: 60, output: 3 },
  },
  generateContent: {
    ...{ dialect: 'google', path: `${gemini}:generateContent?key=${VIRTUAL_KEY}` },
    sent: ['/v1beta/models/m:generateContent', 'x-goog-api-key', REAL_KEY],
    reply: { ...parts('x'), usageMetadata: geminiUsage },
    used: openaiUsed,
  },
  'streamed generateContent': {
    ...{ dialect: 'google', path: `${gemini}:streamGenerateContent?alt=sse&key=${VIRTUAL_KEY}` },
    sent: ['/v1beta/models/m:streamGenerateContent?alt=sse', 'x-goog-api-key', REAL_KEY],
    reply: [
      { ...parts('1234'), usageMetadata: { promptTokenCount: 100, thoughtsTokenCount: 30 } },
      parts('1234'),
      parts('1234'),
      { ...parts(''), usageMetadata: geminiUsage },
    ],
    used: openaiUsed,
    left: { input: 100, output: 30, reasoning: 30 },
  },
}

const textOf = (reply: object | object[]) =>
  Array.isArray(reply)
    ? reply.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
    : JSON.stringify(reply)

function answer(res: ServerResponse, { reply }: Case, agent: string | undefined): void {
  if (agent === MISTAKEN) return void res.writeHead(422, { 'content-type': 'application/json' }).end(ERROR)
  res.writeHead(200, { 'content-type': Array.isArray(reply) ? 'text/event-stream' : 'application/json' })
  if (Array.isArray(reply) && agent === LEAVING) res.write(textOf(reply.slice(0, 2)))
  else res.end(textOf(reply))
}

const start = (t: TestContext, of: Case) =>
  startModelGateway(t, (res, { req }) => answer(res, of, req.headers['user-agent']), {
    dialect: of.dialect,
    prices: { 'berth/m': PRICE },
  })

/** Google names the model in the path. */
const bodyOf = ({ dialect, body }: Case) =>
  JSON.stringify({ ...(dialect !== 'google' && { model: 'm' }), ...body })

for (const [name, of] of Object.entries(CASES)) {
  test(`${name}: the response passes unchanged and is charged, and an error costs nothing`, async (t) => {
    const { post, control, requests } = await start(t, of)
    const body = bodyOf(of)
    const passed = await post(of.path, body)
    assert.deepEqual([passed.status, await passed.text()], [200, textOf(of.reply)])
    const [{ req, body: sent } = assert.fail()] = requests
    const [path, header, value] = of.sent
    assert.deepEqual([req.url, req.headers[header], sent], [path, value, body])
    assert.ok(!JSON.stringify(req.rawHeaders).includes(VIRTUAL_KEY))
    assert.partialDeepStrictEqual(await control.record(), { ...of.used, estimated: false })

    const refused = await post(of.path, body, { headers: { 'user-agent': MISTAKEN } })
    const { usd } = await control.record(1)
    assert.deepEqual([refused.status, await refused.text(), usd], [422, ERROR, 0])
  })
  if (!of.left) continue
  test(`${name}: an agent that leaves pays for what was sent`, async (t) => {
    const { post, control } = await start(t, of)
    const leaving = new AbortController()
    await post(of.path, bodyOf(of), { headers: { 'user-agent': LEAVING }, signal: leaving.signal })
    leaving.abort()
    assert.partialDeepStrictEqual(await control.record(), { ...of.left, estimated: true })
  })
}

test('only the paths of dialects reach a model server, in one spelling', async (t) => {
  const { port, requests } = await startModelGateway(t, (res) => res.end('{}'))
  for (const path of [
    '/berth/v1/../api/pull',
    '/berth/v1/..%2f..%2fapi/pull',
    '/berth/v1/%2e%2e/chat/completions',
    '/berth//v1/chat/completions',
    '//berth/v1/chat/completions',
    '/berth/v1/chat%2fcompletions',
    '/berth/v1/chat/completions/../../models/delete',
    '/berth/v1/chat/completions;x',
    '/berth/v1/models',
    '/berth/api/delete',
    '/berth/admin',
    '/v1/chat/completions',
    '/BERTH/v1/chat/completions',
  ])
    for (const target of [path, `http://model.berth.internal${path}`]) {
      const head = `POST ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${VIRTUAL_KEY}\r\n`
      const said = await talk(port, `${head}Content-Length: 13\r\nConnection: close\r\n\r\n{"model":"m"}`)
      assert.equal(statusOf(said), 404, target)
    }
  assert.equal(requests.length, 0)
})
