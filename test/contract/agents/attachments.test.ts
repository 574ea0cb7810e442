/** Attaching secrets of the vault to an agent (contract 7). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { insertAgent, type RowAgent } from './rows.ts'

const SECRETS = '/v0/secrets'
const NEXT_RESTART = 'The agent gets them with its next restart'

const context = await openContext()
const { sql, workspace } = context
const own = await workspace()
const { api } = own
const other = await workspace()

let last = 0
const create = async (name = `PLAIN_${++last}`, client = api): Promise<string> => {
  const { status, body } = await client.post(SECRETS, { name, value: 'x' })
  assert.equal(status, 201, JSON.stringify(body))
  return body.secret.id
}
/** The ids of credentials, each created once. */
const made = new Map<string, Promise<string>>()
const credential = (name: string): Promise<string> => {
  const id = made.get(name) ?? create(name)
  made.set(name, id)
  return id
}
const attach = ({ path }: RowAgent, ...secretIds: string[]) => api.post(`${path}/secrets`, { secretIds })
const attached = async ({ path }: RowAgent): Promise<{ name: string; synced: boolean }[]> =>
  (await api.get(`${path}/secrets`)).body.secrets
const names = async (agent: RowAgent) => (await attached(agent)).map(({ name }) => name)

describe('attaching secrets', () => {
  it('an attached secret reaches the agent at its next restart', async () => {
    const agent = await insertAgent(context, own)
    const [a, b] = [await create('B_SECOND'), await create('A_FIRST')]
    const { status, headers, body } = await attach(agent, a, b)
    assert.deepEqual([status, body], [200, { success: true, attached: 2, message: NEXT_RESTART }])
    assert.equal(headers.get('operation-id'), null)
    const secrets = await attached(agent)
    assert.deepEqual(Object.keys(secrets[0] ?? {}).sort(), [
      ...['createdAt', 'hosts', 'id', 'name', 'readable', 'synced', 'updatedAt', 'via'],
    ])
    assert.deepEqual(
      secrets.map(({ name, synced }) => [name, synced]),
      [
        ['A_FIRST', false],
        ['B_SECOND', false],
      ],
    )
  })
  it('attaching a secret twice has no further effect', async () => {
    const agent = await insertAgent(context, own)
    const [a, b] = [await create(), await create()]
    await attach(agent, a)
    const { body } = await attach(agent, a, b, b.toUpperCase())
    assert.equal(body.attached, 2)
    assert.equal((await names(agent)).length, 2)
  })
  it('attaching secrets is all or nothing: 404 if one does not exist', async () => {
    const agent = await insertAgent(context, own)
    const [there, foreign] = [await create(), await create('ELSEWHERE', other.api)]
    for (const missing of [foreign, '0191f0f0-0000-7000-8000-000000000000', 'x', ''])
      assertError(await attach(agent, there, missing), 404, 'There is no such secret')
    assert.deepEqual(await names(agent), [])
  })
  it('attaching secrets is limited to 50 secrets', async () => {
    const agent = await insertAgent(context, own)
    const ids = await Promise.all(Array.from({ length: 51 }, () => create()))
    assertError(await attach(agent, ...ids), 400, 'secretIds: an agent can have at most 50 secrets')
    assert.equal((await attach(agent, ...ids.slice(0, 50))).status, 200)
    const reply = await attach(agent, ids[50] ?? '')
    assertError(reply, 400, 'secretIds: an agent can have at most 50 secrets')
  })
})

describe('detaching a secret', () => {
  it('detaching a secret removes it only from the agent', async () => {
    const agent = await insertAgent(context, own)
    const [stays, goes] = [await create('STAYS'), await create('GOES')]
    await attach(agent, stays, goes)
    const { status, body } = await api.delete(`${agent.path}/secrets/${goes}`)
    assert.deepEqual([status, body], [200, { success: true }])
    assert.deepEqual(await names(agent), ['STAYS'])
    assertError(await api.delete(`${agent.path}/secrets/${goes}`), 404, 'The agent has no such secret')
    assertError(await api.delete(`${agent.path}/secrets/x`), 404, 'The agent has no such secret')
    assert.equal((await api.delete(`${SECRETS}/${goes}`)).status, 200)
  })
})

describe('two credentials of one provider', () => {
  const CONFLICT = 'Conflicting secrets'
  const pairs: [string, string, string][] = [
    ['OPENAI_API_KEY', 'CODEX_API_KEY', 'openai'],
    ['ANTHROPIC_API_KEY', 'ANTHROPIC_OAUTH_TOKEN', 'anthropic'],
    ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'google'],
  ]
  for (const [first, second, provider] of pairs) {
    it(`two credentials of one provider (${first}, ${second}) return 409, in sequence or together`, async () => {
      const [a, b] = [await credential(first), await credential(second)]
      const agent = await insertAgent(context, own)
      assert.equal((await attach(agent, a)).status, 200)
      const reply = await attach(agent, b)
      assertError(reply, 409, CONFLICT)
      assert.equal(reply.headers.get('error-code'), 'conflicting_secrets')
      assert.equal(
        reply.headers.get('error-detail'),
        `${first} and ${second} are both credentials of ${provider}`,
      )
      const another = await insertAgent(context, own)
      assertError(await attach(another, b, a, await create()), 409, CONFLICT)
      assert.deepEqual(await names(another), [])
    })
    it(`two credentials of one provider (${first}, ${second}) attached at once leave one`, async () => {
      const [a, b] = [await credential(first), await credential(second)]
      for (let i = 0; i < 10; i++) {
        const agent = await insertAgent(context, own)
        const replies = await Promise.all([a, b, a, b].map((id) => attach(agent, id)))
        assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 200, 409, 409])
        assert.equal((await names(agent)).length, 1)
      }
    })
  }
  it('a credential may replace a detached one of the same provider', async () => {
    const [a, b] = [await credential('OPENAI_API_KEY'), await credential('CODEX_API_KEY')]
    const agent = await insertAgent(context, own)
    await attach(agent, a)
    await api.delete(`${agent.path}/secrets/${a}`)
    assert.equal((await attach(agent, b)).status, 200)
  })
})

describe('a first credential of a provider', () => {
  it("attaching an agent's first credential of a provider restarts it", async () => {
    const [openai, google] = [await credential('OPENAI_API_KEY'), await credential('GEMINI_API_KEY')]
    const agent = await insertAgent(context, own)
    const { headers, body } = await attach(agent, await create(), openai)
    const id = headers.get('operation-id')
    assert.deepEqual(body, {
      success: true,
      attached: 2,
      message: 'The agent restarts to get them',
      operation: { id, state: body.operation.state },
    })
    assert.equal(headers.get('location'), `/v0/operations/${id}`)
    const operation = (await api.get(`/v0/operations/${id}`)).body.data
    assert.deepEqual([operation.kind, operation.target], ['agent.restart', agent.agentId])
    for (const ids of [[openai], [openai, await create()]])
      assert.equal((await attach(agent, ...ids)).headers.get('operation-id'), null)
    assert.ok((await attach(agent, google)).headers.get('operation-id'))
  })
})

describe('synced', () => {
  it('the field synced shows whether the running gateway has the current value', async () => {
    const agent = await insertAgent(context, own)
    const id = await create()
    await attach(agent, id)
    const isSynced = async () => (await attached(agent))[0]?.synced
    const given = (version: number, status: string) =>
      sql('UPDATE agent SET applied_secret_versions = $2, status = $3 WHERE id = $1', [
        agent.id,
        { [id]: version },
        status,
      ])
    assert.equal(await isSynced(), false)
    await given(1, 'running')
    assert.equal(await isSynced(), true)
    await api.put(`${SECRETS}/${id}`, { value: 'new' })
    assert.equal(await isSynced(), false)
    await given(2, 'starting')
    assert.equal(await isSynced(), false)
    await given(2, 'running')
    assert.equal(await isSynced(), true)
    await given(2, 'not_running')
    assert.equal(await isSynced(), false)
  })
})

describe('a deleted agent', () => {
  it('a deleted agent releases its secrets', async () => {
    const agent = await insertAgent(context, own)
    const id = await create()
    await attach(agent, id)
    assert.equal((await api.delete(agent.path, { prefer: 'respond-async' })).status, 202)
    assert.equal((await api.delete(`${SECRETS}/${id}`)).status, 200)
    assertError(await attach(agent, await create()), 404, 'There is no such agent')
  })
})
