import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { MODEL_CONTROL, type Session } from '../../../src/agent-proxy/model/protocol.ts'
import { loadAgentProxyKey, loadConfig } from '../../../src/config.ts'
import { usage } from '../../integration/models/ledger.ts'
import { assertError } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { collectPages } from '../pages.ts'
import { insertAgent } from './rows.ts'

const context = await openContext()
const proxyKey = loadAgentProxyKey(loadConfig(context.env))
const proxy = randomUUID()

/** Calls `web` as an agent proxy does. */
async function control(path: string, body: object, key = proxyKey) {
  const response = await fetch(`${context.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Record<string, any> }
}

/** A workspace with an agent that has a virtual key. */
async function withAgent(plan?: string) {
  const workspace = await context.workspace(plan)
  const agent = await insertAgent(context, workspace)
  const key = createHash('sha256').update(randomUUID()).digest('hex')
  await context.sql(`UPDATE agent SET model_key_hash = decode($2, 'hex') WHERE id = $1`, [agent.id, key])
  const session = async (): Promise<Session> => (await control(MODEL_CONTROL.session, { key })).body.session
  const grant = (usd: number) =>
    control(MODEL_CONTROL.grant, { proxy, key, need: { usd: usd * 1e12, tokens: 10, requests: 1 } })
  const sync = (leases: object[] = [], known?: object) =>
    control(MODEL_CONTROL.sync, { proxy, leases, keys: [key], known })
  return { ...workspace, agent, key, session, grant, sync }
}
const spendAll = (id: string, key: string, usd: number) => ({
  ...{ id, key, seq: 1, open: { usd: 0, tokens: 0 }, done: true },
  records: [usage(usd, { input: 7, output: 3, session: '=HYPERLINK("x")' })],
})

describe('the routes for agent proxies', () => {
  it('the routes for agent proxies take AGENT_PROXY_KEY only, and valid bodies', async () => {
    const { status, body } = await control(MODEL_CONTROL.session, {}, 'another')
    assert.deepEqual([status, body.error], [401, 'AGENT_PROXY_KEY is required'])
    assert.equal((await control(MODEL_CONTROL.session, {})).status, 400)
    const unknown = await control(MODEL_CONTROL.session, { key: '0'.repeat(64) })
    assert.deepEqual([unknown.status, unknown.body.refusal.code], [200, 'unknown_key'])
  })

  it('a session has the real key of an attached secret, and the prices of its providers', async () => {
    const { api, id, agent, key, session, sync } = await withAgent()
    assert.deepEqual(
      (await session()).providers.map(({ id }) => id),
      ['berth'],
    )
    await api.post('/v0/secrets', { name: 'OPENAI_API_KEY', value: 'sk-real' })
    await context.sql(
      'INSERT INTO agent_secret (agent_id, secret_id) SELECT $1, id FROM secret WHERE workspace_id = $2',
      [agent.id, id],
    )
    const { providers, prices } = await session()
    const openai = providers.find(({ id }) => id === 'openai')
    assert.deepEqual(openai, {
      id: 'openai',
      dialect: 'openai',
      baseUrl: 'https://api.openai.com/v1',
      key: 'sk-real',
    })
    // The model of the tests is on loopback.
    assert.deepEqual(prices['berth/*'], { input: 0, output: 0 })
    assert.ok(Object.keys(prices).some((name) => name.startsWith('openai/')))
    assert.ok(!Object.keys(prices).some((name) => name.startsWith('anthropic/')))
    // Other files change the prices of this Berth, and with them the version.
    const known = await until('a version is known', async () => {
      const { body } = await sync([], { [key]: (await session()).version })
      return body.unchanged.length > 0 && body
    })
    assert.deepEqual(known, { sessions: {}, unchanged: [key], ended: [] })
    const fresh = await sync([], { [key]: 'another' })
    assert.ok(fresh.body.sessions[key].version)
  })
})

describe('a budget', () => {
  it('a budget shows what is spent and reserved, and refuses calls until it is raised', async () => {
    const { api, agent, key, grant, sync, session } = await withAgent()
    const path = `${agent.path}/model/budget`
    const { body: none } = await api.get(path)
    assert.deepEqual([none.data.state, none.data.updatedAt], ['ok', null])
    const { body: set } = await api.put(path, { month: { usd: '1.5' }, requestsPerMinute: 60 })
    assert.deepEqual(set.data.month.usd, {
      limit: '1.50',
      spent: '0.00',
      reserved: '0.00',
      remaining: '1.50',
    })
    assert.deepEqual((await session()).limits, { usd: true, tokens: false, requests: true })
    const { lease } = (await grant(1)).body
    assert.equal((await api.get(path)).body.data.month.usd.reserved, '1.05')
    assert.equal((await grant(1)).body.refusal.code, 'budget_exceeded')
    assert.deepEqual((await sync([spendAll(lease.id, key, 1.5)])).body.ended, [lease.id])
    const { body: spent } = await api.get(`${agent.path}/model`)
    assert.deepEqual(spent.data.budget.month.usd, {
      limit: '1.50',
      spent: '1.50',
      reserved: '0.00',
      remaining: '0.00',
    })
    assert.equal(spent.data.budget.month.tokens.spent, 10)
    assert.equal(spent.data.refusal.code, 'budget_exceeded')
    await api.put(path, { month: { usd: '3' } })
    assert.ok((await grant(1)).body.lease)
    const { body: removed } = await api.delete(path)
    assert.deepEqual([removed.data.month.usd.limit, removed.data.month.usd.spent], [null, '1.50'])
  })

  it('a budget rejects amounts that are not decimal texts, and unknown fields', async () => {
    const { api } = await withAgent()
    const put = (body: object) => api.put('/v0/model/budget', body)
    for (const usd of ['1.1234567', '-1', '1000001', '1e3', '', '.5'])
      assertError(await put({ day: { usd } }), 400, /^day\.usd: must be /)
    assertError(await put({ day: { tokens: -1 } }), 400, 'day.tokens: must be at least 0')
    assertError(await put({ week: {} }), 400, /week/)
  })
})

describe('the limits of a plan', () => {
  it('a plan’s limit for models applies at once to the leases and calls of its workspaces', async () => {
    const name = `plan ${randomUUID()}`
    await context.sql(
      'INSERT INTO plan (name, channels, custom_domains, pin_by_cid) VALUES ($1, true, true, true)',
      [name],
    )
    const path = `/v0/admin/plans/${encodeURIComponent(name)}`
    const patch = (json: object, api = context.shared) => api.request('PATCH', path, { json })
    const { api, id, key, grant, session, sync } = await withAgent(name)
    const ceiling = async () => (await api.get('/v0/model/budget')).body.data.ceiling
    assert.equal(await ceiling(), null)
    const { lease } = (await grant(1)).body
    const spent = { ...spendAll(lease.id, key, 0.85), done: false }
    assert.deepEqual((await sync([spent])).body.ended, [])
    const { status, body } = await patch({ modelUsdPerMonth: '1' })
    assert.deepEqual([status, body.data.modelUsdPerMonth, body.data.modelTokensPerMonth], [200, '1', null])
    assert.deepEqual(await ceiling(), { usdPerMonth: '1.00', tokensPerMonth: null })
    assert.deepEqual((await session()).limits, { usd: true, tokens: false, requests: false })
    assert.deepEqual((await sync([{ ...spent, seq: 2, records: [] }])).body.ended, [lease.id])
    assert.match((await grant(1)).body.refusal.message, /^Budget spent: \$1\.00 per month by the plan /)
    const events = await context.sql(
      `SELECT data ->> 'scope' AS scope, data ->> 'percent' AS percent FROM event
       WHERE workspace_id = $1 AND type = 'model.budget.reached' UNION ALL
       SELECT data ->> 'scope', data ->> 'percent' FROM event_pending
       WHERE workspace_id = $1 AND type = 'model.budget.reached' ORDER BY 2`,
      [id],
    )
    assert.deepEqual(events, [
      { scope: 'plan', percent: '50' },
      { scope: 'plan', percent: '80' },
    ])
    await patch({ modelUsdPerMonth: null, modelTokensPerMonth: 5 })
    assert.deepEqual(await ceiling(), { usdPerMonth: null, tokensPerMonth: 5 })
    assert.match((await grant(1)).body.refusal.message, /^Budget spent: 5 tokens per month by the plan /)
    assert.equal((await patch({ modelTokensPerMonth: null }, api)).status, 403)
    assertError(await patch({}), 400, /must have a limit/)
    assertError(await patch({ modelUsdPerMonth: '-1' }), 400, /^modelUsdPerMonth: must be an amount/)
    const none = await context.shared.request('PATCH', '/v0/admin/plans/none', {
      json: { modelUsdPerMonth: '1' },
    })
    assertError(none, 404, 'There is no such plan')
  })

  it('another plan recalls the leases that the former one allowed', async () => {
    const { id, key, grant, sync } = await withAgent()
    const { lease } = (await grant(1)).body
    await context.shared.request('PATCH', `/v0/admin/workspaces/${id}`, { json: { plan: 'free' } })
    const report = { ...spendAll(lease.id, key, 0), records: [], done: false }
    await sync([report])
    assert.deepEqual((await sync([{ ...report, seq: 2 }])).body.ended, [lease.id])
  })
})

describe('a pause', () => {
  it('a pause refuses calls until an agent is resumed, and its own token cannot resume it', async () => {
    const { api, agent, grant, session } = await withAgent()
    for (let times = 0; times < 2; times++) {
      const { body } = await api.post(`${agent.path}/model/pause`, {})
      assert.deepEqual([typeof body.data.paused.at, body.data.refusal.code], ['string', 'model_paused'])
    }
    assert.equal((await session()).refusal?.code, 'model_paused')
    assert.equal((await grant(1)).body.refusal.code, 'model_paused')
    assert.equal((await agent.gateway.post(`${agent.path}/model/resume`, {})).status, 403)
    const { body } = await api.post(`${agent.path}/model/resume`, {})
    assert.deepEqual([body.data.paused, body.data.refusal], [null, null])
    assert.ok((await grant(1)).body.lease)
  })
})

describe('a price', () => {
  it('a price of the operator replaces a listed one until it is removed', async () => {
    const { api, session } = await withAgent()
    const path = `/v0/admin/model/prices/berth/${randomUUID()}`
    const name = path.split('/').slice(-2).join('/')
    assert.equal((await api.put(path, { input: 2.5, output: 10 })).status, 403)
    assertError(await context.shared.put(path, { input: -1, output: 1 }), 400, 'input: must be at least 0')
    assert.equal((await context.shared.put(path, { input: 2.5, output: 10 })).status, 200)
    assert.deepEqual((await session()).prices[name], { input: 2_500_000, output: 10_000_000 })
    const prices: any[] = await collectPages(api, '/v0/model/prices', 'prices', { limit: '50' })
    const sourceOf = (of: string) => prices.find(({ model }: { model: string }) => of.endsWith(model))?.source
    assert.deepEqual([sourceOf(name), prices.at(-1)?.source], ['operator', 'list'])
    assert.equal(
      new Set(prices.map(({ provider, model, from }) => `${provider}/${model} ${from}`)).size,
      prices.length,
    )
    assert.equal((await context.shared.delete(path)).status, 200)
    assertError(await context.shared.delete(path), 404, 'There is no such price')
    assert.equal((await session()).prices[name], undefined)
  })
})

describe('spending', () => {
  it('spending is grouped as asked, as JSON and CSV, and outlives its agent', async () => {
    const { api, agent, key, grant, sync } = await withAgent()
    const { lease } = (await grant(1)).body
    const report = spendAll(lease.id, key, 0.25)
    const records = report.records.map((record) => ({ ...record, estimated: true }))
    await sync([{ ...report, records }])
    await context.sql('UPDATE agent SET deleted_at = now() WHERE id = $1', [agent.id])
    const { body } = await api.get('/v0/spending', { groupBy: 'agent,model' })
    const sums = {
      usd: '0.25',
      tokens: { input: 7, output: 3, cachedInput: 0, cacheWrite: 0, reasoning: 0 },
      ...{ requests: 1, errors: 0, latencyMs: { firstByte: 10, total: 20 } },
      estimated: { requests: 1, usd: '0.25' },
    }
    const of = { agentId: agent.agentId, provider: 'openai', model: 'm' }
    assert.deepEqual(body.data, { rows: [{ ...of, ...sums }], total: sums, next_page_token: '' })
    const csv = await api.get('/v0/spending', { groupBy: 'session', format: 'csv' })
    assert.match(
      String(csv.body),
      /^session,requests,.*,estimated,estimated_usd\r\n"'=HYPERLINK\(""x""\)",1,0,7,3,0,0,0,0.25,10,20,1,0.25\r/,
    )
    const past = await api.get('/v0/spending', { to: '2020-01-01', from: '2020-01-01' })
    assert.deepEqual([past.body.data.rows, past.body.data.total.requests], [[], 0])
  })

  it('spending comes in pages of rows in order, with the total of all, as JSON and CSV', async () => {
    const { api, key, grant, sync } = await withAgent()
    const { lease } = (await grant(1)).body
    const report = spendAll(lease.id, key, 0)
    const sessions = ['', 'a', 'b/ü,', 'b:', 'é']
    const records = sessions.map((session) => usage(0.1, { session, model: 'm,1' }))
    await sync([{ ...report, records }])
    const query = { groupBy: 'session,model', limit: '2' }
    const rows: any[] = await collectPages(api, '/v0/spending', 'rows', query)
    assert.deepEqual(rows.map(({ session }) => session).toSorted(), sessions)
    const { headers, body } = await api.get('/v0/spending', { ...query, format: 'csv' })
    assert.equal(String(body).trim().split('\r\n').length, 3)
    const pageToken = headers.get('next-page-token') ?? ''
    const next = await api.get('/v0/spending', { ...query, pageToken })
    assert.deepEqual(next.body.data.rows, rows.slice(2, 4))
    assert.deepEqual([next.body.data.total.requests, next.body.data.total.usd], [5, '0.50'])
    const other = await api.get('/v0/spending', { groupBy: 'session', pageToken })
    assertError(other, 400, 'pageToken: not a token of this API')
  })

  it('spending rejects unknown groups, and days in the wrong order or more than a year apart', async () => {
    const { api } = await withAgent()
    assertError(await api.get('/v0/spending', { groupBy: 'week' }), 400, /^groupBy\[0\]: must be of day/)
    const query = { from: '2026-01-02', to: '2026-01-01' }
    assertError(await api.get('/v0/spending', query), 400, 'from: must not be after to')
    const long = { from: '2024-12-31', to: '2026-01-02' }
    assertError(await api.get('/v0/spending', long), 400, 'from: must be at most 366 days before to')
    const last = await api.get('/v0/spending', { to: '2020-02-29' })
    assert.equal(last.status, 200)
  })
})
