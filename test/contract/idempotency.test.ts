/** `Idempotency-Key`: a repeated request finds the same operation. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { inlineCid, openContext } from './context.ts'

const PIN = '/v3/files/public/pin_by_cid'
const { workspace } = await openContext()
const { api } = await workspace()
const other = await workspace()
const cid = `${inlineCid('idempotency')}`
const pin = (key: string, body: object = {}, client = api) =>
  client.post(PIN, { cid, ...body }, { 'idempotency-key': key })

describe('an Idempotency-Key', () => {
  it('a repeat with an Idempotency-Key returns the first operation, even after it ends', async () => {
    const first = await pin('repeat', { name: 'a', keyvalues: { a: '1', b: '2' } })
    assert.equal(first.status, 200)
    const operation = first.headers.get('operation-id') ?? ''
    assert.equal((await api.finished(operation)).state, 'succeeded')
    const second = await pin('repeat', { keyvalues: { b: '2', a: '1' }, name: 'a' })
    assert.equal(second.headers.get('operation-id'), operation)
    assert.deepEqual(second.body.data, { ...first.body.data, status: 'pinned' })
    assert.equal((await api.get('/v3/files/public')).body.data.files.length, 1)
  })
  it('an Idempotency-Key with a different body returns 422', async () => {
    assert.equal((await pin('other')).status, 200)
    const bodies = [{ name: 'x' }, { keyvalues: { a: 'b' } }, { cid: `${inlineCid('other')}` }]
    for (const body of bodies) {
      const reply = await pin('other', body)
      assertError(reply, 422, 'Idempotency-Key: already used with another request')
      assert.equal(reply.headers.get('error-code'), 'idempotency_mismatch')
    }
  })
  it('twenty concurrent requests with one Idempotency-Key create one operation', async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => pin('at-once')))
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]))
    assert.equal(new Set(replies.map(({ headers }) => headers.get('operation-id'))).size, 1)
    assert.equal(new Set(replies.map(({ body }) => body.data.id)).size, 1)
  })
  it('two different requests at once with one Idempotency-Key: one is refused', async () => {
    const replies = await Promise.all(['x', 'y'].map((name) => pin('race', { name })))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 422])
  })
  it('each workspace has its own Idempotency-Keys', async () => {
    const [a, b] = [await pin('shared'), await pin('shared', { name: 'b' }, other.api)]
    assert.equal(b.status, 200)
    assert.notEqual(a.body.data.id, b.body.data.id)
  })
  it('a refused request does not use up its Idempotency-Key', async () => {
    assert.equal((await pin('refused', { name: 5 })).status, 400)
    assert.equal((await pin('refused', { group_id: '0191f0f0-0000-7000-8000-000000000000' })).status, 404)
    assert.equal((await pin('refused')).status, 200)
  })
  it('an Idempotency-Key of a deleted pin returns 404', async () => {
    const { body, headers } = await pin('deleted')
    await api.finished(headers.get('operation-id') ?? '')
    assert.equal((await api.delete(`/v3/files/public/${body.data.id}`)).status, 200)
    assertError(await pin('deleted'), 404, 'The pin that this Idempotency-Key made was deleted')
  })
  it('a repeat with an Idempotency-Key may wait for the operation', async () => {
    const headers = { 'idempotency-key': 'wait', prefer: 'wait=30' }
    const replies = await Promise.all([1, 2, 3].map(() => api.post(PIN, { cid }, headers)))
    for (const { body } of replies) assert.equal(body.data.status, 'pinned')
  })
  for (const key of ['', 'a b', 'x'.repeat(256), 'é'])
    it(`the Idempotency-Key ${JSON.stringify(key.slice(0, 10))} is refused`, async () => {
      const message = 'Idempotency-Key: must be 1 to 255 visible ASCII characters'
      assertError(await pin(key), 400, message)
    })
  it('an Idempotency-Key may have 255 characters', async () =>
    assert.equal((await pin('x'.repeat(255))).status, 200))
})
