/** `/mcp`: who may use it, which tools a key sees, and what their results and errors are. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { connectMcp, REVISIONS, textOf } from '../support/mcp.ts'
import { until } from '../support/processes.ts'
import { insertAgent } from './agents/rows.ts'
import { missingCid, openContext } from './context.ts'

const context = await openContext()
const { url, workspace } = context
const own = await workspace()
const agent = await insertAgent(context, own)
const mcp = await connectMcp(url, own.api.key)

const post = (body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${own.api.key}`,
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
const call = (name: string, args: Record<string, unknown> = {}, client = mcp) =>
  client.callTool({ name, arguments: args })
const namesOf = async (key: string | undefined) =>
  (await (await connectMcp(url, key)).listTools()).tools.map(({ name }) => name)

describe('/mcp', () => {
  it('/mcp refuses a request without a valid key', async () => {
    for (const authorization of ['', 'Bearer x']) {
      const response = await post(LIST, { authorization })
      assert.equal(response.status, 401)
      assert.match(response.headers.get('www-authenticate') ?? '', /^Bearer/)
    }
  })
  it("/mcp refuses an agent's own tokens", async () => {
    const response = await post(LIST, { authorization: `Bearer ${agent.gatewayToken}` })
    assert.equal(response.status, 403)
  })
  it('/mcp refuses pages of other sites, by whatever name they reach it', async () => {
    const { host } = new URL(url)
    assert.equal((await post(LIST, { origin: `http://${host}` })).status, 200)
    for (const origin of ['https://elsewhere.invalid', 'null', 'http://127.0.0.1:1'])
      assert.equal((await post(LIST, { origin })).status, 403, origin)
  })
  it('/mcp returns 400, 405 or 415 for anything except a message of the protocol', async () => {
    assert.equal((await post('{')).status, 400)
    assert.equal((await post([LIST, LIST])).status, 400)
    assert.equal((await post({ ...LIST, method: 7 })).status, 400)
    assert.equal((await post(LIST, { 'content-type': 'text/plain' })).status, 415)
    for (const method of ['GET', 'DELETE']) {
      const response = await fetch(`${url}/mcp`, { method })
      assert.deepEqual([response.status, response.headers.get('allow')], [405, 'POST'])
    }
  })
  it('/mcp counts a call once towards the rate limit, and the audit has its route', async () => {
    const { api } = await workspace('free')
    const before = (await api.get('/v3/files/public')).headers.get('ratelimit-remaining')
    const limited = await connectMcp(url, api.key)
    const first = (await api.get('/v3/files/public')).headers.get('ratelimit-remaining')
    const result = await call('files_upload', { name: 'notes.md', text: 'from a model' }, limited)
    const second = (await api.get('/v3/files/public')).headers.get('ratelimit-remaining')
    // The upload, and the read after it.
    assert.equal(Number(first) - Number(second), 2, `${before}`)
    const { data } = result.structuredContent as { data: { id: string } }
    const [entry] = (await api.get('/v0/audit', { action: 'uploadFile' })).body.data.entries
    assert.equal(entry.action, 'uploadFile')
    assert.ok(JSON.stringify(entry).includes(data.id))
  })
})

describe('tools', () => {
  for (const revision of REVISIONS)
    it(`a client of revision ${revision} lists the tools, and calls one`, async () => {
      const client = await connectMcp(url, own.api.key, revision)
      const { tools } = await client.listTools()
      assert.equal(tools.length, 30)
      const result = await call('agents_list', {}, client)
      const { agents } = result.structuredContent as { agents: { agentId: string }[] }
      assert.deepEqual(
        agents.map(({ agentId }) => agentId),
        [agent.agentId],
      )
      assert.deepEqual(JSON.parse(textOf(result)), result.structuredContent)
    })
  it('a key sees the tools that its scopes allow, and a viewer those that change nothing', async () => {
    assert.deepEqual(await namesOf((await own.keyed('org:files:read')).key), [
      ...['files_search', 'files_list_pins', 'operations_list', 'operations_wait'],
    ])
    const all = await namesOf(own.api.key)
    const { name: user } = await own.member('viewer')
    const seen = await namesOf((await own.created({ user })).key)
    const readOnly = (await mcp.listTools()).tools.filter((tool) => tool.annotations?.readOnlyHint)
    assert.deepEqual(
      seen,
      readOnly.map(({ name }) => name),
    )
    assert.ok(all.length > seen.length)
  })
  it('a call that the key does not allow returns the message of the API', async () => {
    const client = await connectMcp(url, (await own.keyed('org:files:read')).key)
    const result = await call('agents_list', {}, client)
    assert.ok(result.isError)
    assert.equal(textOf(result), 'Missing scope: org:agents:read')
  })
  it('an agent of another workspace is refused like in the API', async () => {
    const other = await connectMcp(url, (await workspace()).api.key)
    const { body } = await (await workspace()).api.get(`/v0/agents/${agent.agentId}`)
    assert.equal(textOf(await call('agents_get', { agentId: agent.agentId }, other)), body.error)
  })
  it('results never contain the gateway token of an agent', async () => {
    for (const [name, args] of [
      ['agents_list', {}],
      ['agents_get', { agentId: agent.agentId }],
    ] as const) {
      const text = textOf(await call(name, args))
      assert.ok(text.includes(agent.agentId))
      assert.ok(!text.includes(agent.gatewayToken) && !text.includes('gatewayToken'), name)
    }
  })
  it('wrong arguments return a message that names them, and never an internal error', async () => {
    const said = async (name: string, args: Record<string, unknown>) => textOf(await call(name, args))
    assert.equal(await said('files_search', { network: 'public', limit: 0 }), 'limit: must be at least 1')
    assert.equal(await said('files_search', {}), 'network: required')
    assert.equal(await said('agents_list', { all: true }), 'all: there is no such argument')
    assert.equal(await said('files_upload', { name: 'a' }), 'text: give either text or base64')
    assert.equal(
      await said('files_upload', { name: 'a', base64: '?' }),
      'base64: must be base64 with padding',
    )
    assert.equal(
      await said('files_pin', { cid: 'x', waitSeconds: -1 }),
      'waitSeconds: must be a whole number up to 300',
    )
    const { tools } = await mcp.listTools()
    const values = [undefined, 7, '', '../..\0', [{}]]
    for (const { name, inputSchema } of tools)
      for (const value of values) {
        const fields = Object.keys(inputSchema.properties ?? {}).filter((field) => field !== 'waitSeconds')
        const args = Object.fromEntries(fields.map((field) => [field, value]))
        const result = await call(name, { ...args, ...(name.endsWith('_wait') && { waitSeconds: 0 }) })
        assert.doesNotMatch(
          textOf(result),
          /Internal server error|failed with 5/,
          `${name} ${JSON.stringify(value)}`,
        )
      }
    await assert.rejects(call('no_such_tool'), /There is no tool no_such_tool/)
  })
  it('files are uploaded, searched, linked and deleted', async () => {
    const name = 'poem.txt'
    for (const network of ['public', 'private']) {
      const uploaded = await call('files_upload', {
        name,
        network,
        base64: btoa(`a poem, ${network}`),
        keyvalues: { by: 'me' },
      })
      const { data } = uploaded.structuredContent as { data: { id: string; cid: string } }
      const found = await call('files_search', { network, name: 'poem', keyvalues: { by: 'me' } })
      const { files } = (found.structuredContent as { data: { files: { id: string }[] } }).data
      assert.deepEqual(
        files.map(({ id }) => id),
        [data.id],
      )
      const linked = await call('files_link', { network, id: data.id })
      assert.ok(textOf(linked).includes(data.cid), textOf(linked))
      const deleted = await call('files_delete', { network, id: data.id })
      assert.ok(!deleted.isError, textOf(deleted))
      assert.equal(textOf(await call('files_link', { network, id: data.id })), 'There is no such file')
    }
  })
  it('a waiting call reports progress, and its cancellation leaves the operation running', async () => {
    const cid = `${await missingCid()}`
    const reports: string[] = []
    const stop = new AbortController()
    const waiting = mcp.callTool(
      { name: 'files_pin', arguments: { cid, waitSeconds: 300 } },
      { signal: stop.signal, onprogress: ({ message }) => reports.push(message ?? '') },
    )
    await Promise.race([until('a report', () => reports.length > 0, 60_000), waiting])
    assert.match(reports[0] ?? '', /^(running|queued): /)
    stop.abort()
    await assert.rejects(waiting)
    const { operations } = (await own.api.get('/v0/operations', { kind: 'pin.add' })).body.data
    assert.ok(['running', 'queued'].includes(operations[0].state))
    const cancelled = await call('operations_cancel', { id: operations[0].id })
    assert.ok(!cancelled.isError, textOf(cancelled))
    const ended = await call('operations_wait', { id: operations[0].id })
    assert.equal((ended.structuredContent as { data: { state: string } }).data.state, 'canceled')
  })
  it('a call with the same idempotency key starts nothing new', async () => {
    const pin = async () => {
      const result = await call('files_pin', { cid, waitSeconds: 0, idempotencyKey: 'once' })
      return (result.structuredContent as { operation: { id: string } }).operation.id
    }
    const cid = `${await missingCid()}`
    const id = await pin()
    assert.equal(await pin(), id)
    await call('operations_cancel', { id })
  })
  it('a call ends when its key is revoked', async () => {
    const { key } = await own.created()
    const started = await call('files_pin', { cid: `${await missingCid()}`, waitSeconds: 0 })
    const { id } = (started.structuredContent as { operation: { id: string } }).operation
    const { keys } = (await own.api.get(`/v0/workspaces/${own.id}/keys`)).body.data
    const params = {
      name: 'operations_wait',
      arguments: { id, waitSeconds: 300 },
      _meta: { progressToken: 1 },
    }
    const headers = { authorization: `Bearer ${key}` }
    const response = await post({ ...LIST, method: 'tools/call', params }, headers)
    const reader = response.body?.getReader()
    // The first report.
    await reader?.read()
    await own.api.delete(`/v0/workspaces/${own.id}/keys/${keys[0].id}`)
    const end = async () => {
      while (!(await reader?.read())?.done);
    }
    await assert.rejects(end())
    await call('operations_cancel', { id })
  })
})

describe('resources', () => {
  it('logs of agents are listed, and records of files are read', async () => {
    const { resources } = await mcp.listResources()
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      [`berth://agents/${agent.agentId}/log`],
    )
    const { data } = (await call('files_upload', { name: 'r.txt', text: 'r' })).structuredContent as {
      data: { id: string; cid: string }
    }
    const { contents } = await mcp.readResource({ uri: `berth://files/private/${data.id}` })
    assert.ok(JSON.stringify(contents).includes(data.cid))
    for (const uri of [
      'berth://files/private/x',
      'berth://agents/%zz/log',
      'berth://nothing',
      'file:///etc/passwd',
    ])
      await assert.rejects(mcp.readResource({ uri }), /Resource not found/, uri)
    await assert.rejects(mcp.readResource({ uri: `berth://agents/${agent.agentId}/log` }), /agent is not/i)
  })
})
