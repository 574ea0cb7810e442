/** Requests to a model under a budget, while the agent proxy and `web` are killed: no money is spent twice. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createPool, type Pool } from '../../src/db/pool.ts'
import { createLogger } from '../../src/log.ts'
import { insertModelAgent } from '../support/model-agent.ts'
import { until } from '../support/processes.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { Random, replay } from './seed.ts'
import { tortureTest } from './suite.ts'

const KEY = 'berth-torture'
const REQUESTS = 200
const CLIENTS = 8
const KILLS = 6
/** Each reply has this many tokens, and uses all that its request reserved. */
const REPLY_TOKENS = 100
/** US dollars per million tokens of a reply. */
const PRICE = 1000
const REPLY_USD = (PRICE * REPLY_TOKENS) / 1e6
const LIMIT_USD = 15
/** A lease of a killed proxy ends after half a minute. */
const SETTLED_MS = 90_000
/** Calls that it had not reported are charged a minute later. */
const CHARGED_MS = 180_000

/** In US dollars: what is spent, what leases still offer, and what killed proxies had not reported. */
interface Use {
  spent: number
  estimated: number
  offered: number
  open: number
}

describe(`budgets of models while processes are killed (${replay})`, () => {
  const random = new Random('models')
  let stack: Stack
  let pool: Pool
  /** Replies that the model has begun. Each is charged by its provider, whether it arrives or not. */
  let replies = 0
  const model = createServer((request, response) => {
    request.resume().once('end', async () => {
      replies++
      await delay(random.between(0, 60))
      const usage = { prompt_tokens: 20, completion_tokens: REPLY_TOKENS, total_tokens: 20 + REPLY_TOKENS }
      const choices = [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }]
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ id: 'c', object: 'chat.completion', choices, usage }))
    })
  })

  before(async () => {
    await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
    const { port } = model.address() as AddressInfo
    stack = await startStack({
      kind: 'embedded',
      database: 'of the run',
      env: { BERTH_MODEL_URL: `http://127.0.0.1:${port}/v1`, BERTH_MODEL: 'torture' },
    })
    pool = createPool(stack.env.DATABASE_URL ?? '', 2, createLogger('torture', 'silent'))
    await insertModelAgent(pool, { key: KEY, input: 0, output: PRICE, usdPerDay: LIMIT_USD })
  })
  after(async () => {
    await pool?.end()
    await stack?.stop()
    model.closeAllConnections()
    model.close()
  })

  async function readUse(): Promise<Use> {
    const { rows } = await pool.query<Use>(`
      SELECT (SELECT coalesce(sum(usd), 0)::float8 FROM model_spending) AS spent,
        (SELECT coalesce(sum(estimated_usd), 0)::float8 FROM model_spending) AS estimated,
        coalesce(sum(usd - open_usd) FILTER (WHERE expires_at > now()), 0)::float8 AS offered,
        coalesce(sum(open_usd), 0)::float8 AS open
      FROM model_lease WHERE state <> 'settled'`)
    return rows[0] as Use
  }

  /** Asks the model once. Resolves to the status; undefined if the proxy was killed. */
  const ask = (): Promise<number | undefined> =>
    fetch(`http://127.0.0.1:${stack.env.BERTH_EGRESS_PORT}/berth/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'default',
        max_tokens: REPLY_TOKENS,
        messages: [{ role: 'user', content: 'go' }],
      }),
    })
      .then((response) => response.arrayBuffer().then(() => response.status))
      .catch(() => undefined)

  /** Requests that got a reply, or a refusal for a spent budget. */
  let answers = 0

  /** Kills a process while requests are in flight, and the next one once both processes work again. */
  async function killAtRandom(): Promise<void> {
    for (let i = 0; i < KILLS && answers < REQUESTS; i++) {
      const before = answers
      await until('requests get through', () => answers >= Math.min(before + CLIENTS, REQUESTS), SETTLED_MS)
      await delay(random.between(0, 500))
      process.kill(await stack.pidOf(random.pick(['agent-proxy', 'web'] as const)), 'SIGKILL')
    }
  }

  tortureTest(
    'requests to models never exceed a budget while processes are killed, and nothing stays reserved',
    () => stack.output(),
    async () => {
      const statuses = new Map<number | undefined, number>()
      const client = async () => {
        while (answers < REQUESTS) {
          const status = await ask()
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          if (status === 200 || status === 429) answers++
          assert.ok(replies * REPLY_USD <= LIMIT_USD + 1e-9, `${replies} replies`)
          // While a process restarts, requests fail at once.
          if (status !== 200) await delay(random.between(20, 200))
        }
      }
      await Promise.all([killAtRandom(), ...Array.from({ length: CLIENTS }, client)])
      await until('leases have ended', async () => (await readUse()).offered === 0, SETTLED_MS)
      // Only the rest that leases of killed processes have returned can be spent again.
      await until('the budget is spent', async () => (await ask()) === 429)
      await until('leases have ended again', async () => (await readUse()).offered === 0, SETTLED_MS)
      await until('lost calls are charged', async () => (await readUse()).open === 0, CHARGED_MS)
      const { spent, estimated } = await readUse()
      const cents = (usd: number) => Math.round(usd * 100)
      assert.ok(cents(spent) <= cents(LIMIT_USD), `${spent} spent`)
      assert.ok(cents(replies * REPLY_USD) <= cents(spent), `${replies} replies, ${spent} spent`)
      console.log(`${replies} replies, $${spent} spent, of it $${estimated} estimated, statuses`, statuses)
      assert.ok((statuses.get(200) ?? 0) > LIMIT_USD / REPLY_USD / 2, 'most of the budget was used')
      const known = [200, 429, 502, 503, undefined]
      assert.deepEqual(
        [...statuses.keys()].filter((status) => !known.includes(status)),
        [],
      )
    },
  )
})
