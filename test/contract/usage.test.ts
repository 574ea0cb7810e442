/** The key test, and the totals of stored content. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { missingCid, openContext } from './context.ts'
import { NETWORKS, store } from './stored.ts'

const { anonymous, workspace } = await openContext()
const { api, created, keyed, member } = await workspace()

const DATA = ['/data', '/v3/data']

describe('the key test', () => {
  for (const path of DATA.map((prefix) => `${prefix}/testAuthentication`)) {
    it(`${path} congratulates every valid key`, async () => {
      for (const client of [api, await keyed('org:groups:read'), await keyed('org:analytics:read')]) {
        const { status, body } = await client.get(path)
        const message = 'Congratulations! You are communicating with the Pinata API!'
        assert.deepEqual([status, body], [200, { message }])
      }
    })
    it(`${path} returns 401 without a key, and for a malformed one`, async () => {
      assertError(await anonymous.get(path), 401, /^Missing Authorization header/)
      assertError(await anonymous.as('no-key').get(path), 401, 'Invalid, expired or revoked API key')
    })
  }
  it('the key test accepts the key of a viewer', async () => {
    const { name: user } = await member('viewer')
    const client = await created({ user })
    assert.equal((await client.get('/data/testAuthentication')).status, 200)
  })
})

describe('usage', () => {
  const used = async (client = api) => {
    const { body } = await client.get('/v3/usage')
    return [body.data.files, body.data.bytes]
  }

  it('usage starts at zero', async () => {
    const { api } = await workspace()
    assert.deepEqual(await used(api), [0, 0])
    for (const prefix of DATA) {
      assert.deepEqual((await api.get(`${prefix}/userPinnedDataTotal`)).body, {
        pin_count: 0,
        pin_size_total: 0,
        pin_size_with_replications_total: 0,
      })
    }
  })

  it('usage counts the pinned files of both networks', async () => {
    const { api } = await workspace()
    const other = await workspace()
    const files = []
    for (const network of NETWORKS) files.push(await store(api, network, `${network} of some bytes`))
    await store(other.api, 'public', 'of another workspace')
    await api.pin({ cid: `${await missingCid()}` })
    const bytes = 'public of some bytes'.length + 'private of some bytes'.length
    assert.deepEqual(await used(api), [2, bytes])
    for (const prefix of DATA) {
      assert.deepEqual((await api.get(`${prefix}/userPinnedDataTotal`)).body, {
        pin_count: 2,
        pin_size_total: bytes,
        pin_size_with_replications_total: bytes,
      })
    }
    await api.delete(`/v3/files/public/${files[0].id}`)
    assert.deepEqual(await used(api), [1, 'private of some bytes'.length])
  })

  it('usage includes the limits of the plan', async () => {
    assert.deepEqual((await api.get('/v3/usage')).body.data, {
      plan: 'unlimited',
      files: 0,
      bytes: 0,
      limit_bytes: null,
      max_file_bytes: null,
    })
    const free = await workspace('free')
    const { data } = (await free.api.get('/v3/usage')).body
    assert.deepEqual([data.plan, data.limit_bytes, data.max_file_bytes], ['free', 2 ** 30, 2 ** 30])
  })
})
