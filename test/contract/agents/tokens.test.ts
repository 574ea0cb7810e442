/** Gateway and platform tokens, whoami and metadata (contract 5.4). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { decodeJwt, SignJWT, UnsecuredJWT } from 'jose'
import { loadSigningKey } from '../../../src/lib/signing-keys.ts'
import { assertError, type Client } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { insertAgent, type RowAgent } from './rows.ts'

const BAD_TOKEN = 'Invalid, expired or revoked API key'
const UUID_4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const context = await openContext()
const { anonymous, env, sql, workspace } = context
const own = await workspace()
const { api } = own

const gatewayToken = ({ path }: RowAgent, client = api) => client.get(`${path}/gateway-token`)
const rotate = ({ path }: RowAgent, headers?: Record<string, string>) =>
  api.post(`${path}/gateway-token/rotate`, {}, headers)
const whoami = ({ path }: RowAgent, client: Client) => client.get(`${path}/platform/whoami`)
const platformToken = async ({ path, gateway }: RowAgent, client = gateway): Promise<string> => {
  const { status, body } = await client.post(`${path}/platform/token`, {})
  assert.equal(status, 200, JSON.stringify(body))
  return body.token
}

describe('the gateway token', () => {
  it("the gateway token is returned with the addresses of the agent's own host", async () => {
    const agent = await insertAgent(context, own)
    const { status, body } = await gatewayToken(agent)
    assert.equal(status, 200)
    const host = `${agent.agentId}.agents.localhost:${new URL(anonymous.url).port}`
    assert.deepEqual(body, { token: agent.gatewayToken, wsUrl: `ws://${host}`, baseUrl: `http://${host}` })
  })
  it("the agent's record shows the gateway token only to callers who may write", async () => {
    const { path, gatewayToken, gateway } = await insertAgent(context, own)
    const readers = [await own.keyed('org:agents:read'), await own.keyed('org:read')]
    for (const client of [api, gateway])
      assert.equal((await client.get(path)).body.agent.gatewayToken, gatewayToken)
    for (const client of readers) {
      assert.equal((await client.get(path)).body.agent.gatewayToken, null)
      assert.ok(!JSON.stringify((await client.get('/v0/agents')).body).includes(gatewayToken))
    }
    // The platform token expires within the hour; the gateway token does not.
    const platform = anonymous.as((await gateway.post(`${path}/platform/token`, {})).body.token)
    assert.equal((await platform.get(path)).body.agent.gatewayToken, null)
    const renamed = await platform.request('PATCH', `${path}/platform/metadata`, { json: { vibe: 'calm' } })
    assert.equal(renamed.body.agent.gatewayToken, null)
  })
  it('the gateway token is accepted in any case, like a UUID', async () => {
    const agent = await insertAgent(context, own)
    assert.equal((await whoami(agent, anonymous.as(agent.gatewayToken.toUpperCase()))).status, 200)
  })
})

describe('rotating the gateway token', () => {
  it('rotating the gateway token revokes the old one and its platform tokens at once', async () => {
    const agent = await insertAgent(context, own)
    const platform = anonymous.as(await platformToken(agent))
    assert.equal((await whoami(agent, platform)).status, 200)
    const { status, headers, body } = await rotate(agent)
    assert.equal(status, 200)
    assert.match(body.token, UUID_4)
    assert.notEqual(body.token, agent.gatewayToken)
    assert.deepEqual(body, (await gatewayToken(agent)).body)
    for (const old of [agent.gateway, platform]) assertError(await whoami(agent, old), 401, BAD_TOKEN)
    assert.equal((await whoami(agent, anonymous.as(body.token))).status, 200)
    const { data } = (await api.get(headers.get('location') ?? '')).body
    assert.deepEqual(
      [data.id, data.kind, data.target],
      [headers.get('operation-id'), 'agent.restart', agent.agentId],
    )
  })
  it('concurrent rotations of the gateway token leave one valid token', async () => {
    const agent = await insertAgent(context, own)
    const replies = await Promise.all(Array.from({ length: 10 }, () => rotate(agent)))
    const tokens = replies.map(({ status, body }) => {
      assert.equal(status, 200)
      return body.token as string
    })
    assert.equal(new Set(tokens).size, tokens.length)
    const good = (await gatewayToken(agent)).body.token
    assert.ok(tokens.includes(good))
    for (const token of [agent.gatewayToken, ...tokens]) {
      const reply = await whoami(agent, anonymous.as(token))
      assert.equal(reply.status, token === good ? 200 : 401)
    }
  })
  it('repeated rotations with one Idempotency-Key rotate once', async () => {
    const [agent, another] = [await insertAgent(context, own), await insertAgent(context, own)]
    const key = { 'idempotency-key': `rotate-${agent.agentId}` }
    const replies = await Promise.all(Array.from({ length: 5 }, () => rotate(agent, key)))
    const [first] = replies
    for (const { body, headers } of [...replies, await rotate(agent, key)]) {
      assert.deepEqual(body, first?.body)
      assert.equal(headers.get('operation-id'), first?.headers.get('operation-id'))
    }
    const mismatch = 'Idempotency-Key: already used with another request'
    assertError(await rotate(another, key), 422, mismatch)
    assert.equal((await gatewayToken(another)).body.token, another.gatewayToken)
  })
})

describe('platform tokens', () => {
  const AUDIENCE = 'berth:platform'
  const key = loadSigningKey(env.JWT_KEY, env.BERTH_DATA_DIR ?? '')
  const forge = (claims: object, seconds: number, signedBy = key, alg = 'HS256') =>
    new SignJWT({ ...claims })
      .setProtectedHeader({ alg, typ: 'JWT' })
      .setIssuedAt(Math.floor(Date.now() / 1000) - 7200)
      .setExpirationTime(Math.floor(Date.now() / 1000) + seconds)
      .sign(signedBy)

  it('a platform token is a JWT for one hour, and contains no secrets', async () => {
    const agent = await insertAgent(context, own)
    const before = Math.floor(Date.now() / 1000)
    const token = await platformToken(agent)
    const { iat = 0, exp = 0, sub } = decodeJwt(token)
    assert.deepEqual([exp - iat, sub], [3600, agent.agentId])
    assert.ok(before <= iat && iat <= Date.now() / 1000, `${iat}`)
    const parts = token.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'))
    assert.ok(!parts.join().includes(agent.gatewayToken))
  })
  it('an owner with write access may also create a platform token', async () => {
    const agent = await insertAgent(context, own)
    const token = await platformToken(agent, api)
    assert.equal((await whoami(agent, anonymous.as(token))).body.tokenKind, 'platform')
    const reader = await own.keyed('org:agents:read')
    const refused = await reader.post(`${agent.path}/platform/token`, {})
    assertError(refused, 403, 'Missing scope: org:agents:write')
  })
  it('a platform token expires after an hour', async () => {
    const agent = await insertAgent(context, own)
    const claims = decodeJwt(await platformToken(agent))
    assert.equal((await whoami(agent, anonymous.as(await forge(claims, 60)))).status, 200)
    assertError(await whoami(agent, anonymous.as(await forge(claims, -1))), 401, BAD_TOKEN)
  })
  it('a forged platform token is refused', async () => {
    const agent = await insertAgent(context, own)
    const stranger = await insertAgent(context, own)
    const claims = decodeJwt(await platformToken(agent))
    const { mark: _, ...unmarked } = claims
    const forged = {
      'signed by another key': await forge(claims, 60, new Uint8Array(32)),
      'signed with another algorithm': await forge(claims, 60, key, 'HS512'),
      'not signed': new UnsecuredJWT(claims).setAudience(AUDIENCE).encode(),
      "with another agent's mark": await forge({ ...claims, sub: stranger.agentId }, 60),
      'without a mark': await forge(unmarked, 60),
      'for another audience': await forge({ ...claims, aud: 'other' }, 60),
      'for an unknown agent': await forge({ ...claims, sub: 'x' }, 60),
    }
    for (const [what, token] of Object.entries(forged))
      for (const target of [agent, stranger]) {
        const reply = await whoami(target, anonymous.as(token))
        assert.equal(reply.status, 401, what)
      }
  })
})

describe('whoami', () => {
  it('whoami returns the agent and the kind of token', async () => {
    const agent = await insertAgent(context, own, 'Wer bin ich')
    const [row] = await sql('SELECT user_id FROM agent WHERE id = $1', [agent.id])
    const identity = {
      agentId: agent.agentId,
      name: 'Wer bin ich',
      status: 'not_running',
      userId: row?.user_id,
      workspaceId: own.id,
    }
    const kinds = { key: api, gateway: agent.gateway, platform: anonymous.as(await platformToken(agent)) }
    for (const [tokenKind, client] of Object.entries(kinds)) {
      const { status, body } = await whoami(agent, client)
      assert.deepEqual([status, body], [200, { ...identity, tokenKind }])
    }
  })
})

describe('metadata', () => {
  const change = ({ path }: RowAgent, json: unknown, client = api) =>
    client.request('PATCH', `${path}/platform/metadata`, { json })

  it('a change of agent metadata applies only the given fields', async () => {
    const agent = await insertAgent(context, own)
    const unset = { description: null, vibe: null, emoji: null, protocols: [] }
    const expected: Record<string, unknown> = { name: 'Row', ...unset }
    for (const given of [
      { name: ' Anna ', vibe: 'calm' },
      { emoji: '📚', description: 'd'.repeat(10_000) },
      { vibe: null, protocols: ['mcp', 'a2a'] },
      { description: '' },
      { name: 'Berta', description: null, vibe: 'loud', emoji: null },
    ]) {
      const { status, body } = await change(agent, given, agent.gateway)
      assert.equal(status, 200, JSON.stringify(body))
      Object.assign(expected, given, given.name && { name: given.name.trim() })
      const { name, description, vibe, emoji, protocols, gatewayToken } = body.agent
      assert.deepEqual({ name, description, vibe, emoji, protocols }, expected)
      assert.deepEqual(body, { success: true, agent: (await api.get(agent.path)).body.agent })
      assert.equal(gatewayToken, agent.gatewayToken)
    }
  })
  it('concurrent changes of agent metadata are all kept', async () => {
    const agent = await insertAgent(context, own)
    for (let i = 0; i < 10; i++) {
      const values = { name: `n${i}`, description: `d${i}`, vibe: `v${i}`, emoji: `e${i}` }
      await Promise.all(Object.entries(values).map(([field, value]) => change(agent, { [field]: value })))
      const { name, description, vibe, emoji } = (await api.get(agent.path)).body.agent
      assert.deepEqual({ name, description, vibe, emoji }, values)
    }
  })
})
