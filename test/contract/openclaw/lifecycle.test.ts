/**
 * The lifecycle of an agent: creating, listing, reading, restarting with another version, repairing, deleting (contract
 * 2.4, 4.3, 7, 9).
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { buildStandIn, STAND_IN } from '../../integration/agents/stand-in.ts'
import { AgentHost } from '../../support/agent-host.ts'
import { assertError, type Reply } from '../../support/client.ts'
import { ENGINE_VERSION, OLDER_ENGINE_VERSION } from '../../support/engines.ts'
import { stackKind } from '../../support/stack.ts'
import { insertAgent } from '../agents/rows.ts'
import { openContext } from '../context.ts'
import { AT_ONCE, ended, finalAnswer, live, newAgent, remove, running, useStandIn } from './context.ts'

const AGENTS = '/v0/agents'
const NO_AGENT = 'There is no such agent'
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const GATEWAY_TOKEN = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const MILLIS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const context = await openContext()
const { workspace } = context
/** A workspace whose agents use a stand-in. */
const standIns = async (plan = 'unlimited', version: string = STAND_IN.good) => {
  const own = await workspace(plan)
  await useStandIn(context, own, { version })
  return own
}
const { api } = await standIns()

describe('creating an agent', () => {
  const malformed: [object | string | null, string | RegExp][] = [
    [{}, /^name: /],
    [{ name: '' }, 'name: must not be empty'],
    [{ name: ' \t ' }, 'name: must not be empty'],
    [{ name: null }, /^name: /],
    [{ name: 7 }, /^name: /],
    ...['a\nb', 'a<b', 'a\\b'].map((name): [object, RegExp] => [{ name }, /^name: must not contain /]),
    [{ name: 'a', channels: { slack: { botToken: 'xoxb-1' } } }, 'appToken is required (string)'],
  ]
  for (const [body, message] of malformed) {
    it(`creating an agent returns 400 for ${JSON.stringify(body).slice(0, 50)}`, async () => {
      assertError(await api.post(AGENTS, body), 400, message)
    })
  }
  it('a refused agent leaves nothing behind', async () => {
    assertError(await api.post(AGENTS, { name: 'a', secretIds: ['nothing'] }), 404, /./)
    assert.deepEqual((await api.get(AGENTS)).body, { agents: [], agentLimit: null, timeCredits: null })
  })
  it('creating an agent with channels on the free plan returns 403', async () => {
    const { api: free } = await workspace('free')
    const body = { name: 'a', channels: { whatsapp: {} } }
    assertError(await free.post(AGENTS, body), 403, 'Channels are not part of the free plan')
    assert.deepEqual((await free.get(AGENTS)).body.agents, [])
  })
  it('creating an agent stores the given channels', async () => {
    const { api } = await standIns()
    const channels = { slack: { botToken: 'xoxb-1-abcd', appToken: 'xapp-1-efgh', enabled: false } }
    const reply = await api.post(AGENTS, { name: 'a', channels }, AT_ONCE)
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    const { agentId } = reply.body.agent
    // The agent is starting from the first moment.
    assert.equal((await api.get(`${AGENTS}/${agentId}`)).body.processStatus, 'starting')
    const { body } = await api.get(`${AGENTS}/${agentId}/channels`)
    assert.deepEqual([body.slack.configured, body.slack.enabled, body.telegram], [true, false, null])
    await remove(api, agentId)
  })
  it('creating an agent with two credentials of one provider returns 409', async () => {
    const ids = []
    for (const name of ['OPENAI_API_KEY', 'CODEX_API_KEY']) {
      const { body } = await api.post('/v0/secrets', { name, value: 'x' })
      ids.push(body.secret.id)
    }
    assertError(await api.post(AGENTS, { name: 'a', secretIds: ids }), 409, 'Conflicting secrets')
    assert.deepEqual((await api.get(AGENTS)).body.agents, [])
  })
  it("creating agents concurrently stops at the plan's limit", {
    timeout: 600_000,
  }, async () => {
    const { api: free } = await standIns('free')
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) => free.post(AGENTS, { name: `agent ${i}` }, AT_ONCE)),
    )
    const made = replies.filter(({ status }) => status === 201)
    assert.equal(made.length, 1)
    for (const reply of replies) if (reply.status !== 201) assertError(reply, 403, 'Agent limit reached')
    const list = (await free.get(AGENTS)).body
    assert.deepEqual([list.agents.length, list.agentLimit], [1, 1])
    // Deleting an agent makes room at once.
    const first = await free.delete(`${AGENTS}/${made[0]?.body.agent.agentId}`, AT_ONCE)
    assert.ok([200, 202].includes(first.status))
    const next = await free.post(AGENTS, { name: 'next' }, AT_ONCE)
    assert.equal(next.status, 201)
    await remove(free, next.body.agent.agentId)
  })
  it('creating an agent with the same Idempotency-Key again returns the same agent', async () => {
    const { api } = await standIns()
    const headers = { ...AT_ONCE, 'idempotency-key': 'one' }
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => api.post(AGENTS, { name: 'once' }, headers)),
    )
    const [first] = replies
    assert.deepEqual([first?.status, first?.body.agent.status], [201, 'starting'])
    const { agentId } = first?.body.agent ?? {}
    for (const reply of replies) {
      assert.equal(reply.body.agent.agentId, agentId)
      assert.equal(reply.headers.get('operation-id'), first?.headers.get('operation-id'))
      assert.equal(reply.headers.get('location'), `/v0/operations/${first?.headers.get('operation-id')}`)
    }
    assert.equal((await api.get(AGENTS)).body.agents.length, 1)
    assertError(
      await api.post(AGENTS, { name: 'other' }, headers),
      422,
      'Idempotency-Key: already used with another request',
    )
    await remove(api, agentId)
    assertError(
      await api.post(AGENTS, { name: 'once' }, headers),
      404,
      'The agent that this Idempotency-Key made was deleted',
    )
  })
})

describe('a starting agent', async () => {
  const { api } = await standIns('unlimited', STAND_IN.slow)
  let agent: Reply['body']
  before(async () => {
    const reply = await api.post(AGENTS, { name: 'n'.repeat(100) }, AT_ONCE)
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    agent = reply.body.agent
  })
  after(() => remove(api, agent.agentId))

  it('the chat of an agent is offline while it starts', async () => {
    const host = new AgentHost(context.url, agent.agentId, agent.gatewayToken)
    assert.equal(agent.status, 'starting')
    const { status, headers, body } = await host.post('/v1/chat/completions', {})
    assert.deepEqual([status, body], [503, { error: 'The agent is not ready yet' }])
    assert.ok(Number(headers['retry-after']) > 0)
    assert.equal((await host.socket('/').closed).code, 1013)
  })
  it('an agent may have a name of 100 characters at most', async () => {
    assert.equal(agent.name, 'n'.repeat(100))
    const message = 'name: must have at most 100 characters'
    assertError(await api.post(AGENTS, { name: 'n'.repeat(101) }), 400, message)
  })
})

describe('an agent', { timeout: 1_800_000 }, async () => {
  const [current, refusing] =
    stackKind === 'kubernetes' ? [ENGINE_VERSION, OLDER_ENGINE_VERSION] : [STAND_IN.good, STAND_IN.refuses]
  if (stackKind === 'real') await buildStandIn(refusing)
  const { api } = await standIns()
  const { agentId, path, record, gateway } = await newAgent(api, {
    name: ' Ada’s helper ',
    description: 'Helps.',
    vibe: 'calm',
    emoji: '🦉',
    userName: 'Ada',
  })
  const version = () => api.get(path).then(({ body }) => body.agent.agentVersion)

  /** An agent without its newest snapshot, which may be taken at any moment. */
  const unsaved = (agent: Reply['body']) => ({
    ...agent,
    lastSync: null,
    snapshotCid: null,
    fileManifest: null,
    snapshotsUpdatedAt: null,
  })

  it('an agent has exactly these fields', () => {
    const { userId, gatewayToken, createdAt, updatedAt } = record
    assert.match(agentId, /^x[a-z0-9]{7}$/)
    assert.match(userId, UUID)
    assert.match(gatewayToken, GATEWAY_TOKEN)
    for (const time of [createdAt, updatedAt]) assert.match(time, MILLIS)
    assert.deepEqual(unsaved(record), {
      agentId,
      userId,
      name: 'Ada’s helper',
      description: 'Helps.',
      vibe: 'calm',
      emoji: '🦉',
      gatewayToken,
      createdAt,
      updatedAt,
      status: 'running',
      statusReason: null,
      lastSync: null,
      snapshotCid: null,
      fileManifest: null,
      snapshotsUpdatedAt: null,
      engine: 'openclaw',
      agentVersion: current,
      forkedFrom: null,
      protocols: [],
    })
  })
  it('an agent is listed, and returned with its process', async () => {
    const { agents, ...rest } = (await api.get(AGENTS)).body
    assert.deepEqual(rest, { agentLimit: null, timeCredits: null })
    assert.deepEqual(agents.map(unsaved), [unsaved(record)])
    const { processId } = (await live(api, path)).body
    assert.match(processId, /^\d+$/)
    for (const client of [api, gateway]) {
      const { status, body } = await live(client, path)
      assert.equal(status, 200)
      const { agent, snapshots, disk, ...detail } = body
      assert.deepEqual(unsaved(agent), unsaved(record))
      assert.ok(Array.isArray(snapshots))
      const none = { skills: [], secrets: [], portForwarding: [] }
      assert.deepEqual(detail, { processStatus: 'running', processId, ...none })
      assert.ok(disk.usedBytes > 0 && disk.usedBytes < disk.limitBytes)
      assert.equal(disk.hardLimit, false, 'without a disk helper, the disk has no hard limit')
    }
  })
  it('an agent returns its status', async () => {
    for (const client of [api, gateway]) {
      const { status, body } = await live(client, `${path}/status`)
      assert.equal(status, 200)
      assert.deepEqual([body.status, body.reachable, body.gateway.state], ['running', true, 'ready'])
      assert.equal(body.scripts.build.state, 'not_configured')
      assert.ok(body.disk.usedBytes > 0 && body.disk.usedBytes < body.disk.limitBytes)
    }
  })
  it('an agent lists the versions that it can run', async () => {
    const { body } = await api.get(`${path}/available-agent-versions`)
    const { availableVersions } = body
    assert.ok(availableVersions.includes(current) && availableVersions.includes(refusing))
    assert.deepEqual(body, {
      engine: 'openclaw',
      currentVersion: current,
      availableVersions,
      availableVersionsPerEngine: { openclaw: availableVersions },
    })
    assert.deepEqual((await api.get('/v0/available-agent-versions')).body, {
      availableVersions,
      availableVersionsPerEngine: { openclaw: availableVersions },
    })
    assert.deepEqual((await api.get(`${AGENTS}/engines`)).body, {
      engines: [{ id: 'openclaw', label: 'OpenClaw' }],
    })
    assert.deepEqual((await api.get(`${path}/update`)).body, {
      currentVersion: current,
      latestVersion: ENGINE_VERSION,
      updateAvailable: current !== ENGINE_VERSION,
    })
    const another = await workspace()
    const row = await insertAgent(context, another)
    assert.deepEqual((await another.api.get(`${row.path}/update`)).body, {
      currentVersion: ENGINE_VERSION,
      latestVersion: ENGINE_VERSION,
      updateAvailable: false,
    })
  })
  for (const version of ['2020.1.1', 'latest', '../../etc', '']) {
    it(`an agent is not restarted with version ${JSON.stringify(version)}`, async () => {
      const reply = await api.post(`${path}/restart`, { version })
      assertError(reply, 400, 'Invalid version')
      assert.match(reply.headers.get('error-detail') ?? '', new RegExp(ENGINE_VERSION.replaceAll('.', '\\.')))
      if (version !== 'latest' && version !== '')
        assertError(await api.post(`${path}/update`, { tag: version }), 400, 'Invalid version')
    })
  }
  it('restarting an agent returns 400 for a version that is not a string', async () => {
    assertError(await api.post(`${path}/restart`, { version: 7 }), 400, 'Invalid version')
  })
  it('restarting an agent returns 202 at once, and starts a new process', async () => {
    const before = (await live(api, path)).body.processId
    const { startedAt } = (await live(api, `${path}/status`)).body
    const key = { 'idempotency-key': randomUUID() }
    const first = await api.post(`${path}/restart`, {}, { ...AT_ONCE, ...key })
    assert.equal(first.status, 202, JSON.stringify(first.body))
    const { success, message, operation } = first.body
    assert.deepEqual([success, message], [true, `Agent ${agentId} is being restarted`])
    assert.equal(operation.id, first.headers.get('operation-id'))
    assert.ok(['queued', 'running'].includes(operation.state))
    assert.equal((await ended(api, first)).state, 'succeeded')
    const reply = await api.post(`${path}/restart`, {}, key)
    assert.equal(reply.status, 200, `${reply.body.error}: ${reply.headers.get('error-detail')}`)
    assert.deepEqual(reply.body, {
      success: true,
      message: `Agent ${agentId} restarted`,
      previousProcessId: before,
    })
    // A process may have the id of an earlier one, and in a new container it often does.
    assert.notEqual((await live(api, `${path}/status`)).body.startedAt, startedAt)
  })
  it('an agent keeps running if an older version cannot read its newer state', async () => {
    const reply = await finalAnswer(api, `${path}/restart`, { version: refusing })
    assertError(reply, 400, 'Invalid version')
    assert.match(reply.headers.get('error-detail') ?? '', /schema/)
    await running(api, agentId)
    assert.equal(await version(), current)
  })
  it('an agent can run its scripts again', async () => {
    const reply = await finalAnswer(api, `${path}/scripts/retry`)
    assert.deepEqual([reply.status, reply.body], [200, { success: true, message: 'Scripts launched' }])
  })
  it('a deleted agent is gone at once, and permanently', async () => {
    const reply = await api.delete(path)
    assert.ok([200, 202].includes(reply.status))
    const { success, message, wasInRegistry, r2ObjectsDeleted } = reply.body
    assert.deepEqual(
      { success, message, wasInRegistry, r2ObjectsDeleted },
      { success: true, message: `Agent ${agentId} deleted`, wasInRegistry: true, r2ObjectsDeleted: 0 },
    )
    for (const suffix of ['', '/status', '/update'])
      assertError(await api.get(`${path}${suffix}`), 404, NO_AGENT)
    assertError(await api.delete(path), 404, NO_AGENT)
    assertError(await api.post(`${path}/restart`, {}), 404, NO_AGENT)
    assertError(await gateway.get(path), 401, /./)
    assert.deepEqual((await api.get(AGENTS)).body.agents, [])
    assert.equal((await ended(api, reply)).state, 'succeeded')
  })
})
