/** The LLM key of a workspace, and calls of models with it. */
import assert from 'node:assert/strict'
import { createPrivateKey, randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { openContext, type Workspace } from '../context.ts'
import { insertAgent } from './rows.ts'

const context = await openContext()
const MODEL = context.env.BERTH_MODEL as string
const NAME = 'PINATA_LLM_KEY'

/** A workspace with an LLM key. */
async function withKey() {
  const workspace = await context.workspace()
  const { status, body } = await workspace.api.post('/v0/llm/enable', {})
  assert.deepEqual([status, body.success], [200, true])
  return { ...workspace, call: (more?: object) => call(body.privateKey, more) }
}

/** Not with the client of other tests: the model gateway has its own errors. */
async function call(key: string, more: object = {}) {
  const response = await fetch(`${context.url}/v0/llm/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'ping' }], ...more }),
  })
  const { status, headers } = response
  const text = await response.text()
  const isJson = headers.get('content-type')?.startsWith('application/json')
  return { status, headers, text, body: isJson ? JSON.parse(text) : undefined }
}

/** A model with a price of its own: one microdollar for each token of the request, two for each of the reply. */
async function pricedModel(): Promise<string> {
  const model = randomUUID()
  const price = { input: 1, output: 2, cachedInput: 0.25 }
  assert.equal((await context.shared.put(`/v0/admin/model/prices/berth/${model}`, price)).status, 200)
  return model
}

const secretsOf = async ({ api }: Pick<Workspace, 'api'>) =>
  (await api.get('/v0/secrets')).body.secrets.map(({ name }: { name: string }) => name)

describe('an LLM key', () => {
  it('an LLM key is an Ed25519 key, shown once, and stored as a secret without its value', async () => {
    const workspace = await context.workspace()
    const { api } = workspace
    assert.deepEqual((await api.get('/v0/llm/status')).body, { enabled: false, createdAt: null })
    const { body } = await api.post('/v0/llm/enable', {})
    const der = Buffer.from(body.privateKey, 'base64')
    assert.equal(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).asymmetricKeyType, 'ed25519')
    assert.equal((await call(body.privateKey)).status, 200)
    assertError(await api.post('/v0/llm/enable', {}), 409, 'Duplicate secret name')
    assert.deepEqual(await secretsOf(workspace), [NAME])
    assert.ok(!JSON.stringify((await api.get('/v0/secrets')).body).includes(body.privateKey))
    const { enabled, createdAt } = (await api.get('/v0/llm/status')).body
    assert.deepEqual([enabled, typeof createdAt], [true, 'string'])
  })

  it('a disabled LLM key stops at once, and its secret leaves the workspace and its agents', async () => {
    const workspace = await withKey()
    const { api, call } = workspace
    const agent = await insertAgent(context, workspace)
    const [secret] = (await api.get('/v0/secrets')).body.secrets
    assert.equal((await api.post(`${agent.path}/secrets`, { secretIds: [secret.id] })).status, 200)
    assert.equal((await call()).status, 200)
    for (let times = 0; times < 2; times++)
      assert.deepEqual((await api.delete('/v0/llm/disable')).body, { success: true })
    assert.equal((await call()).status, 401)
    assert.deepEqual(await secretsOf(workspace), [])
    assert.equal((await api.get('/v0/llm/status')).body.enabled, false)
    assert.equal((await api.post('/v0/llm/enable', {})).status, 200)
  })

  it('a new value of the secret ends the LLM key, and disabling keeps the secret', async () => {
    const workspace = await withKey()
    const [secret] = (await workspace.api.get('/v0/secrets')).body.secrets
    await workspace.api.put(`/v0/secrets/${secret.id}`, { value: 'a value of the owner' })
    assert.equal((await workspace.call()).status, 401)
    await workspace.api.delete('/v0/llm/disable')
    assert.deepEqual(await secretsOf(workspace), [NAME])
  })

  it('calls without an LLM key, or with an API key, get 401', async () => {
    const { api } = await context.workspace()
    const none = await context.anonymous.post('/v0/llm/chat/completions', {})
    assertError(none, 401, /^Missing Authorization header: .*<LLM key>/)
    assertError(await api.post('/v0/llm/chat/completions', {}), 401, /^Invalid LLM key/)
  })
})

describe('a call with an LLM key', () => {
  it('a call is answered whole or as events, and charged to the workspace without an agent', async () => {
    const { api, call } = await withKey()
    const model = await pricedModel()
    const whole = await call({ model })
    assert.deepEqual([whole.status, whole.body.choices[0].message.content], [200, 'pong: ping'])
    const { status, headers, text } = await call({ model, stream: true })
    assert.deepEqual([status, headers.get('content-type')], [200, 'text/event-stream'])
    assert.match(text, /"content":"pong: ".*data: \[DONE\]\n\n$/s)
    // The usage was asked for by the gateway.
    assert.ok(!text.includes('prompt_tokens'))
    const spending = async () => (await api.get('/v0/spending', { groupBy: 'agent,model' })).body.data
    await until('both calls are reported', async () => (await spending()).total.requests === 2)
    const { rows } = await spending()
    assert.equal(rows.length, 1)
    const [{ provider, agentId, usd, tokens }] = rows
    assert.deepEqual([provider, rows[0].model, agentId, usd], ['berth', model, null, '0.00004'])
    assert.deepEqual([tokens.input, tokens.output], [20, 10])
    const { entries } = (await api.get('/v0/audit', { action: 'createLlmCompletion' })).body.data
    const outcomes = entries.map(({ via, status }: Record<string, unknown>) => [via, status])
    assert.deepEqual(outcomes, [
      ['key', 200],
      ['key', 200],
    ])
    const csv = await api.get('/v0/spending', { groupBy: 'agent', format: 'csv' })
    assert.match(String(csv.body), /^agentId,requests,.*\r\n,2,0,20,10,/)
  })

  it('a call beyond the budget of the workspace gets 402 with what is left of it', async () => {
    const { api, call } = await withKey()
    const model = await pricedModel()
    await api.put('/v0/model/budget', { month: { usd: '0.001' } })
    const { status, headers, body } = await call({ model, max_tokens: 5000 })
    assert.deepEqual([status, headers.get('error-code')], [402, 'budget_exceeded'])
    assert.deepEqual([body.error.code, body.availableMicrocredits], ['budget_exceeded', 1000])
    assert.match(
      body.error.message,
      /^Budget spent: \$0\.001 per month for this workspace \(.*\)\. Resets at /,
    )
    assert.equal((await call({ model, max_tokens: 100 })).status, 200)
  })

  it('a call beyond the requests per minute gets 429 with Retry-After', async () => {
    const { api, call } = await withKey()
    await api.put('/v0/model/budget', { requestsPerMinute: 0 })
    const { status, headers, body } = await call()
    assert.deepEqual([status, body.error.code], [429, 'request_limit'])
    assert.ok(Number(headers.get('retry-after')) > 0)
  })

  it('a body that is too large gets 413 of the model gateway', async () => {
    const { call } = await withKey()
    const { status, body } = await call({ user: 'x'.repeat(33 * 1024 * 1024) })
    assert.deepEqual([status, body.error.code], [413, 'too_large'])
  })
})

it('models for LLM keys are listed without a key, with their prices', async () => {
  const model = await pricedModel()
  const { status, body } = await context.anonymous.get('/v0/llm/models')
  assert.equal(status, 200)
  const find = (id: string) => body.find((one: { model_id: string }) => one.model_id === id)
  const [input, output, cached] = ['input', 'output', 'cache_read'].map((kind) => `${kind}_usd_per_1m_tokens`)
  assert.deepEqual(find(model), {
    model_id: model,
    [input as string]: 1,
    [output as string]: 2,
    [cached as string]: 0.25,
  })
  // The model of the tests is on loopback, so it costs nothing.
  assert.equal(find(MODEL)[input as string], 0)
})
