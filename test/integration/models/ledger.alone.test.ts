import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import type { GrantAnswer, Lease } from '../../../src/agent-proxy/model/protocol.ts'
import { openLedger, type TestLedger, USD, usage } from './ledger.ts'

let ledger: TestLedger
before(async () => {
  ledger = await openLedger()
})
after(() => ledger?.stop())

function leaseOf(answer: GrantAnswer): Lease {
  assert.ok('lease' in answer, JSON.stringify(answer))
  return answer.lease
}
function refusalOf(answer: GrantAnswer) {
  assert.ok('refusal' in answer, JSON.stringify(answer))
  return answer.refusal
}
const cent = USD / 100
const expire = (id: string) =>
  ledger.run("UPDATE model_lease SET expires_at = now() - interval '1 s' WHERE id = $1", id)
const endOfMonth = () => {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString().slice(0, 10)
}

describe('a grant of a lease', () => {
  it('64 parallel grants do not pass a budget with room for one', async () => {
    const { key, workspaceId } = await ledger.createAgent({ agent: { usd_per_month: '1' } })
    const proxies = Array.from({ length: 64 }, () => randomUUID())
    const answers = await Promise.all(proxies.map((proxy) => ledger.grant(key, { usd: 0.7 * USD }, proxy)))
    const refusals = answers.filter((answer) => 'refusal' in answer).map(refusalOf)
    assert.equal(refusals.length, 63)
    for (const { code } of refusals) assert.equal(code, 'budget_exceeded')
    assert.deepEqual(await ledger.totals(workspaceId), [0, 0.73])
  })

  it('a lease has what the request needs, and a tenth of the rest', async () => {
    const { key } = await ledger.createAgent({ workspace: { usd_per_day: '4.5', tokens_per_month: 100 } })
    const lease = leaseOf(await ledger.grant(key, { usd: USD / 2, tokens: 50 }))
    assert.deepEqual([lease.usd, lease.tokens], [0.9 * USD, 55])
    assert.ok(lease.requestsForMs > 0 && lease.requestsForMs <= 60_000)
    assert.ok(lease.endsInMs > 0 && lease.endsInMs <= 86_400_000)
    const { key: unlimited } = await ledger.createAgent()
    assert.equal(leaseOf(await ledger.grant(unlimited, { usd: cent })).usd, USD + cent)
  })

  it('a refusal names the limit, what is left of it, and when it resets', async () => {
    const { key, id, workspaceId } = await ledger.createAgent({ agent: { usd_per_month: '5' } })
    const { id: lease } = leaseOf(await ledger.grant(key, { usd: 5 * USD }))
    await ledger.report({ id: lease, key, records: [usage(5)], done: true })
    const message = async (need: Partial<Lease>) => refusalOf(await ledger.grant(key, need)).message
    const resets = `Resets at ${endOfMonth()}.`
    assert.equal(await message({ usd: 1 }), `Budget spent: $5.00 per month for this agent. ${resets}`)
    await ledger.setBudget(workspaceId, id, { usd_per_month: '5.5' })
    assert.equal(
      await message({ usd: USD }),
      `Budget spent: $5.50 per month for this agent ($0.50 left, and this request may take $1.00). ${resets}`,
    )
    await ledger.setBudget(workspaceId, null, { tokens_per_day: 1000, tokens_per_month: 1200 })
    assert.match(await message({ tokens: 1100 }), /^Budget spent: 1,000 tokens per day for this workspace \(/)
  })

  it('the ceilings of the plan limit a workspace without budgets', async () => {
    await ledger.run(`INSERT INTO plan (name, channels, custom_domains, pin_by_cid, model_usd_per_month)
      VALUES ('capped', true, true, true, 1)`)
    const { key } = await ledger.createAgent({ plan: 'capped' })
    const { code, message } = refusalOf(await ledger.grant(key, { usd: 2 * USD }))
    assert.equal(code, 'budget_exceeded')
    assert.match(message, /^Budget spent: \$1\.00 per month by the plan of this workspace/)
  })

  it('a budget holds for all agents of its workspace, and none of another', async () => {
    const first = await ledger.createAgent({ workspace: { usd_per_month: '1' } })
    const second = await ledger.createAgent({}, first)
    const stranger = await ledger.createAgent({ workspace: { usd_per_month: '1' } })
    leaseOf(await ledger.grant(first.key, { usd: 0.9 * USD }))
    refusalOf(await ledger.grant(second.key, { usd: 0.9 * USD }))
    leaseOf(await ledger.grant(stranger.key, { usd: 0.9 * USD }))
  })

  it('requests per minute are counted across grants', async () => {
    const { key } = await ledger.createAgent({ agent: { requests_per_minute: 20 } })
    let granted = 0
    for (;;) {
      const answer = await ledger.grant(key, {})
      if ('refusal' in answer) {
        const { code, retryAfter = 0 } = answer.refusal
        // A minute may have passed.
        if (granted < 20) break
        assert.equal(code, 'request_limit')
        assert.ok(retryAfter > 0 && retryAfter <= 60)
        break
      }
      granted += answer.lease.requests
    }
    assert.ok(granted >= 20 && granted <= 40, `${granted}`)
  })

  it('an unknown key, a deleted agent and a paused one get no lease', async () => {
    const { key, id } = await ledger.createAgent()
    await ledger.run('UPDATE agent SET model_paused_at = now() WHERE id = $1', id)
    assert.equal(refusalOf(await ledger.grant(key, {})).code, 'model_paused')
    await ledger.run('UPDATE agent SET deleted_at = now() WHERE id = $1', id)
    assert.equal(refusalOf(await ledger.grant(key, {})).code, 'unknown_key')
    assert.equal(refusalOf(await ledger.grant('0'.repeat(64), {})).status, 401)
  })

  it('a grant recalls leases that hold the rest, and refuses only what their requests reserve', async () => {
    const { key, workspaceId } = await ledger.createAgent({ workspace: { usd_per_month: '1' } })
    const other = await ledger.createAgent({}, { workspaceId })
    const lease = leaseOf(await ledger.grant(key, { usd: cent }))
    const need = { usd: 0.95 * USD }
    assert.deepEqual(refusalOf(await ledger.grant(other.key, need)).retryAfter, 2)
    assert.deepEqual(await ledger.report({ id: lease.id, key, open: { usd: cent, tokens: 0 } }), [lease.id])
    assert.equal(refusalOf(await ledger.grant(other.key, need)).code, 'unavailable')
    // The proxy knows now that the lease has ended: only what is in flight still counts.
    await ledger.report({ id: lease.id, key, seq: 2, open: { usd: cent, tokens: 0 } })
    leaseOf(await ledger.grant(other.key, need))
    assert.equal(refusalOf(await ledger.grant(other.key, need)).code, 'budget_exceeded')
  })
})

describe('a report of a lease', () => {
  it('a repeated report changes nothing', async () => {
    const { key, workspaceId } = await ledger.createAgent({ agent: { usd_per_month: '1' } })
    const { id } = leaseOf(await ledger.grant(key, { usd: 0.1 * USD }))
    const report = { id, key, records: [usage(0.04), usage(0.01)], open: { usd: 0.05 * USD, tokens: 0 } }
    for (let times = 0; times < 2; times++) assert.deepEqual(await ledger.report(report), [])
    assert.deepEqual(await ledger.totals(workspaceId), [0.05, 0.14])
    const last = { ...report, seq: 2, records: [usage(0.02)], done: true }
    for (let times = 0; times < 2; times++) assert.deepEqual(await ledger.report(last), [id])
    assert.deepEqual(await ledger.totals(workspaceId), [0.07, 0])
  })

  it('the lease of a dead proxy returns, except what was in flight', async () => {
    const { key, workspaceId } = await ledger.createAgent({ agent: { usd_per_month: '1' } })
    const { id } = leaseOf(await ledger.grant(key, { usd: 0.5 * USD }))
    await ledger.report({ id, key, records: [usage(0.2)], open: { usd: 0.1 * USD, tokens: 0 } })
    await expire(id)
    assert.deepEqual(await ledger.totals(workspaceId), [0.2, 0.1])
    leaseOf(await ledger.grant(key, { usd: 0.7 * USD }))
    refusalOf(await ledger.grant(key, { usd: cent }))
    // A late report settles it. It does not get the rest back.
    assert.deepEqual(await ledger.report({ id, key, seq: 2, records: [usage(0.05)], done: true }), [id])
    assert.deepEqual(await ledger.totals(workspaceId), [0.25, 0.7])
  })

  it('calls of a dead proxy are charged as estimated until a late report names their cost', async () => {
    const { key, id: agent, workspaceId } = await ledger.createAgent({ agent: { usd_per_month: '0.6' } })
    const { id } = leaseOf(await ledger.grant(key, { usd: 0.3 * USD, tokens: 10 }))
    const open = { usd: 0.1 * USD, tokens: 10 }
    await ledger.report({ id, key, records: [usage(0.2)], open })
    await ledger.chargeLost()
    assert.deepEqual(await ledger.totals(workspaceId), [0.2, 0.13])
    await expire(id)
    for (let times = 0; times < 2; times++) await ledger.chargeLost()
    assert.deepEqual(await ledger.totals(workspaceId), [0.3, 0])
    const lost = () =>
      ledger.run(
        `SELECT requests, errors, input, usd::float8, estimated, estimated_usd::float8 FROM model_spending
         WHERE agent_id = $1 AND provider = 'unknown'`,
        agent,
      )
    const sums = { requests: '1', errors: '1', input: '10', usd: 0.1, estimated: '1', estimated_usd: 0.1 }
    assert.deepEqual(await lost(), [sums])
    const days = await ledger.run('SELECT usd::float8, tokens FROM model_day WHERE agent_id = $1', agent)
    assert.deepEqual(days, [{ usd: 0.3, tokens: '10' }])
    const events = await ledger.run(
      `SELECT data ->> 'percent' AS percent FROM event_pending
       WHERE workspace_id = $1 AND type = 'model.budget.reached'`,
      workspaceId,
    )
    assert.deepEqual(events, [{ percent: '50' }])
    // A repeat of the last report changes nothing; the journal's keeps the amount open.
    await ledger.report({ id, key, records: [usage(0.2)], open })
    assert.deepEqual(await ledger.totals(workspaceId), [0.3, 0])
    assert.deepEqual(await ledger.report({ id, key, seq: 2, open: { usd: 0.04 * USD, tokens: 0 } }), [id])
    assert.deepEqual(await ledger.totals(workspaceId), [0.2, 0.04])
    await ledger.chargeLost()
    assert.deepEqual(await ledger.totals(workspaceId), [0.24, 0])
    await ledger.report({ id, key, seq: 3, records: [usage(0.01)], done: true })
    assert.deepEqual(await ledger.totals(workspaceId), [0.21, 0])
    const zero = { requests: '0', errors: '0', input: '0', usd: 0, estimated: '0', estimated_usd: 0 }
    assert.deepEqual(await lost(), [zero])
  })

  it('a proxy that dies before its first report has spent what its request needed', async () => {
    const { key, workspaceId } = await ledger.createAgent({ agent: { usd_per_month: '1' } })
    const { id } = leaseOf(await ledger.grant(key, { usd: 0.5 * USD }))
    await expire(id)
    assert.deepEqual(await ledger.totals(workspaceId), [0, 0.5])
  })

  it('a lease ends with its day, and its spending stays in that day', async () => {
    const { key, id: agent } = await ledger.createAgent({ agent: { usd_per_day: '1' } })
    const { id } = leaseOf(await ledger.grant(key, { usd: USD }))
    await ledger.run('UPDATE model_lease SET day = day - 1 WHERE id = $1', id)
    leaseOf(await ledger.grant(key, { usd: USD }))
    assert.deepEqual(await ledger.report({ id, key, records: [usage(0.5)] }), [id])
    await ledger.report({ id, key, seq: 2, records: [usage(0.5)], done: true })
    const days = await ledger.run(
      `SELECT (now() AT TIME ZONE 'UTC')::date - day AS age, usd FROM model_spending WHERE agent_id = $1`,
      agent,
    )
    assert.deepEqual(days, [{ age: 1, usd: '1.00' }])
  })

  it('records of a lease without a row count once for the agent of the key', async () => {
    const { key, workspaceId } = await ledger.createAgent()
    const report = { id: randomUUID(), key, records: [usage(0.5)], done: true }
    for (let times = 0; times < 2; times++) await ledger.report(report)
    await ledger.report({ ...report, id: randomUUID(), key: '0'.repeat(64) })
    assert.deepEqual(await ledger.totals(workspaceId), [0.5, 0])
  })

  it('a lowered budget refuses at once, and a raised one grants', async () => {
    const { key, id, workspaceId } = await ledger.createAgent({ agent: { usd_per_month: '5' } })
    const lease = leaseOf(await ledger.grant(key, { usd: USD }))
    await ledger.report({ id: lease.id, key, records: [usage(1)], done: true })
    await ledger.setBudget(workspaceId, id, { usd_per_month: '0.5' })
    assert.equal(refusalOf(await ledger.grant(key, { usd: 1 })).code, 'budget_exceeded')
    await ledger.setBudget(workspaceId, id, { usd_per_month: '2' })
    leaseOf(await ledger.grant(key, { usd: USD }))
  })

  it('spending is a sum per model and session, and an agent cannot make endless rows', async () => {
    const { key, id: agent } = await ledger.createAgent()
    const { id } = leaseOf(await ledger.grant(key, {}))
    const tokens = { input: 7, output: 2, cachedInput: 3, cacheWrite: 1, reasoning: 1 }
    const hostile = { session: `\0${'s'.repeat(300)}\ud800` }
    const many = Array.from({ length: 500 }, (_, n) => usage(0.01, { session: `${n}`, model: `m${n}` }))
    const own = [usage(0.1, { ...tokens, ...hostile }), usage(0.2, { ...tokens, ...hostile, status: 500 })]
    await ledger.report({ id, key, records: own })
    await ledger.report({ id, key, seq: 2, records: many })
    await ledger.report({ id, key, seq: 3, records: many })
    const rows = await ledger.run('SELECT * FROM model_spending WHERE agent_id = $1', agent)
    assert.ok(rows.length <= 402, `${rows.length}`)
    const { workspace_id, agent_id, day, session, ...row } = rows.find(({ model }) => model === 'm') ?? {}
    assert.deepEqual(row, {
      ...{
        provider: 'openai',
        model: 'm',
        requests: '2',
        errors: '1',
        input: '14',
        output: '4',
        usd: '0.30',
      },
      ...{ estimated: '0', estimated_usd: '0.00' },
      ...{ cached_input: '6', cache_write: '2', reasoning: '2', first_byte_ms: '20', total_ms: '40' },
    })
    assert.equal(session?.length, 200)
    const total = rows.reduce((sum, { usd }) => sum + Number(usd), 0)
    assert.equal(total.toFixed(2), '10.30')
  })

  it('each percent of a budget leaves one event', async () => {
    const budgets = { agent: { usd_per_month: '1' }, workspace: { tokens_per_day: 100 } }
    const { key, agentId, workspaceId } = await ledger.createAgent(budgets)
    const { id } = leaseOf(await ledger.grant(key, { usd: USD / 2, tokens: 20 }))
    const reached = async (...[seq, usd, tokens]: [number, number, number]) => {
      const report = { id, key, seq, records: [usage(usd, { input: tokens })] }
      for (let times = 0; times < 2; times++) await ledger.report(report)
      const rows = await ledger.run<{
        resource_type: string
        resource_id: string
        data: { percent: number }
      }>(
        `WITH taken AS (DELETE FROM event_pending WHERE type = 'model.budget.reached' AND workspace_id = $1 RETURNING *)
         SELECT resource_type, resource_id, data FROM taken ORDER BY seq`,
        workspaceId,
      )
      return rows
    }
    assert.deepEqual(await reached(1, 0.49, 49), [])
    const [first, ...more] = await reached(2, 0.32, 0)
    assert.deepEqual(first, {
      resource_type: 'budget',
      resource_id: agentId,
      data: {
        ...{
          agentId,
          scope: 'agent',
          period: 'month',
          unit: 'usd',
          percent: 50,
          limit: '1.00',
          spent: '0.81',
        },
        ...{ reason: null, resetsAt: `${endOfMonth()}T00:00:00.000Z` },
      },
    })
    assert.deepEqual(
      more.map(({ data }) => data.percent),
      [80],
    )
    const last = await reached(3, 0.2, 60)
    assert.deepEqual(
      last.map(({ resource_id, data }) => [resource_id, data.percent]),
      [[agentId, 100], ...[50, 80, 100].map((percent) => [workspaceId, percent])],
    )
  })
})

describe('random sequences', () => {
  const NO_AMOUNTS = { usd: 0, tokens: 0 }
  /** Numbers below a limit, the same in each run. */
  const numbers = (seed: number) => (below: number) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return seed % below
  }

  for (const seed of [1, 2, 3])
    it(`random grants, reports and deaths of proxies never pass a budget (${seed})`, async () => {
      const next = numbers(seed)
      const limit = 3
      const first = await ledger.createAgent({ workspace: { usd_per_month: `${limit}` } })
      const agents = [first, await ledger.createAgent({ agent: { usd_per_day: '1' } }, first)]
      type Held = { id: string; key: string; seq: number; left: number; open: number; isEnded: boolean }
      const leases: Held[] = []
      const dead: Held[] = []
      const step = async () => {
        const { key } = agents[next(2)] ?? first
        const need = 1 + next(40)
        const lease = leases[next(leases.length || 1)]
        const action = next(10)
        if (action < 4 || !lease) {
          const answer = await ledger.grant(key, { usd: need * cent }, randomUUID())
          if (!('lease' in answer)) return
          const { id, usd } = answer.lease
          leases.push({ id, key, seq: 0, left: usd - need * cent, open: need * cent, isEnded: false })
        } else if (action === 9) {
          await expire(lease.id)
          dead.push(...leases.splice(leases.indexOf(lease), 1))
          if (next(2)) await ledger.chargeLost()
        } else if (action === 8 && dead.length > 0) {
          // It only seemed to be dead: its calls were within what they had reserved.
          const [late] = dead.splice(next(dead.length), 1) as [Held]
          const records = [usage(next(late.open + 1) / USD)]
          await ledger.report({ ...late, seq: late.seq + 1, records, open: NO_AMOUNTS, done: true })
        } else {
          // The request in flight ends below its reservation, and another request takes from the rest.
          const cost = next(lease.open + 1)
          if (!lease.isEnded) lease.left += lease.open - cost
          lease.open = lease.isEnded ? 0 : next(Math.floor(lease.left) + 1)
          lease.left -= lease.open
          const done = action === 4
          if (done) leases.splice(leases.indexOf(lease), 1)
          const records = done ? [usage((cost + lease.open) / USD)] : [usage(cost / USD)]
          const report = { ...lease, seq: ++lease.seq, records, open: { usd: lease.open, tokens: 0 }, done }
          for (let times = next(2); times >= 0; times--)
            lease.isEnded = (await ledger.report(report)).includes(lease.id)
        }
      }
      for (let steps = 0; steps < 60; steps++) {
        await step()
        const [spent, held] = await ledger.totals(first.workspaceId)
        assert.ok(spent + held <= limit + 1e-9, `${spent} spent, ${held} held after ${steps} steps`)
      }
    })
})
