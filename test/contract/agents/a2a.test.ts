/** A2A without a running engine: the card, who may talk to an agent, and the errors of the protocol. */
import assert from 'node:assert/strict'
import { randomUUID, type webcrypto } from 'node:crypto'
import { describe, it } from 'node:test'
import { verifyAgentCardSignature } from '@a2a-js/sdk'
import { base64url, flattenedVerify, importJWK, type JWK } from 'jose'
import { AgentHost } from '../../support/agent-host.ts'
import { assertError, type Client, type Reply } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { insertAgent } from './rows.ts'

const context = await openContext()
const { anonymous, url, sql } = context
const own = await context.workspace()
const { api } = own
/** Where Berth says that it is reached. */
const origin: string = context.env.PUBLIC_URL ?? `http://localhost:${new URL(url).port}`
const V1 = { 'a2a-version': '1.0' }

async function offering(...protocols: string[]) {
  const agent = await insertAgent(context, own)
  assert.equal(
    (await api.request('PATCH', `${agent.path}/platform/metadata`, { json: { protocols } })).status,
    200,
  )
  return agent
}
const agent = await offering('a2a')
const cardPath = `${agent.path}/.well-known/agent-card.json`
const { keys } = (await anonymous.get('/.well-known/jwks.json')).body
const keyOf = async (kid: string) =>
  importJWK(
    keys.find((key: JWK) => key.kid === kid),
    'ES256',
  ) as Promise<webcrypto.CryptoKey>

const call = (
  method: string,
  params: unknown = {},
  headers: Record<string, string> = V1,
  client: Client = api,
): Promise<Reply> => client.post(`${agent.path}/a2a`, { jsonrpc: '2.0', id: 7, method, params }, headers)

/** Asserts an error of the protocol. */
function assertRefused({ status, body }: Reply, code: number, message: RegExp) {
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual([body.jsonrpc, body.id, body.error?.code], ['2.0', 7, code], JSON.stringify(body))
  assert.match(body.error.message, message)
}
const message = (more: object = {}) => ({
  message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hello' }], ...more },
})

describe('an agent card', () => {
  it('an agent card is public, and names both versions', async () => {
    const { status, headers, body } = await anonymous.get(cardPath, {}, V1)
    assert.equal(status, 200)
    assert.match(headers.get('vary') ?? '', /A2A-Version/)
    assert.equal(headers.get('access-control-allow-origin'), '*')
    const { supportedInterfaces, securityRequirements, protocolVersion } = body
    assert.deepEqual(
      supportedInterfaces,
      ['1.0', '0.3'].map((version) => ({
        url: `${origin}${agent.path}/a2a`,
        protocolBinding: 'JSONRPC',
        protocolVersion: version,
      })),
    )
    assert.deepEqual(securityRequirements, [{ schemes: { bearer: { list: ['org:agents:write'] } } }])
    assert.equal(protocolVersion, undefined)
    const old = (await anonymous.get(cardPath)).body
    assert.deepEqual(
      [old.protocolVersion, old.url, old.preferredTransport],
      ['0.3.0', `${origin}${agent.path}/a2a`, 'JSONRPC'],
    )
  })
  it('an agent card on the agent’s own host names that host', async () => {
    const host = new AgentHost(url, agent.agentId)
    const { status, body } = await host.get('/.well-known/agent-card.json', V1)
    assert.equal(status, 200)
    assert.equal(body.supportedInterfaces[0].url, `http://${host.host}/a2a`)
  })
  it('the signature of an agent card is verified by the official library, and covers every field', async () => {
    const { body } = await anonymous.get(cardPath, {}, V1)
    const verify = verifyAgentCardSignature((kid) => keyOf(kid))
    await verify(body)
    await assert.rejects(verify({ ...body, name: 'Another' }))
    const [header] = body.signatures.map((one: { protected: string }) =>
      JSON.parse(String(Buffer.from(one.protected, 'base64url'))),
    )
    assert.equal(header.jku, `${origin}/.well-known/jwks.json`)
  })
  it('the signature of a card of 0.3 covers the card as it is sent', async () => {
    const { signatures, ...card } = (await anonymous.get(cardPath)).body
    const payload = base64url.encode(JSON.stringify(sorted(card)))
    const key = await keyOf(keys[0].kid)
    await flattenedVerify({ ...signatures[0], payload }, key)
    await assert.rejects(
      flattenedVerify(
        {
          ...signatures[0],
          payload: base64url.encode(JSON.stringify(sorted({ ...card, url: 'https://example.com' }))),
        },
        key,
      ),
    )
  })
  it('an agent that does not offer A2A has no card, and takes no messages', async () => {
    for (const other of [await offering(), await offering('mcp')]) {
      assertError(
        await anonymous.get(`${other.path}/.well-known/agent-card.json`),
        404,
        'There is no such agent',
      )
      assertError(await api.post(`${other.path}/a2a`, {}), 404, 'The agent does not offer A2A')
      const host = new AgentHost(url, other.agentId, other.gatewayToken)
      for (const path of ['/.well-known/agent-card.json', '/a2a'])
        assert.equal((await host.get(path)).status, 404, path)
    }
    assertError(
      await anonymous.get('/v0/agents/x0000000/.well-known/agent-card.json'),
      404,
      'There is no such agent',
    )
  })
})

describe('a request by A2A', () => {
  it('a request by A2A needs a credential that may chat with the agent', async () => {
    const list = (client: Client) => call('ListTasks', {}, V1, client)
    assert.equal((await list(anonymous)).status, 401)
    assert.equal((await list(await own.keyed('org:agents:read'))).status, 403)
    assert.equal((await list((await context.workspace()).api)).status, 401)
    assert.equal((await list((await offering('a2a')).gateway)).status, 401)
    for (const client of [api, agent.gateway]) assert.equal((await list(client)).status, 200)
    const host = (token?: string) =>
      new AgentHost(url, agent.agentId, token).post(
        '/a2a',
        { jsonrpc: '2.0', id: 7, method: 'ListTasks', params: {} },
        V1,
      )
    assert.equal((await host()).status, 401)
    assert.equal((await host(agent.gatewayToken)).body.result.totalSize, 0)
  })
  it('a message to an agent that does not run is an error that says so, and leaves no task', async () => {
    assertRefused(await call('SendMessage', message()), -32603, /^The agent is not running/)
    assertRefused(await call('SendStreamingMessage', message()), -32603, /^The agent is not running/)
    const older = {
      message: { ...message().message, role: 'user', parts: [{ kind: 'text', text: 'hello' }] },
    }
    assertRefused(await call('message/send', older, {}), -32603, /^The agent is not running/)
    assert.equal((await call('ListTasks')).body.result.totalSize, 0)
  })
  it('a wrong request by A2A is refused in the protocol’s own words', async () => {
    assertRefused(await call('Nothing'), -32601, /./)
    assertRefused(await call('tasks/get', { id: randomUUID() }, {}), -32001, /There is no task/)
    assertRefused(await call('ListTasks', {}, { 'a2a-version': '2.0' }), -32009, /speaks A2A 1\.0 and 0\.3/)
    for (const id of [randomUUID(), 'x', '']) {
      assertRefused(await call('GetTask', { id }), -32001, /There is no task/)
      assertRefused(await call('CancelTask', { id }), -32001, /There is no task/)
      assertRefused(await call('SubscribeToTask', { id }), -32001, /There is no task/)
    }
    const send = (more: object) => call('SendMessage', message(more))
    assertRefused(await send({ taskId: randomUUID() }), -32001, /There is no task/)
    assertRefused(await send({ contextId: 'mine' }), -32602, /^contextId: must be a UUID/)
    assertRefused(await send({ parts: [] }), -32602, /must have a text/)
    assertRefused(await send({ parts: [{ text: 'é'.repeat(32_769) }] }), -32602, /at most 65536 bytes/)
    assertRefused(await send({ parts: [{ url: 'https://example.com/a.pdf' }] }), -32005, /no files/)
    const configuration = { taskPushNotificationConfig: { url: 'https://example.com' } }
    assertRefused(await call('SendMessage', { ...message(), configuration }), -32003, /no push/)
    assertRefused(await call('GetExtendedAgentCard'), -32007, /public card/)
    assertRefused(await call('ListTasks', { pageSize: 101 }), -32602, /pageSize/)
    assertRefused(await call('ListTasks', { pageToken: 'x' }), -32602, /pageToken/)
    assertRefused(await call('ListTasks', { statusTimestampAfter: 'x' }), -32602, /statusTimestampAfter/)
  })
  it('tasks of one agent are listed in pages, the latest change first', async () => {
    const other = await offering('a2a')
    const [contextId, ids] = [randomUUID(), [1, 2, 3].map(() => randomUUID())]
    for (const [index, id] of ids.entries())
      await sql(
        `INSERT INTO a2a_task (id, agent_id, context_id, state, reason, changed_at)
         VALUES ($1, $2, $3, $4, $5, now() - $6 * interval '1 hour')`,
        [
          id,
          other.id,
          index < 2 ? contextId : randomUUID(),
          ['failed', 'canceled', 'failed'][index],
          'why',
          index,
        ],
      )
    const list = async (params: object) =>
      (await api.post(`${other.path}/a2a`, { jsonrpc: '2.0', id: 7, method: 'ListTasks', params }, V1)).body
        .result
    const idsOf = ({ tasks }: { tasks: { id: string }[] }) => tasks.map(({ id }) => id)
    const first = await list({ pageSize: 2 })
    assert.deepEqual([idsOf(first), first.totalSize, first.pageSize], [ids.slice(0, 2), 3, 2])
    const second = await list({ pageSize: 2, pageToken: first.nextPageToken })
    assert.deepEqual([idsOf(second), second.nextPageToken], [ids.slice(2), ''])
    assert.deepEqual(idsOf(await list({ contextId })), ids.slice(0, 2))
    assert.deepEqual(idsOf(await list({ status: 'TASK_STATE_FAILED' })), [ids[0], ids[2]])
    assert.deepEqual(idsOf(await list({ status: 'TASK_STATE_REJECTED' })), [])
    const hourAgo = new Date(Date.now() - 1_800_000).toISOString()
    assert.deepEqual(idsOf(await list({ statusTimestampAfter: hourAgo })), [ids[0]])
    const { status } = first.tasks[0]
    assert.deepEqual([status.state, status.message.parts[0].text], ['TASK_STATE_FAILED', 'why'])
    assertRefused(await call('GetTask', { id: ids[0] }), -32001, /There is no task/)
    const canceled = await api.post(
      `${other.path}/a2a`,
      { jsonrpc: '2.0', id: 7, method: 'CancelTask', params: { id: ids[1] } },
      V1,
    )
    assertRefused(canceled, -32002, /The task is canceled/)
  })
})

/** The members of every object in order, which is all that RFC 8785 changes here. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort()
      .map(([name, one]) => [name, sorted(one)]),
  )
}
