/** Groups of files on both networks; their members are tested in `group-members.test.ts`. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { openContext } from './context.ts'
import { collectPages } from './pages.ts'
import { NETWORKS, store } from './stored.ts'

const NOT_FOUND = 'There is no such group'

const { workspace } = await openContext()
const { api } = await workspace()
const names = (groups: { name: string }[]) => groups.map(({ name }) => name)

for (const network of NETWORKS) {
  const GROUPS = `/v3/groups/${network}`
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
  })
}
