/** The fallback of the operator's model: from the settings, through `web`'s sessions, to the gateway. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { loadConfig } from '../../../src/config.ts'
import { Notifications } from '../../../src/db/notifications.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { Encryption } from '../../../src/lib/encryption.ts'
import { OwnPrices } from '../../../src/models/own-prices.ts'
import { Sessions } from '../../../src/models/sessions.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { useDatabase } from '../../support/database.ts'
import { serveHttp } from '../../support/egress.ts'
import { startModelGateway, VIRTUAL_KEY } from '../../support/model-gateway.ts'
import { freePort } from '../../support/processes.ts'

const KEY = createHash('sha256').update(VIRTUAL_KEY).digest()
const { url, pool, log, createWorkspace } = await useDatabase()
const workspaceId = await createWorkspace()
await insertAgentRow(pool, { workspaceId, modelKeyHash: KEY })

/** The session of an agent whose operator has set these. */
async function sessionWith(settings: Record<string, string>) {
  const encryption = new Encryption('s'.repeat(32))
  const prisma = createPrisma(pool)
  const prices = new OwnPrices({ prisma, notifications: new Notifications(url, log) })
  const services = { config: loadConfig(settings), pool, prisma, encryption, log, prices }
  const session = await new Sessions(services).find(KEY.toString('hex'))
  assert.ok(session)
  return session
}

test('if the operator’s model server is down, its fallback answers under its own key and price', async (t) => {
  const asked: [key: string | undefined, model: string][] = []
  const fallback = await serveHttp(t, async (req, res) => {
    let body = ''
    for await (const chunk of req) body += chunk
    asked.push([req.headers.authorization, JSON.parse(body).model])
    res.end('{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}')
  })
  const session = await sessionWith({
    BERTH_MODEL_URL: `http://127.0.0.1:${await freePort()}/v1`,
    BERTH_MODEL_FALLBACK_URL: `http://127.0.0.1:${fallback}/v1`,
    BERTH_MODEL_FALLBACK: 'mini',
    BERTH_MODEL_FALLBACK_KEY: 'second',
  })
  session.prices['berth-fallback/mini'] = { input: 3, output: 7 }
  const { post, control } = await startModelGateway(t, (res) => res.end(), session)
  const ask = (model: string) => post('/berth/v1/chat/completions', { model, max_tokens: 9, messages: [] })
  const answer = await ask('default')
  assert.deepEqual([answer.status, asked], [200, [['Bearer second', 'mini']]])
  const { provider, model, usd } = await control.record()
  assert.deepEqual({ provider, model, usd }, { provider: 'berth-fallback', model: 'mini', usd: 65 })
  // The fallback has no other model of the operator's server.
  assert.equal((await ask('other')).status, 502)
  assert.equal(asked.length, 1)
  // Under a budget in US dollars, nothing without a price is called.
  const limits = { usd: true, tokens: false, requests: false }
  const limited = await startModelGateway(t, (res) => res.end(), {
    ...session,
    limits,
    prices: { 'berth/*': { input: 0, output: 0 } },
  })
  const refused = await limited.post('/berth/v1/chat/completions', { model: 'default', messages: [] })
  assert.deepEqual([refused.status, asked.length], [502, 1])
})

test('a fallback at a listed provider costs what that lists, and a local one nothing', async () => {
  const url = 'https://models.example.org/v1'
  const ofList = await sessionWith({
    BERTH_MODEL_URL: url,
    BERTH_MODEL_FALLBACK_URL: 'https://api.openai.com/v1',
  })
  assert.ok(Object.keys(ofList.prices).some((name) => name.startsWith('berth-fallback/gpt-')))
  assert.equal(ofList.prices['berth-fallback/*'], undefined)
  const local = await sessionWith({ BERTH_MODEL_URL: url, BERTH_MODEL_FALLBACK_URL: 'http://127.0.0.1:1/v1' })
  assert.deepEqual(local.prices['berth-fallback/*'], { input: 0, output: 0 })
  assert.equal(local.prices['berth/*'], undefined)
})
