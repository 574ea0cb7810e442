/**
 * Access: every route of the document, requested by every caller without access (contract 5.3, 5.4, 7.1). New routes
 * are included automatically.
 */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { assertError, type Client, type Reply, soon } from '../../support/client.ts'
import { pathsOf } from '../../support/openapi.ts'
import { openContext } from '../context.ts'
import { AGENT_ONLY, insertAgent, type RowAgent } from './rows.ts'

const BAD_TOKEN = 'Invalid, expired or revoked API key'
const NO_AGENT = 'There is no such agent'
const NEVER = 'xzzzzzzz'

const context = await openContext()
const { anonymous, sql, workspace } = context
const own = await workspace()
const other = await workspace()

interface Target {
  method: string
  path: string
  scope: string
  /** Whether the agent's own gateway token is accepted. */
  takesGateway: boolean
}

/** Every route of an agent, of a workspace, and all others. */
const guarded: Target[] = pathsOf(anonymous.document).flatMap(([path, operations]) =>
  Object.entries(operations)
    .filter(([, { security }]) => security?.length !== 0)
    .map(([method, { description = '' }]) => ({
      method: method.toUpperCase(),
      path,
      scope: /Scope: `([^`]+)`/.exec(description)?.[1] ?? '',
      takesGateway: description.includes('own gateway token will do as well'),
    })),
)
/** Without budgets, which only an owner's `admin` changes: `who-may.processes.test.ts`. */
const ofAgents = guarded.filter(({ path, scope }) => path.includes('{agentId}') && scope !== 'admin')

const ask = (client: Client, { method, path }: Target, agentId = NEVER): Promise<Reply> =>
  client.request(method, path.replace('{agentId}', agentId).replace(/\{\w+\}/g, 'x'), {
    ...(method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS' && { json: {} }),
    headers: { prefer: 'respond-async' },
  })
const mint = async ({ path, gateway }: RowAgent): Promise<Client> =>
  anonymous.as((await gateway.post(`${path}/platform/token`, {})).body.token)
const rowOf = async ({ id }: RowAgent) => {
  const [row] = await sql('SELECT * FROM agent WHERE id = $1', [id])
  const [operations] = await sql('SELECT count(*) FROM operation WHERE target_id = $1', [id])
  return { ...row, operations: operations?.count }
}

/** One of several values, in turn. */
const nth = <T>(values: T[], index: number): T => values[index % values.length] as T

describe('agent routes', () => {
  let agent: RowAgent
  /** Callers without access to this agent, on any route. */
  const strangers: Record<string, Client> = {}

  before(async () => {
    agent = await insertAgent(context, own)
    const [sibling, foreign] = [await insertAgent(context, own), await insertAgent(context, other)]
    Object.assign(strangers, {
      'a key of another workspace': other.api,
      'the gateway token of another agent': sibling.gateway,
      'the platform token of another agent': await mint(sibling),
      'the gateway token of a foreign agent': foreign.gateway,
      'the platform token of a foreign agent': await mint(foreign),
      'an unknown gateway token': anonymous.as('11111111-1111-4111-8111-111111111111'),
      'its own id': anonymous.as(agent.id),
      garbage: anonymous.as('garbage'),
    })
    const rotated = await insertAgent(context, own)
    strangers['a platform token from before a rotation'] = await mint(rotated)
    strangers['a gateway token from before a rotation'] = rotated.gateway
    await sql('UPDATE agent SET gateway_token = gen_random_uuid() WHERE id = $1', [rotated.id])
    const revoked = await own.created()
    await sql('UPDATE api_key SET revoked_at = now() WHERE id = $1', [JSON.parse(payloadOf(revoked)).jti])
    await sql(`SELECT pg_notify('berth_api_key', '')`)
    strangers['a revoked key'] = revoked
    const expired = await own.created({ expiresAt: new Date(Date.now() + 1000) })
    await soon(
      () => expired.get('/v0/agents'),
      ({ status }) => status === 401,
    )
    strangers['an expired key'] = expired
  })

  it('there are many agent routes, and all need a scope for agents', () => {
    assert.ok(ofAgents.length > 10)
    for (const { method, path, scope } of ofAgents)
      assert.match(scope, /^org:agents:(read|write)$/, `${method} ${path}`)
    const readers = ofAgents.filter(({ scope }) => scope.endsWith('read'))
    assert.deepEqual(
      // These change nothing: git requests what it lacks with a POST.
      readers.filter(
        ({ method, path }) => method !== 'GET' && !/\/(config\/validate|git-upload-pack)$/.test(path),
      ),
      [],
    )
  })
  // All routes check the caller in one place: each of them gets some of the callers. Each kind of credential asks every
  // route in `who-may.processes.test.ts`.
  it('agent routes return 401 for every stranger, and change nothing', async () => {
    const before = await rowOf(agent)
    const names = Object.keys(strangers)
    assert.ok(ofAgents.length > 5 * names.length)
    for (const [index, target] of ofAgents.entries())
      for (const who of new Set([nth(names, index), nth(names, 3 * index + 1)])) {
        const reply = await ask(strangers[who] as Client, target, agent.agentId)
        assert.equal(reply.status, 401, `${who}: ${target.method} ${target.path}`)
        assertError(reply, 401, BAD_TOKEN)
      }
    assert.deepEqual(await rowOf(agent), before)
  })
  it("agent routes return 403 for the agent's own tokens if only the owner may call them", async () => {
    const owners = ofAgents.filter(({ takesGateway }) => !takesGateway)
    assert.ok(owners.length >= 3)
    for (const client of [agent.gateway, await mint(agent)])
      for (const target of owners)
        assertError(
          await ask(client, target, agent.agentId),
          403,
          target.path.endsWith('/secrets') ? AGENT_ONLY : "An agent's token cannot do this",
        )
  })
  it('agent routes return 404 for an unknown agent', async () => {
    const platform = await mint(agent)
    const spellings = [NEVER, 'x', agent.agentId.toUpperCase(), agent.id, '%00', '..%2f..']
    for (const [index, target] of ofAgents.entries()) {
      assertError(await ask(own.api, target, nth(spellings, index)), 404, NO_AGENT)
      assertError(await ask(nth([agent.gateway, platform], index), target), 404, NO_AGENT)
    }
  })
  it('a deleted agent returns 404 to its owner, and its tokens get 401', async () => {
    const gone = await insertAgent(context, own)
    const platform = await mint(gone)
    await sql('UPDATE agent SET deleted_at = now() WHERE id = $1', [gone.id])
    const [known, unknown] = [
      [own.api, other.api, agent.gateway],
      [gone.gateway, platform],
    ]
    for (const [index, target] of ofAgents.entries()) {
      assertError(await ask(nth(known, index), target, gone.agentId), 404, NO_AGENT)
      assertError(await ask(nth(unknown, index), target, gone.agentId), 401, BAD_TOKEN)
    }
  })
  it("agent routes accept the agent's own tokens if the document says so", async () => {
    const readable = ofAgents.filter(({ method, takesGateway }) => method === 'GET' && takesGateway)
    const clients = [agent.gateway, await mint(agent)]
    for (const target of readable)
      for (const client of clients) {
        const { headers } = await fetchOnly(client, target, agent.agentId)
        const code = headers.get('error-code')
        assert.ok(
          !['bad_token', 'forbidden', 'missing_scope', 'owner_only', 'agent_only'].includes(code ?? ''),
        )
      }
  })
})

describe('other routes', () => {
  it('operation routes show an agent its own operations, and no others', async () => {
    const [agent, sibling] = [await insertAgent(context, own), await insertAgent(context, own)]
    const { headers } = await own.api.post(`${agent.path}/restart`, undefined, { prefer: 'respond-async' })
    const path = `/v0/operations/${headers.get('operation-id')}`
    const { status, body } = await agent.gateway.get(path)
    assert.deepEqual([status, body.data.target], [200, agent.agentId])
    assertError(await sibling.gateway.get(path), 404, 'There is no such operation')
    assertError(await agent.gateway.delete(path), 403, /good for that agent only/)
  })
})

/** The claims of a client's key, as text. */
const payloadOf = ({ key = '' }: Client) => Buffer.from(key.split('.')[1] ?? '', 'base64url').toString()

/** Skips the check against the document: an agent without a container cannot respond for its engine. */
const fetchOnly = (client: Client, { method, path }: Target, agentId: string) =>
  fetch(`${client.url}${path.replace('{agentId}', agentId).replace(/\{\w+\}/g, 'x')}`, {
    method,
    headers: { authorization: `Bearer ${client.key}` },
    signal: AbortSignal.timeout(60_000),
  })
