/** API keys over HTTP, at the paths of the npm SDK and of the documentation. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError, type Client } from '../support/client.ts'
import { openContext } from './context.ts'

const { anonymous, sql, workspace } = await openContext()
const { api } = await workspace()

const FAMILIES = [
  { path: '/v3/pinata/keys', revoke: (client: Client, key: string) => client.put(`/v3/pinata/keys/${key}`) },
  { path: '/v3/api_keys', revoke: (client: Client, key: string) => client.delete(`/v3/api_keys/${key}`) },
]
const [sdk] = FAMILIES as [(typeof FAMILIES)[0]]
const create = (body: object, client = api) =>
  client.post(sdk.path, { keyName: 'test', permissions: { admin: true }, ...body })
const works = async (token: string) => (await anonymous.as(token).get('/v3/files/public')).status === 200
const names = (keys: { name: string }[]) => keys.map(({ name }) => name)

for (const { path, revoke } of FAMILIES) {
  describe(path, () => {
    it(`${path} creates a working key, lists it and revokes it`, async () => {
      const made = await api.post(path, { keyName: path, permissions: { resources: ['org:files:read'] } })
      assert.equal(made.status, 200)
      assert.deepEqual(Object.keys(made.body).sort(), ['JWT', 'pinata_api_key', 'pinata_api_secret'])
      assert.ok(await works(made.body.JWT))

      const { body } = await api.get(path, { name: path })
      const [item] = body.keys
      assert.deepEqual(item, {
        id: item.id,
        name: path,
        key: made.body.pinata_api_key,
        secret: '',
        max_uses: null,
        uses: 0,
        user_id: item.user_id,
        scopes: item.scopes,
        revoked: false,
        createdAt: item.createdAt,
        updatedAt: item.updatedAt,
      })
      assert.equal(body.count, 1)

      const revoked = await revoke(api, item.key)
      assert.equal(revoked.status, 200)
      assert.equal(revoked.body, 'Revoked')
      assert.equal(await works(made.body.JWT), false)
      assert.equal((await revoke(api, item.key)).body, 'Revoked', 'a repeat changes nothing')
      assert.equal((await api.get(path, { name: path })).body.keys[0].revoked, true)
    })

    it(`${path} also revokes by id`, async () => {
      const { body } = await api.post(path, { keyName: 'by id', permissions: { admin: true } })
      const item = (await api.get(path)).body.keys[0]
      assert.equal(item.key, body.pinata_api_key)
      assert.equal((await revoke(api, item.id)).body, 'Revoked')
      assert.equal(await works(body.JWT), false)
    })
    it(`${path} returns 400 for a malformed key`, async () => {
      assertError(await revoke(api, 'x'.repeat(65)), 400, 'key: must have at most 64 characters')
      assertError(await revoke(api, 'a%00b'), 400, 'key: must not contain NUL or broken Unicode')
    })
  })
}

describe('a new key', () => {
  const permissions: [string, object, string[]][] = [
    ['admin', { admin: true }, ['admin']],
    ['admin, which includes all others', { admin: true, resources: ['org:files:read'] }, ['admin']],
    ['resources', { resources: ['org:read', 'org:files:write'] }, ['org:read', 'org:files:write']],
    ['duplicate resources', { resources: ['org:read', 'org:read'] }, ['org:read']],
    [
      'legacy switches',
      { endpoints: { data: { pinList: true, userPinnedDataTotal: false }, pinning: { pinByHash: true } } },
      ['org:files:read', 'org:files:write'],
    ],
  ]
  for (const [what, asked, scopes] of permissions) {
    it(`a new key takes its scopes from ${what}`, async () => {
      assert.equal((await create({ keyName: what, permissions: asked })).status, 200)
      const { admin, resources } = (await api.get(sdk.path, { name: what })).body.keys[0].scopes
      assert.deepEqual([...(admin ? ['admin'] : []), ...resources], scopes)
    })
  }

  it('another key can be created from the scopes of a listed key, which has both formats', async () => {
    const name = 'scopes as an object'
    await create({ keyName: name, permissions: { resources: ['org:files:read'] } })
    const { scopes } = (await api.get(sdk.path, { name })).body.keys[0]
    assert.deepEqual([scopes.admin, scopes.resources], [false, ['org:files:read']])
    const on = (group: object) => Object.entries(group).flatMap(([key, value]) => (value ? key : []))
    assert.deepEqual(on(scopes.endpoints.data), ['pinList', 'userPinnedDataTotal'])
    assert.deepEqual(on(scopes.endpoints.pinning), ['pinJobs'])
    await create({ keyName: `${name}, again`, permissions: scopes })
    const again = (await api.get(sdk.path, { name: `${name}, again` })).body.keys[0]
    assert.deepEqual(again.scopes, scopes)
  })

  it('a new key may not grant more than the key that creates it', async () => {
    const { keyed } = await workspace()
    const writer = await keyed('org:write')
    assertError(await create({}, writer), 403, 'Workspace permission denied')
    const granted = await create({ permissions: { resources: ['org:files:write', 'org:read'] } }, writer)
    assert.equal(granted.status, 200)
  })
  it('a new key expires with the key that creates it', async () => {
    const own = await workspace()
    const parent = await own.created({ expiresAt: new Date(Date.now() + 3_600_000) })
    assert.equal((await create({}, parent)).status, 200)
    const found = await sql(
      `SELECT expires_at::text FROM api_key WHERE workspace_id = $1 AND expires_at IS NOT NULL`,
      [own.id],
    )
    assert.equal(found.length, 2)
    assert.deepEqual(found[0], found[1])
  })
  it('a new key expires as requested, but not after the key that creates it', async () => {
    const own = await workspace()
    const parent = await own.created({ expiresAt: new Date(Date.now() + 7_200_000) })
    assert.equal((await create({ keyName: 'sooner', expiresInHours: 1 }, parent)).status, 200)
    assert.equal((await create({ keyName: 'later', expiresInHours: 3 }, parent)).status, 200)
    const found = await sql(
      `SELECT name, round(extract(epoch FROM expires_at - now()) / 3600)::int AS hours FROM api_key
       WHERE workspace_id = $1 AND name IN ('sooner', 'later') ORDER BY name DESC`,
      [own.id],
    )
    assert.deepEqual(found, [
      { name: 'sooner', hours: 1 },
      { name: 'later', hours: 2 },
    ])
    for (const expiresInHours of [0, 1.5, 87_601, '1'])
      assert.equal((await create({ expiresInHours })).status, 400, String(expiresInHours))
  })
  it('a key with a limited number of uses cannot create keys', async () => {
    const { JWT } = (await create({ maxUses: 3 })).body
    assertError(await create({ maxUses: 1 }, anonymous.as(JWT)), 403, 'Workspace permission denied')
  })
})

describe('revoking a key', () => {
  for (const { path, revoke } of FAMILIES) {
    it(`a key with scopes that the caller's key lacks cannot be revoked (${path})`, async () => {
      const { api, keyed } = await workspace()
      const writer = await keyed('org:write')
      const [admin] = (await api.get(path)).body.keys.filter(
        ({ scopes }: { scopes: { admin: boolean } }) => scopes.admin,
      )
      assertError(await revoke(writer, admin.key), 403, 'Workspace permission denied')
      assertError(await revoke(writer, admin.id), 403, 'Workspace permission denied')
      assert.equal((await api.get(path)).status, 200, 'the key stays valid')
      const { body } = await create({ permissions: { resources: ['org:files:write'] } }, api)
      assert.equal((await revoke(writer, body.pinata_api_key)).status, 200)
    })
    it(`a caller may revoke its own key (${path})`, async () => {
      const { body } = await create({ permissions: { resources: ['org:write'] } })
      const own = anonymous.as(body.JWT)
      assert.equal((await revoke(own, body.pinata_api_key)).status, 200)
      assert.equal((await own.get(path)).status, 401)
    })
  }
})

describe('the list of keys', async () => {
  const own = await workspace()
  const list = async (query: Record<string, string> = {}) => (await own.api.get(sdk.path, query)).body
  const made: { JWT: string; pinata_api_key: string }[] = []
  for (const keyName of ['alpha', 'Alphabet', 'gone'])
    made.push((await create({ keyName, permissions: { resources: ['org:files:read'] } }, own.api)).body)
  made.push((await create({ keyName: 'limited', maxUses: 2 }, own.api)).body)
  await sdk.revoke(own.api, made[2]?.pinata_api_key ?? '')

  it('the list of keys has the newest first, and the total count', async () => {
    const { keys, count } = await list()
    assert.deepEqual(names(keys), ['limited', 'gone', 'Alphabet', 'alpha', 'first key'])
    assert.equal(count, 5)
  })
  it('the list of keys filters by part of the name', async () => {
    assert.deepEqual(names((await list({ name: 'ALPHA' })).keys), ['Alphabet', 'alpha'])
    assert.deepEqual((await list({ name: '%' })).keys, [])
  })
  it('the list of keys filters by revocation', async () => {
    assert.deepEqual(names((await list({ revoked: 'true' })).keys), ['gone'])
    assert.equal((await list({ revoked: 'false' })).count, 4)
  })
  it('the list of keys filters by limited use, and by exhaustion', async () => {
    const limited = anonymous.as(made[3]?.JWT)
    assert.deepEqual(names((await list({ limitedUse: 'true' })).keys), ['limited'])
    assert.equal((await list({ limitedUse: 'false' })).count, 4)
    await limited.get('/v3/files/public')
    assert.deepEqual((await list({ exhausted: 'true' })).keys, [])
    await limited.get('/v3/files/public')
    assert.deepEqual(names((await list({ exhausted: 'true' })).keys), ['limited'])
    assert.equal((await list({ exhausted: 'false' })).count, 4)
    assert.equal((await list({ limitedUse: 'true' })).keys[0].uses, 2)
  })
  it('the list of keys starts at an offset', async () => {
    const { keys, count } = await list({ offset: '3' })
    assert.deepEqual(names(keys), ['alpha', 'first key'])
    assert.equal(count, 5)
    assert.deepEqual((await list({ offset: '999999999' })).keys, [])
  })
  it("the list of keys includes only the caller's workspace", async () => {
    const foreign = names((await api.get(sdk.path)).body.keys)
    assert.ok(foreign.includes('duplicate resources'))
    assert.ok(!names((await list()).keys).includes('duplicate resources'))
  })
})
