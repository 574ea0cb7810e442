/** The two networks: each has its own files, at the same routes. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { assertError } from '../support/client.ts'
import { missingCid, openContext } from './context.ts'
import { NETWORKS, store } from './stored.ts'

const NOT_FOUND = 'There is no such file'

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
}

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
