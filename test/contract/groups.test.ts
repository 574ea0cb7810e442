/** Groups of files (compatibility 1.5). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { inlineCid, openContext } from './context.ts'
import { collectPages } from './pages.ts'

const GROUPS = '/v3/groups/public'
const NOT_FOUND = 'There is no such group'

const { workspace } = await openContext()
const { api } = await workspace()
const other = await workspace()
const create = async (name: string, client = api, is_public?: boolean) =>
  (await client.post(GROUPS, { name, is_public })).body.data
const names = (groups: { name: string }[]) => groups.map(({ name }) => name)

describe('a group', () => {
  it('is created with exactly these fields', async () => {
    const { status, body } = await api.post(GROUPS, { name: ' first ' })
    assert.equal(status, 200)
    const { id, created_at } = body.data
    assert.deepEqual(body, { data: { id, name: 'first', is_public: false, created_at } })
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/)
    assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000)
    assert.deepEqual((await api.get(`${GROUPS}/${id}`)).body, body)
    assert.deepEqual((await api.get(`${GROUPS}/${id.toUpperCase()}`)).body, body)
  })
  it('may be public, and may have the name of another one', async () => {
    const [a, b] = [await create('twin', api, true), await create('twin', api, true)]
    assert.equal(a.is_public, true)
    assert.notEqual(a.id, b.id)
  })
  it('is gone after its deletion, and its files stay', async () => {
    const { id } = await create('doomed')
    const pin = await api.pin({ cid: `${inlineCid('stays')}`, group_id: id }, { wait: 30 })
    assert.equal(pin.record.group_id, id)
    const deleted = await api.delete(`${GROUPS}/${id}`)
    assert.deepEqual([deleted.status, deleted.body], [200, { data: null }])
    assertError(await api.get(`${GROUPS}/${id}`), 404, NOT_FOUND)
    assertError(await api.delete(`${GROUPS}/${id}`), 404, NOT_FOUND)
    const file = await api.get(`/v3/files/public/${pin.record.id}`)
    assert.equal(file.body.data.group_id, null)
  })
  it('of another workspace is not there', async () => {
    const { id } = await create('foreign', other.api)
    assertError(await api.get(`${GROUPS}/${id}`), 404, NOT_FOUND)
    assertError(await api.delete(`${GROUPS}/${id}`), 404, NOT_FOUND)
    assert.equal((await other.api.get(`${GROUPS}/${id}`)).status, 200)
  })
  for (const id of ['x', '0191f0f0-0000-7000-8000-000000000000', '%00', '..%2f..', '0'.repeat(300)]) {
    it(`with the id ${id.slice(0, 12)} is not there`, async () => {
      assertError(await api.get(`${GROUPS}/${id}`), 404, NOT_FOUND)
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
    it(`is 400 for ${JSON.stringify(body).slice(0, 40)}`, async () => {
      assertError(await api.post(GROUPS, body), 400, message)
    })
  }
})

describe('the list of groups', async () => {
  const own = await workspace()
  const list = async (query?: Record<string, string>) => (await own.api.get(GROUPS, query)).body.data.groups
  const made: string[] = []
  for (let i = 0; i < 27; i++) made.unshift((await create(`group %${i}`, own.api, i % 9 === 0)).id)

  it('has ten a page, the newest first', async () => {
    assert.deepEqual(
      (await list()).map(({ id }: { id: string }) => id),
      made.slice(0, 10),
    )
  })
  for (const limit of ['1', '4', '27', '1000']) {
    it(`loses and doubles nothing in pages of ${limit}`, async () => {
      const groups = await collectPages(own.api, GROUPS, 'groups', { limit })
      assert.deepEqual(
        groups.map(({ id }) => id),
        made,
      )
    })
  }
  it('filters by part of the name, in any case', async () => {
    assert.deepEqual(names(await list({ name: 'GROUP %26' })), ['group %26'])
    assert.deepEqual(await list({ name: 'group%%6' }), [])
  })
  it('filters by who may see it', async () => {
    assert.deepEqual(names(await list({ isPublic: 'true' })), ['group %18', 'group %9', 'group %0'])
    assert.equal((await list({ isPublic: 'false', limit: '100' })).length, 24)
  })
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'isPublic=1', 'name=a%00', 'pageToken=x']) {
    it(`is 400 for ?${query}`, async () => {
      assertError(await own.api.get(GROUPS, query), 400, new RegExp(`^${query.split('=')[0]}: `))
    })
  }
})
