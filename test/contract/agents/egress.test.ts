/** Egress policies and what agent proxies report. A policy's effect is tested in test/integration/agent-proxy. */
import assert from 'node:assert/strict'
import { createHash, randomInt, randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { AGENTD_PORT } from '../../../agentd/protocol.ts'
import { type Client, EGRESS_CONTROL, type HostCount } from '../../../src/agent-proxy/policy/protocol.ts'
import { loadAgentProxyKey, loadConfig } from '../../../src/config.ts'
import { assertError } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { insertAgent } from './rows.ts'

const context = await openContext()
const proxyKey = loadAgentProxyKey(loadConfig(context.env))

/** Calls `web` as an agent proxy does. */
async function report(clients: Client[], counts: HostCount[] = []) {
  const response = await fetch(`${context.url}${EGRESS_CONTROL}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${proxyKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ clients, counts }),
  })
  assert.equal(response.status, 200)
  return ((await response.json()) as { policies: unknown[] }).policies
}

/** A workspace with an agent that has a credential at its proxy. */
async function withAgent() {
  const workspace = await context.workspace()
  const agent = await insertAgent(context, workspace)
  const credential = createHash('sha256').update(randomUUID()).digest('hex')
  const address = `10.${randomInt(256)}.${randomInt(256)}.7`
  await context.sql(`UPDATE agent SET proxy_key_hash = decode($2, 'hex') WHERE id = $1`, [
    agent.id,
    credential,
  ])
  await setAddress(agent, address)
  const path = `/v0/agents/${agent.agentId}/egress`
  return { ...workspace, agent, path, client: { credential, address } }
}
const setAddress = ({ id }: { id: string }, address: string) =>
  context.sql('UPDATE agent SET address = $2 WHERE id = $1', [id, `${address}:${AGENTD_PORT}`])
const count = (agentId: string, host: string, more: Partial<HostCount> = {}): HostCount => ({
  ...{ agentId, host, requests: 0, denied: 0, bytesSent: 0, bytesReceived: 0 },
  ...more,
})

describe('an egress policy', () => {
  it('an agent’s policy comes before its workspace’s, which comes before none', async () => {
    const { api, agent, path, client } = await withAgent()
    const { agentId } = agent
    const applied = async () => (await report([client]))[0]
    const open = { mode: 'open', allow: [], deny: [] }
    const none = { data: { ...open, source: 'default', enforced: true, updatedAt: null } }
    assert.deepEqual((await api.get(path)).body, none)
    assert.deepEqual(await applied(), { agentId, ...open, secrets: [] })

    const shared = { mode: 'open', allow: [], deny: ['*.example.net'] }
    const { updatedAt, ...set } = (await api.put('/v0/egress', { mode: 'open', deny: shared.deny })).body.data
    assert.ok(Date.parse(updatedAt))
    assert.deepEqual(set, shared)
    assert.equal((await api.get(path)).body.data.source, 'workspace')
    assert.deepEqual(await applied(), { agentId, ...shared, secrets: [] })

    const own = { mode: 'listed', allow: ['api.example.com', '[2001:db8::1]:443'], deny: [] }
    const put = await api.put(path, { mode: 'listed', allow: ['API.Example.com', '[2001:db8::1]:443'] })
    assert.deepEqual(
      { ...put.body.data, updatedAt: null },
      { ...own, source: 'agent', enforced: true, updatedAt: null },
    )
    assert.deepEqual(await applied(), { agentId, ...own, secrets: [] })

    const limited = { host: 'api.example.com:443', methods: ['GET'], paths: ['/v1/*'] }
    const rules = {
      mode: 'listed',
      allow: [limited, 'b.example'],
      deny: [{ host: 'b.example', methods: ['PUT'] }],
    }
    const given = { ...limited, host: 'API.example.com:443', methods: ['get'] }
    const limits = await api.put(path, { ...rules, allow: [given, 'b.example'] })
    assert.deepEqual(limits.body.data, {
      ...rules,
      source: 'agent',
      enforced: true,
      updatedAt: limits.body.data.updatedAt,
    })
    assert.deepEqual((await api.get(path)).body, limits.body)
    assert.deepEqual(await applied(), { agentId, ...rules, secrets: [] })

    assert.equal((await api.delete(path)).body.data.source, 'workspace')
    assert.deepEqual((await api.delete('/v0/egress')).body.data, { ...open, updatedAt: null })
    assert.deepEqual((await api.get(path)).body, none)
  })

  it('a policy has a mode and hosts, and another workspace’s agent is out of reach', async () => {
    const { api, path } = await withAgent()
    for (const [body, message] of [
      [{}, 'mode: must be open, listed or none'],
      [{ mode: 'listed', allow: ['https://x'] }, /^allow\[0\]: must be a host, such as/],
      [{ mode: 'listed', allow: [{ host: 'a.example' }] }, /^allow\[0\]: must have methods or paths/],
      [
        { mode: 'listed', allow: [{ host: '192.0.2.1', methods: ['GET'] }] },
        /^allow\[0\]: must have methods or/,
      ],
      [
        { mode: 'open', deny: [{ host: 'a.example', paths: ['/a/../b'] }] },
        /^deny\[0\]: must have methods or/,
      ],
      [{ mode: 'open', deny: [{ host: 'a.example', methods: ['GET /'] }] }, /^deny\[0\]/],
      [{ mode: 'open', deny: Array(201).fill('a.example') }, 'deny: must have at most 200 rules'],
      [{ mode: 'open', ports: [443] }, /ports/],
    ] as const) {
      assertError(await api.put(path, body), 400, message)
      assertError(await api.put('/v0/egress', body), 400, message)
    }
    const other = await context.workspace()
    assert.equal((await other.api.put(path, { mode: 'open' })).status, 401)
    assert.equal((await api.get(path)).body.data.source, 'default')
  })

  it('an agent is known by the address that only it has, and by its credential at that address', async () => {
    const { agent, client } = await withAgent()
    const { address } = client
    const { agent: other, client: ofOther } = await withAgent()
    const known = async (one: Partial<Client>) =>
      ((await report([{ ...client, ...one }])) as ({ agentId: string } | null)[])[0]?.agentId
    assert.equal(await known({}), agent.agentId)
    assert.equal(await known({ credential: '' }), agent.agentId)
    assert.equal(await known({ credential: 'f'.repeat(64) }), undefined)
    assert.equal(await known({ credential: ofOther.credential }), undefined)
    assert.equal(await known({ address: ofOther.address }), undefined)
    await setAddress(other, address)
    assert.equal(await known({ credential: '' }), undefined)
    assert.equal(await known({}), agent.agentId)
    assert.equal(await known({ credential: ofOther.credential }), other.agentId)
  })
})

describe('the hosts of an agent', () => {
  it('the hosts of an agent are added up over days and listed in pages', async () => {
    const { api, agent, path } = await withAgent()
    const { agentId } = agent
    await report([], [count(agentId, 'b.example', { requests: 2, bytesSent: 10, bytesReceived: 20 })])
    await report(
      [],
      [count(agentId, 'b.example', { requests: 1 }), count(agentId, 'a.example', { denied: 3 })],
    )
    await context.sql(
      `INSERT INTO egress_count SELECT agent_id, day - 8, host, 100, 0, 0, 0 FROM egress_count WHERE host = 'b.example'`,
    )
    const first = await api.get(`${path}/hosts`, { limit: '1' })
    const today = new Date().toISOString().slice(0, 10)
    const none = { requests: 0, denied: 0, bytesSent: 0, bytesReceived: 0, lastDay: today }
    assert.deepEqual(first.body.data.hosts, [{ host: 'a.example', ...none, denied: 3 }])
    const pageToken = first.body.data.next_page_token
    const next = { host: 'b.example', ...none, requests: 3, bytesSent: 10, bytesReceived: 20 }
    assert.deepEqual((await api.get(`${path}/hosts`, { limit: '1', pageToken })).body.data, {
      hosts: [next],
      next_page_token: '',
    })
    const { body } = await api.get(`${path}/hosts`, { days: '31' })
    assert.equal(body.data.hosts[1].requests, 103)
    assertError(await api.get(`${path}/hosts`, { days: '32' }), 400, /^days: /)
  })

  it('a day has at most 500 hosts by name', async () => {
    const { api, agent, path } = await withAgent()
    const { agentId } = agent
    const invented = Array.from({ length: 600 }, (_, i) => count(agentId, `h${i}.example`, { requests: 1 }))
    await report([], [count(agentId, 'evil.example', { denied: 1 })])
    await report([], invented)
    const { hosts } = (await api.get(`${path}/hosts`, { limit: '1000' })).body.data
    const all = hosts.reduce((sum: number, { requests }: HostCount) => sum + requests, 0)
    assert.deepEqual([hosts.length, hosts[0].host, all], [501, '(others)', 600])
  })
})
