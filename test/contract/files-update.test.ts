/** Changing a file's name, metadata and expiry, on both networks. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { missingCid, openContext } from './context.ts'
import { NETWORKS, store } from './stored.ts'

const NOT_FOUND = 'There is no such file'
const TOO_MANY = 'keyvalues: must have at most 10 pairs'
const inAnHour = () => Math.floor(Date.now() / 1000) + 3600

const { workspace } = await openContext()
const { api } = await workspace()

for (const network of NETWORKS) {
  const FILES = `/v3/files/${network}`
  let stored = 0
  const create = async (details: Parameters<typeof store>[3] = {}) => {
    const { id } = await store(api, network, `${network} to be changed ${stored++}`, details)
    return { id, path: `${FILES}/${id}`, read: async () => (await api.get(`${FILES}/${id}`)).body.data }
  }

  describe(`a ${network} file is changed`, () => {
    it(`a change of a ${network} file applies only the given fields`, async () => {
      const { path, read } = await create({ name: 'before', keyvalues: { a: '1', b: '2' } })
      const before = await read()
      const changes: [object, object][] = [
        [{ name: 'after' }, { name: 'after' }],
        [{ keyvalues: { a: 'one' } }, { keyvalues: { a: 'one', b: '2' } }],
        [{ keyvalues: { c: '3', b: null } }, { keyvalues: { a: 'one', c: '3' } }],
        [{ keyvalues: { nothing: null } }, {}],
        [{ keyvalues: {} }, {}],
        [
          { name: 'both', keyvalues: { a: null } },
          { name: 'both', keyvalues: { c: '3' } },
        ],
        [{ name: 'with', unknown: 'field' }, { name: 'with' }],
      ]
      let expected = before
      for (const [change, effect] of changes) {
        expected = { ...expected, ...effect }
        const { status, body } = await api.put(path, change)
        assert.deepEqual([status, body], [200, { data: expected }], JSON.stringify(change))
        assert.deepEqual(await read(), expected)
      }
    })

    it(`a ${network} file loses its name if it is set to null or empty`, async () => {
      for (const name of [null, '']) {
        const { path } = await create({ name: 'named' })
        assert.equal((await api.put(path, { name })).body.data.name, null)
      }
    })

    it(`a ${network} file is found by its changed values`, async () => {
      const { id, path } = await create({ name: 'old', keyvalues: { found: 'before' } })
      await api.put(path, { name: `new-${id}`, keyvalues: { found: id } })
      for (const query of [`name=new-${id}`, `keyvalues[found]=${id}`, `metadata[found]=${id}`]) {
        const { files } = (await api.get(FILES, query)).body.data
        assert.deepEqual(
          files.map((file: { id: string }) => file.id),
          [id],
        )
      }
      const { files } = (await api.get(FILES, { 'keyvalues[found]': 'before' })).body.data
      assert.deepEqual(files, [])
    })

    it(`a ${network} file accepts any text as a key`, async () => {
      const { path } = await create()
      const keyvalues = { '7': 'seven', 'a b&c=[d]': 'é %', 'it\'s "quoted" \\': '{}', constructor: 'x' }
      assert.deepEqual((await api.put(path, { keyvalues })).body.data.keyvalues, keyvalues)
      const gone = Object.fromEntries(Object.keys(keyvalues).map((key) => [key, null]))
      assert.deepEqual((await api.put(path, { keyvalues: gone })).body.data.keyvalues, {})
    })

    it(`a ${network} file can have ten pairs at most, counted after the merge`, async () => {
      const ten = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`k${i}`, 'v']))
      const { path, read } = await create({ keyvalues: { k0: 'first' } })
      assert.deepEqual((await api.put(path, { keyvalues: ten })).body.data.keyvalues, ten)
      const before = await read()
      assertError(await api.put(path, { name: 'lost', keyvalues: { more: 'v' } }), 400, TOO_MANY)
      assert.deepEqual(await read(), before, 'nothing was changed')
      const swapped = await api.put(path, { keyvalues: { more: 'v', k0: null } })
      assert.equal(Object.keys(swapped.body.data.keyvalues).length, 10)
      assert.equal((await api.put(path, { keyvalues: { more: 'other' } })).status, 200)
      assert.equal((await api.put(path, { name: 'still to be named' })).status, 200)
    })

    it(`concurrent changes of different keys of a ${network} file lose nothing`, async () => {
      const { path, read } = await create()
      const replies = await Promise.all(
        Array.from({ length: 16 }, (_, i) => api.put(path, { keyvalues: { [`k${i}`]: `${i}` } })),
      )
      const accepted = replies.flatMap(({ status }, i) => (status === 200 ? [`k${i}`] : []))
      assert.equal(accepted.length, 10)
      for (const reply of replies) if (reply.status !== 200) assertError(reply, 400, TOO_MANY)
      assert.deepEqual(Object.keys((await read()).keyvalues).sort(), accepted.sort())
    })

    it(`the expiry of a ${network} file can be set and removed`, async () => {
      const { path, read } = await create()
      assert.equal((await read()).expires_at, null)
      const expires_at = inAnHour()
      assert.equal((await api.put(path, { expires_at })).body.data.expires_at, expires_at)
      assert.equal((await api.put(path, { name: 'still ends' })).body.data.expires_at, expires_at)
      assert.equal((await api.put(path, { expires_at: null })).body.data.expires_at, null)
    })
  })

  describe(`an invalid change of a ${network} file`, async () => {
    it(`a change of a ${network} file returns 404 after its deletion`, async () => {
      const doomed = await create()
      assert.equal((await api.delete(doomed.path)).status, 200)
      assertError(await api.put(doomed.path, { name: 'late' }), 404, NOT_FOUND)
      assertError(await api.put(doomed.path, { keyvalues: { late: 'x' } }), 404, NOT_FOUND)
    })
  })
}

describe('an unpinned pin request', () => {
  it('an unpinned pin request cannot be changed as a file', async () => {
    const { record } = await api.pin({ cid: `${await missingCid()}` })
    for (const network of NETWORKS)
      assertError(await api.put(`/v3/files/${network}/${record.id}`, { name: 'x' }), 404, NOT_FOUND)
  })
})
