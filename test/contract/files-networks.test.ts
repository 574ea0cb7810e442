/** The two networks: each has its own files, at the same routes. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { assertError } from '../support/client.ts'
import { missingCid, openContext } from './context.ts'
import { collectPages } from './pages.ts'
import { NETWORKS, store } from './stored.ts'

const NOT_FOUND = 'There is no such file'
const UNKNOWN = 'network: must be public or private'

const { isPinned, workspace } = await openContext()
const { api } = await workspace()

for (const network of NETWORKS) {
  const FILES = `/v3/files/${network}`
  const elsewhere = network === 'public' ? 'private' : 'public'

  describe(`a ${network} file`, async () => {
    const file = await store(api, network, 'the same on both networks', { name: `${network} file` })
    const path = `${FILES}/${file.id}`

    it(`a ${network} file is read and listed only on its network`, async () => {
      const { data } = (await api.get(path)).body
      assert.deepEqual([data.name, data.cid, data.size], [`${network} file`, file.cid, 25])
      const list = (await api.get(FILES, { cid: file.cid })).body.data.files
      assert.deepEqual(list, [data])
      assertError(await api.get(`/v3/files/${elsewhere}/${file.id}`), 404, NOT_FOUND)
      assertError(await api.delete(`/v3/files/${elsewhere}/${file.id}`), 404, NOT_FOUND)
    })
    it(`deleting a ${network} file keeps a file with the same content on the other network`, async () => {
      const doomed = await store(api, network, 'deleted on one network')
      const stays = await store(api, elsewhere, 'deleted on one network')
      const { status, headers, body } = await api.delete(`${FILES}/${doomed.id}`)
      assert.deepEqual([status, body], [200, { data: null }])
      assertError(await api.get(`${FILES}/${doomed.id}`), 404, NOT_FOUND)
      assertError(await api.delete(`${FILES}/${doomed.id}`), 404, NOT_FOUND)
      const removal = await api.finished(headers.get('operation-id') ?? '')
      assert.deepEqual([removal.kind, removal.state], ['pin.remove', 'succeeded'])
      assert.equal(await isPinned(CID.parse(doomed.cid), network), false)
      assert.equal((await api.get(`/v3/files/${elsewhere}/${stays.id}`)).status, 200)
      assert.equal(await isPinned(CID.parse(stays.cid), elsewhere), true)
      assert.equal((await api.get(FILES, { cid: doomed.cid })).body.data.files.length, 0)
    })
  })

  describe(`the list of ${network} files`, async () => {
    const own = await workspace()
    const group = (await own.api.post(`/v3/groups/${network}`, { name: 'listed' })).body.data.id
    const made: string[] = []
    for (let i = 0; i < 7; i++) {
      const details = {
        name: `Listed ${i}.txt`,
        keyvalues: { parity: i % 2 ? 'odd' : 'even', i: `${i}` },
        ...(i < 2 && { group_id: group }),
      }
      made.push((await store(own.api, network, `${network} listed ${i}`, details)).id)
    }
    const elsewhereFile = await store(own.api, elsewhere, `${network} listed 0`, { name: 'Listed 0.txt' })
    const found = async (query: string) => {
      const { status, body } = await own.api.get(FILES, query)
      assert.equal(status, 200, JSON.stringify(body))
      return body.data.files.map(({ id }: { id: string }) => made.indexOf(id))
    }

    const queries: [string, number[]][] = [
      ['', [6, 5, 4, 3, 2, 1, 0]],
      ['order=ASC', [0, 1, 2, 3, 4, 5, 6]],
      ['limit=2', [6, 5]],
      ['name=listed 3', [3]],
      ['keyvalues[parity]=odd', [5, 3, 1]],
      ['metadata[parity]=odd&keyvalues[i]=3', [3]],
      [`group=${group}`, [1, 0]],
      ['group=null', [6, 5, 4, 3, 2]],
      ['mimeType=text/plain', [6, 5, 4, 3, 2, 1, 0]],
      ['mimeType=image/png', []],
      ['cidPending=true', []],
      ['cidPending=false&limit=1', [6]],
      [`cid=${elsewhereFile.cid}`, [0]],
    ]
    for (const [query, expected] of queries)
      it(`the list of ${network} files finds ${expected.length} by ?${query}`, async () =>
        assert.deepEqual(await found(query), expected))

    it(`pages of ${network} files skip and repeat nothing`, async () => {
      for (const [order, expected] of [
        ['ASC', made],
        ['DESC', made.toReversed()],
      ] as const) {
        const pages = await collectPages(own.api, FILES, 'files', { order, limit: '3' })
        assert.deepEqual(
          pages.map(({ id }) => id),
          expected,
        )
      }
    })
  })
}

describe('unknown networks', () => {
  const id = '0191f0f0-0000-7000-8000-000000000000'
  for (const name of ['PUBLIC', 'ipfs', 'public%20', '%00']) {
    it(`the network name ${name} returns 400`, async () => {
      for (const path of [`/v3/files/${name}`, `/v3/groups/${name}`])
        assertError(await api.get(path), 400, UNKNOWN)
      for (const path of [`/v3/files/${name}/${id}`, `/v3/groups/${name}/${id}`]) {
        assertError(await api.get(path), 400, UNKNOWN)
        assertError(await api.put(path, { name: 'x' }), 400, UNKNOWN)
        assertError(await api.delete(path), 400, UNKNOWN)
      }
      assertError(await api.post(`/v3/groups/${name}`, { name: 'x' }), 400, UNKNOWN)
      assertError(await api.put(`/v3/groups/${name}/${id}/ids/${id}`), 400, UNKNOWN)
      assertError(await api.delete(`/v3/groups/${name}/${id}/ids/${id}`), 400, UNKNOWN)
    })
  }
})

describe('a pin request', () => {
  it('a pin request is not a file on either network until it is pinned', async () => {
    const { record } = await api.pin({ cid: `${await missingCid()}`, name: 'pending' })
    for (const network of NETWORKS) {
      assertError(await api.get(`/v3/files/${network}/${record.id}`), 404, NOT_FOUND)
      assertError(await api.delete(`/v3/files/${network}/${record.id}`), 404, NOT_FOUND)
      assert.deepEqual((await api.get(`/v3/files/${network}`, { name: 'pending' })).body.data.files, [])
    }
    assert.ok(await api.queued(record.id))
  })
  it('the private network has no pin queue', async () => {
    assertError(await api.get('/v3/files/private/pin_by_cid'), 404, NOT_FOUND)
    assertError(
      await api.post('/v3/files/private/pin_by_cid', { cid: `${await missingCid()}` }),
      405,
      'No such method here: POST /v3/files/private/pin_by_cid',
    )
  })
})
