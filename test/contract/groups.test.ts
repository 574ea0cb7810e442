/** Groups of files on both networks; their members are tested in `group-members.test.ts`. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { openContext } from './context.ts'
import { collectPages } from './pages.ts'
import { NETWORKS, store } from './stored.ts'

const NOT_FOUND = 'There is no such group'

const { workspace } = await openContext()
const { api, keyed } = await workspace()
const other = await workspace()
const names = (groups: { name: string }[]) => groups.map(({ name }) => name)
const isEmpty = (body: unknown) => JSON.stringify(body) === '{}'

for (const network of NETWORKS) {
  const GROUPS = `/v3/groups/${network}`
  const elsewhere = `/v3/groups/${NETWORKS.find((name) => name !== network)}`
  const create = async (name: string, client = api, is_public?: boolean) =>
    (await client.post(GROUPS, { name, is_public })).body.data

  describe(`a ${network} group`, () => {
    it(`a ${network} group is created with exactly these fields`, async () => {
      const { status, body } = await api.post(GROUPS, { name: ' first ' })
      assert.equal(status, 200)
      const { id, created_at } = body.data
      assert.deepEqual(body, { data: { id, name: 'first', is_public: false, created_at } })
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/)
      assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
      assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000)
      assert.deepEqual((await api.get(`${GROUPS}/${id}`)).body, body)
      assert.deepEqual((await api.get(`${GROUPS}/${id.toUpperCase()}`)).body, body)
    })
    it(`a ${network} group may be public, and may share its name with another group`, async () => {
      const [a, b] = [await create('twin', api, true), await create('twin', api, true)]
      assert.equal(a.is_public, true)
      assert.notEqual(a.id, b.id)
    })
    it(`a deleted ${network} group is gone, and its files stay`, async () => {
      const { id } = await create('doomed')
      const stays = await store(api, network, `${network} stays`, { group_id: id })
      assert.equal(stays.group_id, id)
      const deleted = await api.delete(`${GROUPS}/${id}`)
      assert.deepEqual([deleted.status, deleted.body], [200, { data: null }])
      assertError(await api.get(`${GROUPS}/${id}`), 404, NOT_FOUND)
      assertError(await api.delete(`${GROUPS}/${id}`), 404, NOT_FOUND)
      const file = await api.get(`/v3/files/${network}/${stays.id}`)
      assert.equal(file.body.data.group_id, null)
    })
    it(`a ${network} group of another workspace returns 404`, async () => {
      const { id } = await create('foreign', other.api)
      assertError(await api.get(`${GROUPS}/${id}`), 404, NOT_FOUND)
      assertError(await api.put(`${GROUPS}/${id}`, { name: 'mine' }), 404, NOT_FOUND)
      assertError(await api.delete(`${GROUPS}/${id}`), 404, NOT_FOUND)
      assert.equal((await other.api.get(`${GROUPS}/${id}`)).body.data.name, 'foreign')
    })
    it(`a ${network} group exists only on its network`, async () => {
      const { id } = await create('here')
      assertError(await api.get(`${elsewhere}/${id}`), 404, NOT_FOUND)
      assertError(await api.put(`${elsewhere}/${id}`, { name: 'there' }), 404, NOT_FOUND)
      assertError(await api.delete(`${elsewhere}/${id}`), 404, NOT_FOUND)
      assert.equal((await api.get(`${GROUPS}/${id}`)).body.data.name, 'here')
      assert.deepEqual(
        (await api.get(elsewhere, { name: 'here', limit: '1000' })).body.data.groups.filter(
          (group: { id: string }) => group.id === id,
        ),
        [],
      )
    })
    it(`a change of a ${network} group applies only the given fields`, async () => {
      const made = await create('before')
      const path = `${GROUPS}/${made.id}`
      const changes: [object, object][] = [
        [{ name: ' after ' }, { name: 'after', is_public: false }],
        [{ is_public: true }, { name: 'after', is_public: true }],
        [
          { name: 'both', is_public: false },
          { name: 'both', is_public: false },
        ],
      ]
      for (const [change, effect] of changes) {
        const { status, body } = await api.put(path, change)
        assert.deepEqual([status, body], [200, { data: { ...made, ...effect } }])
        assert.deepEqual((await api.get(path)).body, body)
      }
    })
    it(`a ${network} group needs the groups scope`, async () => {
      const { id } = await create('scoped')
      const [reader, stranger] = [await keyed('org:groups:read'), await keyed('org:files:write')]
      assert.equal((await reader.get(`${GROUPS}/${id}`)).status, 200)
      assertError(await stranger.get(`${GROUPS}/${id}`), 403, 'Missing scope: org:groups:read')
      for (const client of [reader, stranger]) {
        assertError(
          await client.put(`${GROUPS}/${id}`, { name: 'x' }),
          403,
          'Missing scope: org:groups:write',
        )
        assertError(await client.delete(`${GROUPS}/${id}`), 403, 'Missing scope: org:groups:write')
      }
    })
    for (const id of ['x', '0191f0f0-0000-7000-8000-000000000000', '%00', '..%2f..', '0'.repeat(300)]) {
      it(`a ${network} group with the id ${id.slice(0, 12)} returns 404`, async () => {
        assertError(await api.get(`${GROUPS}/${id}`), 404, NOT_FOUND)
        assertError(await api.put(`${GROUPS}/${id}`, { name: 'x' }), 404, NOT_FOUND)
        assertError(await api.delete(`${GROUPS}/${id}`), 404, NOT_FOUND)
      })
    }

    const malformed: [unknown, string | RegExp][] = [
      [{}, /^name: /],
      [{ name: '' }, 'name: must not be empty'],
      [{ name: ' \t' }, 'name: must not be empty'],
      [{ name: null }, /^name: /],
      [{ name: 'x'.repeat(256) }, 'name: must have at most 255 characters'],
      [{ name: 'a\0b' }, 'name: must not contain NUL or broken Unicode'],
      [{ name: 'a\ud800b' }, 'name: must not contain NUL or broken Unicode'],
      [{ name: 'a', is_public: 'true' }, /^is_public: /],
      [[], /^body: /],
      ['name', /^body: /],
      [null, /^body: /],
    ]
    for (const [body, message] of malformed) {
      it(`a ${network} group returns 400 for ${JSON.stringify(body).slice(0, 40)}`, async () => {
        assertError(await api.post(GROUPS, body), 400, message)
      })
    }
    it(`an empty or malformed change of a ${network} group changes nothing`, async () => {
      const made = await create('unchanged')
      const path = `${GROUPS}/${made.id}`
      for (const change of [{}, { isPublic: true }, { name: undefined }])
        assertError(await api.put(path, change), 400, 'body: must have a name or is_public')
      for (const [body, message] of malformed)
        if (!isEmpty(body)) assertError(await api.put(path, body), 400, message)
      assertError(await api.put(path, { name: 'x', is_public: null }), 400, /^is_public: /)
      assert.deepEqual((await api.get(path)).body.data, made)
    })
  })

  describe(`the list of ${network} groups`, async () => {
    const own = await workspace()
    const list = async (query?: Record<string, string>) => (await own.api.get(GROUPS, query)).body.data.groups
    const made: string[] = []
    for (let i = 0; i < 27; i++) made.unshift((await create(`group %${i}`, own.api, i % 9 === 0)).id)

    it(`the list of ${network} groups has ten groups per page, newest first`, async () => {
      assert.deepEqual(
        (await list()).map(({ id }: { id: string }) => id),
        made.slice(0, 10),
      )
    })
    for (const limit of ['1', '4', '27', '1000']) {
      it(`the list of ${network} groups skips and repeats nothing in pages of ${limit}`, async () => {
        const groups = await collectPages(own.api, GROUPS, 'groups', { limit })
        assert.deepEqual(
          groups.map(({ id }) => id),
          made,
        )
      })
    }
    it(`the list of ${network} groups filters by part of the name, in any case`, async () => {
      assert.deepEqual(names(await list({ name: 'GROUP %26' })), ['group %26'])
      assert.deepEqual(await list({ name: 'group%%6' }), [])
    })
    it(`the list of ${network} groups filters by visibility`, async () => {
      assert.deepEqual(names(await list({ isPublic: 'true' })), ['group %18', 'group %9', 'group %0'])
      assert.equal((await list({ isPublic: 'false', limit: '100' })).length, 24)
    })
    for (const query of ['limit=0', 'limit=1001', 'limit=x', 'isPublic=1', 'name=a%00', 'pageToken=x']) {
      it(`the list of ${network} groups returns 400 for ?${query}`, async () => {
        assertError(await own.api.get(GROUPS, query), 400, new RegExp(`^${query.split('=')[0]}: `))
      })
    }
  })
}
