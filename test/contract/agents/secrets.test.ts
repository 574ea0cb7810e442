/** The vault of a workspace (contract 4.3, 7); `attachments.test.ts` tests what agents get from it. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError, type Client } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { insertAgent } from './rows.ts'

const SECRETS = '/v0/secrets'
const NOT_FOUND = 'There is no such secret'
const VALUE = 'plain-value-that-nobody-sees'

const context = await openContext()
const { sql, workspace } = context
const own = await workspace()
const { api } = own
const other = await workspace()

const create = async (name: string, client = api, more: object = {}) => {
  const { status, body } = await client.post(SECRETS, { name, value: VALUE, ...more })
  assert.equal(status, 201, JSON.stringify(body))
  return body.secret
}
const list = async (client = api) => (await client.get(SECRETS)).body
const find = async (id: string, client = api) =>
  (await list(client)).secrets.find((secret: { id: string }) => secret.id === id)

describe('a secret', () => {
  it('a secret is created with exactly these fields, and listed with its agents', async () => {
    const { status, body } = await api.post(SECRETS, { name: 'FIRST', value: VALUE })
    assert.equal(status, 201)
    const { id, userId, createdAt, updatedAt } = body.secret
    const more = { type: 'secret', hosts: null, via: null, readable: true }
    const secret = { id, userId, name: 'FIRST', ...more, createdAt, updatedAt }
    assert.deepEqual(body, { success: true, secret })
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/)
    assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000)
    assert.deepEqual(await find(id), { ...secret, agents: [] })
  })
  it('secrets are listed newest first', async () => {
    const names = ['ORDER_A', 'ORDER_B', 'ORDER_C']
    for (const name of names) await create(name)
    const listed = (await list()).secrets.map(({ name }: { name: string }) => name)
    assert.deepEqual(listed.slice(0, 3), names.toReversed())
  })
  it('the value of a secret is never shown, and is stored encrypted', async () => {
    const { id } = await create('HIDDEN')
    const changed = await api.put(`${SECRETS}/${id}`, { value: `${VALUE}-2` })
    for (const body of [await list(), changed.body]) assert.ok(!JSON.stringify(body).includes(VALUE))
    const rows = await sql('SELECT ciphertext FROM secret WHERE id = $1', [id])
    assert.ok(!(rows[0] as { ciphertext: Buffer }).ciphertext.includes(VALUE))
  })
  it('a variable shows its value', async () => {
    const created = await create('SHOWN', api, { type: 'variable' })
    assert.deepEqual([created.type, created.value], ['variable', VALUE])
    const changed = await api.put(`${SECRETS}/${created.id}`, { value: 'another' })
    assert.equal(changed.body.secret.value, 'another')
    assert.equal((await find(created.id)).value, 'another')
  })
  it('a variable that cannot be decrypted shows no value until it is changed', async () => {
    const { id } = await create('BROKEN', api, { type: 'variable' })
    await sql(`UPDATE secret SET ciphertext = ciphertext || '\\x00' WHERE id = $1`, [id])
    assert.equal((await find(id)).value, null)
    await api.put(`${SECRETS}/${id}`, { value: 'whole again' })
    assert.equal((await find(id)).value, 'whole again')
  })
  it('the value of a secret can be changed', async () => {
    const secret = await create('CHANGED')
    const { status, body } = await api.put(`${SECRETS}/${secret.id.toUpperCase()}`, { value: 'new' })
    assert.equal(status, 200)
    const { updatedAt } = body.secret
    assert.deepEqual(body, { success: true, secret: { ...secret, updatedAt } })
    assert.ok(updatedAt > secret.updatedAt)
    const rows = await sql('SELECT version FROM secret WHERE id = $1', [secret.id])
    assert.equal(rows[0]?.version, 2)
  })
  it('a deleted secret is gone, and its name is free', async () => {
    const { id } = await create('DOOMED')
    const { status, body } = await api.delete(`${SECRETS}/${id}`)
    assert.deepEqual([status, body], [200, { success: true }])
    assertError(await api.delete(`${SECRETS}/${id}`), 404, NOT_FOUND)
    assertError(await api.put(`${SECRETS}/${id}`, { value: 'x' }), 404, NOT_FOUND)
    assert.equal(await find(id), undefined)
    await create('DOOMED')
  })
  it('a secret of another workspace returns 404, and its name may be used again', async () => {
    const { id } = await create('FOREIGN', other.api)
    assertError(await api.put(`${SECRETS}/${id}`, { value: 'mine' }), 404, NOT_FOUND)
    assertError(await api.delete(`${SECRETS}/${id}`), 404, NOT_FOUND)
    assert.equal(await find(id), undefined)
    await create('FOREIGN')
    assert.ok(await find(id, other.api))
  })
})

describe('malformed secrets', () => {
  const malformed: [what: string, body: unknown, message: string | RegExp][] = [
    ['nothing', {}, /^name: /],
    ['no value', { name: 'A' }, /^value: /],
    ['an empty name', { name: '', value: 'x' }, 'name: must not be empty'],
    ['an empty value', { name: 'A', value: '' }, 'value: must not be empty'],
  ]
  for (const [what, body, message] of malformed)
    it(`a malformed secret returns 400 for ${what}`, async () =>
      assertError(await api.post(SECRETS, body), 400, message))
  it('a secret may have the longest name and the longest value', async () => {
    const name = 'L'.repeat(128)
    const { id } = await create(name, api, { value: 'é'.repeat(16_384), type: 'variable' })
    assert.deepEqual([(await find(id)).name, (await find(id)).value], [name, 'é'.repeat(16_384)])
  })
})

describe('duplicate secret names', () => {
  const refused = (reply: Awaited<ReturnType<Client['post']>>) => {
    assertError(reply, 409, 'Duplicate secret name')
    assert.equal(reply.headers.get('error-code'), 'duplicate_secret')
  }
  it('a second secret with the same name returns 409', async () => {
    await create('TWIN')
    refused(await api.post(SECRETS, { name: 'TWIN', value: 'x' }))
  })
  it('concurrent secrets with the same name: one is created and the others return 409', async () => {
    const request = () => api.post(SECRETS, { name: 'RACED', value: 'x' })
    const replies = await Promise.all(Array.from({ length: 20 }, request))
    const [created, ...others] = replies.toSorted((a, b) => a.status - b.status)
    assert.equal(created?.status, 201)
    for (const reply of others) refused(reply)
  })
})

describe('secret limits', () => {
  const LIMIT = 'Secret limit reached'
  it('the free plan allows three secrets', async () => {
    const { api } = await workspace('free')
    assert.deepEqual(await list(api), { secrets: [], secretLimit: 3 })
    const { id } = await create('A', api)
    for (const name of ['B', 'C']) await create(name, api)
    const reply = await api.post(SECRETS, { name: 'D', value: 'x' })
    assertError(reply, 403, LIMIT)
    assert.equal(reply.headers.get('error-code'), 'secret_limit')
    assertError(await api.post(SECRETS, { name: 'A', value: 'x' }), 409, 'Duplicate secret name')
    await api.delete(`${SECRETS}/${id}`)
    await create('D', api)
  })
  it('the secret limit of the free plan holds for concurrent requests', async () => {
    const { api } = await workspace('free')
    const request = (_: unknown, i: number) => api.post(SECRETS, { name: `N${i}`, value: 'x' })
    const replies = await Promise.all(Array.from({ length: 20 }, request))
    assert.equal(replies.filter(({ status }) => status === 201).length, 3)
    for (const reply of replies) if (reply.status !== 201) assertError(reply, 403, LIMIT)
    assert.equal((await list(api)).secrets.length, 3)
  })
  it('other plans have no secret limit', async () => {
    assert.equal((await list()).secretLimit, null)
  })
})

describe('attached secrets', () => {
  it('an attached secret cannot be deleted: 409 with the names of the agents', async () => {
    const { id } = await create('ATTACHED')
    const agents = [await insertAgent(context, own, 'One'), await insertAgent(context, own, 'Zwei ü')]
    for (const { path } of agents) await api.post(`${path}/secrets`, { secretIds: [id] })
    assert.deepEqual(
      (await find(id)).agents,
      agents.map(({ agentId, name }) => ({ agentId, name })),
    )
    const reply = await api.delete(`${SECRETS}/${id}`)
    assertError(reply, 409, 'The secret is attached to an agent')
    const [one, two] = agents
    assert.equal(
      reply.headers.get('error-detail'),
      `attached to One (${one?.agentId}), Zwei ? (${two?.agentId})`,
    )
    for (const { path } of agents) await api.delete(`${path}/secrets/${id}`)
    assert.equal((await api.delete(`${SECRETS}/${id}`)).status, 200)
  })
  it('concurrent requests to attach and delete a secret: one succeeds', async () => {
    const agent = await insertAgent(context, own)
    for (let i = 0; i < 20; i++) {
      const { id } = await create('CONTENDED')
      const [attached, deleted] = await Promise.all([
        api.post(`${agent.path}/secrets`, { secretIds: [id] }),
        api.delete(`${SECRETS}/${id}`),
      ])
      assert.ok(
        ['200,409', '404,200'].includes(`${attached.status},${deleted.status}`),
        `${attached.status},${deleted.status}`,
      )
      if (deleted.status === 200) continue
      await api.delete(`${agent.path}/secrets/${id}`)
      await api.delete(`${SECRETS}/${id}`)
    }
  })
})
