/** Gateways, their plugins and their access tokens; other files test what gateways serve. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError, type Client } from '../support/client.ts'
import { openContext } from './context.ts'

const GATEWAYS = '/v3/gateways'
const PLUGINS = '/v3/gateways/plugins'
const NOT_FOUND = 'There is no such gateway'

const { berth, sql, workspace } = await openContext()
const mine = await workspace()
const { api } = mine
const other = await workspace()

const unusedName = () => `t-${randomUUID().slice(0, 13)}`
const create = async (domain = unusedName(), client: Client = api) =>
  (await client.post(GATEWAYS, { domain })).body.data
const list = async (client: Client = api) => (await client.get(GATEWAYS)).body.data

describe('the gateway of a new workspace', () => {
  it('the gateway of a new workspace has its name, and no plugins', async () => {
    const { count, rows } = await list(other.api)
    assert.equal(count, 1)
    const [{ id, created_at, domain, host }] = rows
    assert.equal(domain, other.name)
    assert.deepEqual(rows, [{ id, created_at, domain, host, restrict: false, custom_domains: [] }])
    assert.equal(host, `${domain}.gateway.localhost`)
    assert.deepEqual((await other.api.get(PLUGINS)).body, { data: [] })
  })
  it('a workspace that the command line creates has a gateway too', async () => {
    const name = `Team ${randomUUID()}`
    const { id } = JSON.parse(await berth('workspaces', 'create', name, '--owner', 'owner', '--json'))
    const rows = await sql('SELECT domain FROM gateway WHERE workspace_id = $1', [id])
    assert.deepEqual(rows, [{ domain: name.toLowerCase().replace(' ', '-') }])
  })
})

describe('a gateway', () => {
  it('a gateway is created with exactly these fields', async () => {
    const domain = unusedName()
    const { status, body } = await api.post(GATEWAYS, { domain })
    assert.equal(status, 200)
    const { id, created_at } = body.data
    const row = {
      id,
      created_at,
      domain,
      host: `${domain}.gateway.localhost`,
      restrict: false,
      custom_domains: [],
    }
    const policies = { accessTokens: [], allowedHosts: [], allowedIPAddresses: [] }
    const serving = { inner_cids: false, cid_hosts: false }
    assert.deepEqual(body, { data: { ...row, ...serving, settings: { restriction_policies: policies } } })
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/)
    assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000)
    assert.deepEqual((await api.get(`${GATEWAYS}/${id.toUpperCase()}`)).body, body)
    const { count, rows } = await list()
    assert.equal(count, rows.length)
    assert.deepEqual(rows.at(-1), row)
    assert.deepEqual((await api.get(`${PLUGINS}/${id}`)).body, { data: [] })
  })
  it('a gateway has a unique lower-case name', async () => {
    const domain = unusedName()
    assert.equal((await create(domain.toUpperCase())).domain, domain)
    for (const client of [api, other.api])
      for (const name of [domain, domain.toUpperCase()]) {
        const reply = await client.post(GATEWAYS, { domain: name })
        assertError(reply, 409, 'domain: is taken')
        assert.equal(reply.headers.get('error-code'), 'taken')
      }
  })
  it('a gateway name goes to one of several concurrent requests', async () => {
    const domain = unusedName()
    const replies = await Promise.all(
      [api, other.api, api].map((client) => client.post(GATEWAYS, { domain })),
    )
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409, 409])
  })
  it('a deleted gateway is gone, and its name is free', async () => {
    const { id, domain } = await create()
    assert.deepEqual((await api.get(`${GATEWAYS}/exists/${domain}`)).body, { data: { exists: true } })
    const deleted = await api.delete(`${GATEWAYS}/${id}`)
    assert.deepEqual([deleted.status, deleted.body], [200, { data: null }])
    for (const reply of [await api.get(`${GATEWAYS}/${id}`), await api.delete(`${GATEWAYS}/${id}`)])
      assertError(reply, 404, NOT_FOUND)
    assert.deepEqual((await other.api.get(`${GATEWAYS}/exists/${domain.toUpperCase()}`)).body, {
      data: { exists: false },
    })
    assert.equal((await other.api.post(GATEWAYS, { domain })).status, 200)
  })
  it('a workspace can have a hundred gateways', async () => {
    const full = await workspace()
    await sql(
      `INSERT INTO gateway (id, workspace_id, domain)
       SELECT gen_random_uuid(), $1, 'full-' || gen_random_uuid() FROM generate_series(1, 98)`,
      [full.id],
    )
    const atOnce = Array.from({ length: 6 }, () => full.api.post(GATEWAYS, { domain: unusedName() }))
    const statuses = (await Promise.all(atOnce)).map(({ status }) => status)
    assert.deepEqual(statuses.sort(), [200, ...Array(5).fill(403)])
    assert.equal((await list(full.api)).count, 100)
    assertError(await full.api.post(GATEWAYS, { domain: unusedName() }), 403, 'Gateway limit reached: 100')
  })

  it('asking about a gateway name returns 400 if the name is invalid', async () => {
    assertError(await api.get(`${GATEWAYS}/exists/a`), 400, /^domain: must be 3 to 63/)
  })
})

describe('plugins', () => {
  const hotSwaps = {
    id: 2,
    name: 'Hot Swaps',
    description: 'Serves newer content under the address of a CID that was given away before.',
    tags: ['files'],
  }
  const contentAddressable = {
    id: 1,
    name: 'Content Addressable',
    description: 'Shows the signature of content in the header `pinata-signature`.',
    tags: ['files'],
  }
  it('all plugins are offered', async () => {
    assert.deepEqual((await api.get(`${PLUGINS}/marketplace`)).body, { data: [contentAddressable, hotSwaps] })
    assert.deepEqual((await api.get(`${PLUGINS}/marketplace/2`)).body, { data: hotSwaps })
    assertError(await api.get(`${PLUGINS}/marketplace/3`), 404, 'plugin_id: there is no such plugin')
    assertError(await api.get(`${PLUGINS}/marketplace/x`), 400, 'plugin_id: must be a whole number')
  })
  it('a plugin is installed, again without effect, and removed once', async () => {
    const { id } = await create()
    const path = `${PLUGINS}/${id}`
    const installed = { gateway_id: id, plugin_id: 2 }
    assertError(await api.delete(`${path}/plugin/2`), 404, 'The gateway does not have this plugin')
    for (let i = 0; i < 2; i++) {
      const { status, body } = await api.post(path, { plugin_id: 2 })
      assert.deepEqual([status, body], [200, { data: installed }])
    }
    assert.deepEqual((await api.get(path)).body, { data: [installed] })
    assert.deepEqual((await api.get(PLUGINS)).body.data.at(-1), installed)
    const removed = await api.delete(`${path}/plugin/2`)
    assert.deepEqual([removed.status, removed.body], [200, { data: null }])
    assertError(await api.delete(`${path}/plugin/2`), 404, 'The gateway does not have this plugin')
    assert.deepEqual((await api.get(path)).body, { data: [] })
  })
  it("installing and removing a plugin leaves the gateway's other plugins unchanged", async () => {
    const { id } = await create()
    for (const plugin_id of [2, 1]) await api.post(`${PLUGINS}/${id}`, { plugin_id })
    const numbers = async () =>
      (await api.get(`${PLUGINS}/${id}`)).body.data.map((one: { plugin_id: number }) => one.plugin_id)
    assert.deepEqual(await numbers(), [1, 2])
    await api.delete(`${PLUGINS}/${id}/plugin/2`)
    assert.deepEqual(await numbers(), [1])
  })
  it('an unknown plugin returns 404', async () => {
    const { id } = await create()
    assertError(
      await api.post(`${PLUGINS}/${id}`, { plugin_id: 3 }),
      404,
      'plugin_id: there is no such plugin',
    )
    assertError(await api.delete(`${PLUGINS}/${id}/plugin/3`), 404, 'plugin_id: there is no such plugin')
  })
})

describe('access tokens', () => {
  it('an access token is shown once, and restricts its gateway until it is revoked', async () => {
    const { id } = await create()
    const path = `${GATEWAYS}/${id}/access_tokens`
    const { status, body } = await api.post(path, undefined)
    assert.equal(status, 200)
    const { data: token } = body
    assert.deepEqual(Object.keys(token), ['id', 'value', 'createdAt'])
    assert.match(token.value, /^[\w-]{64}$/)
    const restricted = (await api.get(`${GATEWAYS}/${id}`)).body.data
    assert.equal(restricted.restrict, true)
    assert.deepEqual(restricted.settings.restriction_policies.accessTokens, [{ ...token, value: '' }])
    assert.equal((await list()).rows.find((row: { id: string }) => row.id === id).restrict, true)
    const second = (await api.post(path, undefined)).body.data
    assert.notEqual(second.value, token.value)
    for (const each of [token, second]) {
      const revoked = await api.delete(`${path}/${each.id}`)
      assert.deepEqual([revoked.status, revoked.body], [200, { data: null }])
      assertError(await api.delete(`${path}/${each.id}`), 404, 'There is no such access token')
    }
    assert.equal((await api.get(`${GATEWAYS}/${id}`)).body.data.restrict, false)
  })
  it('an access token is not stored in plain text', async () => {
    const { id } = await create()
    const { value } = (await api.post(`${GATEWAYS}/${id}/access_tokens`, undefined)).body.data
    const [row] = await sql(
      'SELECT to_jsonb(t) AS stored FROM gateway_access_token t WHERE gateway_id = $1',
      [id],
    )
    assert.ok(!JSON.stringify(row).includes(value))
  })
  it('an access token belongs to one gateway', async () => {
    const [a, b] = [await create(), await create()]
    const { id } = (await api.post(`${GATEWAYS}/${a.id}/access_tokens`, undefined)).body.data
    assertError(
      await api.delete(`${GATEWAYS}/${b.id}/access_tokens/${id}`),
      404,
      'There is no such access token',
    )
    assertError(await api.delete(`${GATEWAYS}/${a.id}/access_tokens/x`), 404, 'There is no such access token')
  })
  it('a gateway can have a hundred access tokens', async () => {
    const { id } = await create()
    await sql(
      `INSERT INTO gateway_access_token (id, gateway_id, token_hash)
       SELECT gen_random_uuid(), $1, '' FROM generate_series(1, 99)`,
      [id],
    )
    const atOnce = Array.from({ length: 6 }, () => api.post(`${GATEWAYS}/${id}/access_tokens`, undefined))
    const statuses = (await Promise.all(atOnce)).map(({ status }) => status)
    assert.deepEqual(statuses.sort(), [200, ...Array(5).fill(403)])
    assertError(
      await api.post(`${GATEWAYS}/${id}/access_tokens`, undefined),
      403,
      'Access token limit reached: 100',
    )
  })
})

describe('the older paths', () => {
  it('the older gateway paths return the same', async () => {
    const { id } = await create()
    const same = [
      [GATEWAYS, '/v3/ipfs/gateways'],
      [`${GATEWAYS}/${id}`, `/v3/ipfs/gateways/${id}`],
      [PLUGINS, '/v3/ipfs/gateway_plugins'],
      [`${PLUGINS}/${id}`, `/v3/ipfs/gateway_plugins/${id}`],
      [`${PLUGINS}/marketplace`, '/v3/ipfs/plugins_marketplace'],
    ] as const
    for (const [path, older] of same) {
      const reply = await api.get(older)
      assert.equal(reply.status, 200, older)
      assert.deepEqual(reply.body, (await api.get(path)).body)
    }
  })
})
