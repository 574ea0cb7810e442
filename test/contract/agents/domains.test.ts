/** Domains of agents (contract 3, 4.3, 5.6, 7 and 8), with the test's own DNS server. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, beforeEach, describe, it } from 'node:test'
import { assertError, type Reply, soon } from '../../support/client.ts'
import { startDnsServer } from '../../support/dns.ts'
import { until } from '../../support/processes.ts'
import { openContext, type Workspace } from '../context.ts'
import { insertAgent } from './rows.ts'

const context = await openContext()
const dns = await startDnsServer(Number(context.env.BERTH_DNS_SERVER?.split(':')[1]))
after(() => dns.close())
const { sql, workspace } = context
const own = await workspace()
const other = await workspace()
beforeEach(() => dns.clear())

const unique = () => randomBytes(6).toString('hex')
const subdomain = () => `s${unique()}`
const customDomain = () => `${unique()}.example.test`
const PORT = { targetPort: 3000 }
const isAnswered = ({ status }: Reply) => status !== 503

/** An agent that is only a row, and its domains. */
async function newAgent(of: Workspace = own) {
  const agent = await insertAgent(context, of)
  const path = `${agent.path}/domains`
  const { api } = of
  return {
    ...agent,
    list: async () => (await api.get(path)).body.domains,
    add: (body: object) => api.post(path, { ...PORT, ...body }),
    /** Repeats the request if the DNS response came too late. */
    verify: (id: string) => soon(() => api.post(`${path}/${id}/verify`, undefined), isAnswered),
    change: (id: string, body: object) => api.put(`${path}/${id}`, body),
    remove: (id: string) => api.delete(`${path}/${id}`),
    challenge: (customDomain: unknown) => api.post(`${path}/challenge`, { customDomain }),
  }
}
type TestAgent = Awaited<ReturnType<typeof newAgent>>

/** Sets the TXT record of a domain, as its owner would. */
async function prove(agent: TestAgent, domain: string): Promise<void> {
  const { name, value } = (await agent.challenge(domain)).body
  dns.setTxt(name, 'v=spf1 -all', value)
}

describe('subdomains', () => {
  it('a subdomain is active at once', async () => {
    const agent = await newAgent()
    const name = subdomain()
    const { status, body } = await agent.add({ subdomain: name.toUpperCase() })
    assert.equal(status, 200)
    const { id, userId, createdAt, updatedAt, ...rest } = body.domain
    assert.equal(body.success, true)
    assert.match(id, /^[0-9a-f-]{36}$/)
    assert.equal(userId.length, 36)
    assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.equal(updatedAt, createdAt)
    assert.deepEqual(rest, {
      agentId: agent.agentId,
      subdomain: name,
      customDomain: null,
      ...PORT,
      protected: false,
      status: 'verified',
      url: `http://${name}.apps.localhost:${new URL(context.url).port}`,
      cnameTarget: null,
      txtName: null,
      txtValue: null,
    })
    assert.deepEqual(await agent.list(), [body.domain])
    assert.deepEqual(
      dns.asked,
      dns.asked.filter((question) => !question.includes(name)),
    )
  })
  it('a subdomain returns 409 if any agent of any tenant has it', async () => {
    const [agent, sibling, stranger] = await Promise.all([newAgent(), newAgent(), newAgent(other)])
    const name = subdomain()
    const { id } = (await agent.add({ subdomain: name })).body.domain
    for (const one of [agent, sibling, stranger])
      assertError(await one.add({ subdomain: name }), 409, 'This subdomain is taken')
    assert.equal((await agent.remove(id)).status, 200)
    assert.equal((await sibling.add({ subdomain: name })).status, 200)
  })
  it('a removed subdomain stays reserved for its tenant, because service workers outlive it', async () => {
    const [agent, stranger] = await Promise.all([newAgent(), newAgent(other)])
    const name = subdomain()
    const { id } = (await agent.add({ subdomain: name })).body.domain
    assert.equal((await agent.remove(id)).status, 200)
    assertError(await stranger.add({ subdomain: name }), 409, 'This subdomain is taken')
    assert.deepEqual(await stranger.list(), [])
    assert.equal((await agent.add({ subdomain: name })).status, 200)
  })
  it('a tenant that reserves a hundred unused subdomains gets 400 for another', async () => {
    const hoarder = await workspace()
    const agent = await newAgent(hoarder)
    const former = subdomain()
    const { id } = (await agent.add({ subdomain: former })).body.domain
    await agent.remove(id)
    await sql(
      `INSERT INTO subdomain_holder (subdomain, workspace_id)
       SELECT $1 || n, workspace_id FROM subdomain_holder, generate_series(1, 99) n WHERE subdomain = $1`,
      [former],
    )
    const refusal = 'subdomain: this workspace has 100 unused names: take one of those'
    assertError(await agent.add({ subdomain: subdomain() }), 400, refusal)
    assert.equal((await agent.add({ subdomain: former })).status, 200)
    assert.equal((await agent.add({ subdomain: subdomain() })).status, 200)
  })
  it('concurrent requests for a subdomain: one succeeds', async () => {
    const agents = await Promise.all(Array.from({ length: 8 }, (_, i) => newAgent(i % 2 ? own : other)))
    const name = subdomain()
    const replies = await Promise.all(agents.map((agent) => agent.add({ subdomain: name })))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(7).fill(409)])
  })
  it('the subdomain of a deleted agent stays reserved for its tenant', async () => {
    const agent = await newAgent()
    const name = subdomain()
    await agent.add({ subdomain: name })
    assert.ok((await own.api.delete(agent.path)).status < 300)
    assertError(await (await newAgent(other)).add({ subdomain: name }), 409, 'This subdomain is taken')
    assert.equal((await (await newAgent()).add({ subdomain: name })).status, 200)
  })
})

describe('invalid domains', () => {
  const both = 'subdomain, customDomain: exactly one of them is required'
  const cases: [why: string, body: object, message: string | RegExp][] = [
    ['with both names', { subdomain: 'a1', customDomain: 'a.example.test' }, both],
    ['with neither name', {}, both],
    ['with two nulls', { subdomain: null, customDomain: null }, both],
    ['with the brand in a subdomain', { subdomain: 'myBERTHshop' }, 'subdomain: must not contain "berth"'],
    ['with the other brand', { subdomain: 'pinata1' }, 'subdomain: must not contain "pinata"'],
    [
      'with the brand in a domain',
      { customDomain: 'berth.example.test' },
      'customDomain: must not contain "berth"',
    ],
    ['with a reserved name', { subdomain: 'www' }, 'subdomain: is reserved'],
  ]
  it('a domain returns 400 with an invalid name, port or protection', async () => {
    const agent = await newAgent()
    for (const [why, body, message] of cases) {
      const reply = await agent.add(body)
      assert.equal(reply.status, 400, why)
      assertError(reply, 400, message)
    }
    assert.deepEqual(await agent.list(), [])
  })
  it('the sixth domain of an agent returns 400, even if twenty are added at once', async () => {
    const agent = await newAgent()
    const replies = await Promise.all(Array.from({ length: 20 }, () => agent.add({ subdomain: subdomain() })))
    const refused = replies.filter(({ status }) => status !== 200)
    assert.equal(refused.length, 15)
    for (const reply of refused) assertError(reply, 400, 'An agent can have at most 5 domains')
    const domains = await agent.list()
    assert.equal(domains.length, 5)
    assertError(await agent.add({ customDomain: customDomain() }), 400, 'An agent can have at most 5 domains')
    await agent.remove(domains[0].id)
    assert.equal((await agent.add({ subdomain: subdomain() })).status, 200)
  })
})

describe('custom domains', () => {
  it('a custom domain is pending until its TXT record is found', async () => {
    const agent = await newAgent()
    const name = customDomain()
    const { body } = await agent.add({ customDomain: `${name}.`, protected: true })
    const { id, status, txtName, txtValue, cnameTarget, customDomain: stored } = body.domain
    assert.deepEqual([status, stored, body.domain.protected], ['pending_ownership', name, true])
    assert.equal(txtName, `_service-verify.${name}`)
    assert.equal(cnameTarget, `${agent.agentId}.apps.localhost`)
    dns.setTxt(txtName, 'something else')
    const pending = await agent.verify(id)
    assert.equal(pending.status, 200)
    assert.deepEqual([pending.body.verified, pending.body.domain], [false, body.domain])
    assert.match(pending.body.message, new RegExp(txtName))
    dns.setTxt(txtName, 'something else', txtValue)
    const { body: verified } = await agent.verify(id)
    const { updatedAt, ...rest } = verified.domain
    assert.equal(verified.verified, true)
    const { updatedAt: _before, ...before } = body.domain
    assert.deepEqual(rest, { ...before, status: 'verified', txtName: null, txtValue: null })
    assert.ok(updatedAt > body.domain.updatedAt)
    // It stays verified.
    dns.clear()
    assert.deepEqual((await agent.verify(id)).body, verified)
  })
  it('a custom domain is verified at once if the record exists, even behind a CNAME', async () => {
    const agent = await newAgent()
    const name = customDomain()
    const { body } = await agent.challenge(name.toUpperCase())
    const { value, ...rest } = body
    assert.match(value, /^berth-verify=[\w-]{43}$/)
    assert.deepEqual(rest, {
      success: true,
      customDomain: name,
      type: 'TXT',
      name: `_service-verify.${name}`,
      cnameTarget: `${agent.agentId}.apps.localhost`,
    })
    dns.setCname(body.name, `proof.${name}`)
    dns.setTxt(`proof.${name}`, value)
    await until('it is verified at once', async () => {
      const { domain } = (await agent.add({ customDomain: name })).body
      // It is added again if the DNS response came too late.
      if (domain.status !== 'verified') await agent.remove(domain.id)
      return domain.status === 'verified'
    })
  })
  it('the challenge is the same for all agents of a workspace, and differs for others', async () => {
    const [agent, sibling, stranger] = await Promise.all([newAgent(), newAgent(), newAgent(other)])
    const name = customDomain()
    const value = async (one: TestAgent, domain = name) => (await one.challenge(domain)).body.value
    assert.equal(await value(agent), await value(sibling))
    assert.notEqual(await value(agent), await value(stranger))
    assert.notEqual(await value(agent), await value(agent, customDomain()))
    // One workspace's record proves nothing for another.
    await prove(stranger, name)
    assert.equal((await agent.add({ customDomain: name })).body.domain.status, 'pending_ownership')
  })
  it('many may claim a custom domain, and the first to prove it gets it: 409 for all others', async () => {
    const [agent, stranger] = await Promise.all([newAgent(), newAgent(other)])
    const name = customDomain()
    const claimed = (await agent.add({ customDomain: name })).body.domain
    assertError(await agent.add({ customDomain: name }), 409, 'The agent has this domain already')
    await prove(stranger, name)
    const { id } = (await stranger.add({ customDomain: name })).body.domain
    assert.equal((await stranger.verify(id)).body.verified, true)
    const taken = 'This domain is already registered and verified'
    assertError(await agent.verify(claimed.id), 409, taken)
    assertError(await (await newAgent()).add({ customDomain: name }), 409, taken)
    assertError(await (await newAgent(other)).add({ customDomain: name }), 409, taken)
    await prove(agent, name)
    assertError(await agent.verify(claimed.id), 409, taken)
    assert.equal((await agent.list())[0].status, 'pending_ownership')
  })
  it('concurrent proofs of a custom domain: one of two tenants gets it', async () => {
    for (let round = 0; round < 5; round++) {
      const [agent, stranger] = await Promise.all([newAgent(), newAgent(other)])
      const name = customDomain()
      const records = []
      for (const one of [agent, stranger]) records.push((await one.add({ customDomain: name })).body.domain)
      dns.setTxt(records[0].txtName, ...records.map(({ txtValue }) => txtValue))
      dns.behave({ delayMs: 50 })
      const replies = await Promise.all([agent.verify(records[0].id), stranger.verify(records[1].id)])
      assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409])
      dns.behave('well')
    }
  })
  it('a custom domain stays pending while DNS does not respond, and verifying it returns 503', async () => {
    const agent = await newAgent()
    for (const how of ['broken', 'silent'] as const) {
      dns.behave(how)
      const name = customDomain()
      const began = performance.now()
      const { status, body } = await agent.add({ customDomain: name })
      assert.deepEqual([status, body.domain.status], [200, 'pending_ownership'], how)
      const reply = await own.api.post(`${agent.path}/domains/${body.domain.id}/verify`, undefined)
      assertError(reply, 503, 'DNS did not answer: try again')
      assert.equal(reply.headers.get('retry-after'), '5')
      assert.ok(performance.now() - began < 30_000, 'the wait is limited')
      dns.behave('well')
      await prove(agent, name)
      assert.equal((await agent.verify(body.domain.id)).body.verified, true)
    }
  })
  it('a pending custom domain is checked again automatically', async () => {
    const agent = await newAgent()
    const name = customDomain()
    const { id } = (await agent.add({ customDomain: name })).body.domain
    await prove(agent, name)
    // The row says that the domain was created yesterday; the loop runs every ten seconds.
    await sql(`UPDATE domain SET created_at = now() - interval '1 day' WHERE id = $1`, [id])
    await until('it is verified', async () => (await agent.list())[0].status === 'verified', 120_000)
  })
  it('a custom domain returns 403 on the free plan, but a subdomain does not', async () => {
    const free = await newAgent(await workspace('free'))
    const plan = 'Custom domains are not part of the free plan'
    assertError(await free.add({ customDomain: customDomain() }), 403, plan)
    assertError(await free.challenge(customDomain()), 403, plan)
    assert.equal((await free.add({ subdomain: subdomain() })).status, 200)
    // A host that is not a domain returns 400 on every plan.
    assertError(await free.add({ customDomain: 'localhost' }), 400, /^customDomain/)
  })
})

describe('existing domains', () => {
  it('the port and protection of a domain can be changed, but not its name', async () => {
    const agent = await newAgent()
    const { domain } = (await agent.add({ subdomain: subdomain(), protected: true })).body
    const changed = await agent.change(domain.id, { targetPort: 4000 })
    assert.equal(changed.status, 200)
    const { updatedAt, ...rest } = changed.body.domain
    const { updatedAt: before, ...first } = domain
    assert.deepEqual(rest, { ...first, targetPort: 4000 })
    assert.ok(updatedAt > before)
    assert.equal((await agent.change(domain.id, { protected: false })).body.domain.protected, false)
    assert.equal((await agent.change(domain.id, {})).body.domain.targetPort, 4000)
    for (const [body, message] of [
      [{ subdomain: 'other' }, 'subdomain: cannot be changed: delete the domain and add another'],
      [
        { customDomain: 'a.example.test' },
        'customDomain: cannot be changed: delete the domain and add another',
      ],
    ] as const)
      assertError(await agent.change(domain.id, body), 400, message)
  })
  it('a deleted domain is gone', async () => {
    const agent = await newAgent()
    const { id } = (await agent.add({ subdomain: subdomain() })).body.domain
    const { status, body } = await agent.remove(id)
    assert.deepEqual([status, body], [200, { success: true, message: 'Domain deleted' }])
    assertError(await agent.remove(id), 404, 'The agent has no such domain')
    assert.deepEqual(await agent.list(), [])
  })
})
