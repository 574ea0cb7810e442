/** Signatures of content that its owner added. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { base58btc } from 'multiformats/bases/base58'
import { CID } from 'multiformats/cid'
import { assertError } from '../support/client.ts'
import { openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { NETWORKS, store } from './stored.ts'
import { file, upload } from './upload-form.ts'

const context = await openContext()
const { sql, workspace } = context
const mine = await workspace()
const { api } = mine

const hex = (bytes: number) => `0x${randomBytes(bytes).toString('hex')}`
const newSigned = () => ({ signature: hex(65), address: hex(20) })
const pathOf = (cid: unknown, network = 'public') => `/v3/files/${network}/signature/${cid}`
const newFile = async (network: 'public' | 'private' = 'public') =>
  (await store(api, network, randomUUID())).cid

describe('a signature', () => {
  for (const network of NETWORKS)
    it(`a signature of a ${network} file is added, read and removed`, async () => {
      const cid = await newFile(network)
      const path = pathOf(cid, network)
      const signed = newSigned()
      assertError(await api.get(path), 404, 'cid: has no signature')
      const { status, body } = await api.post(path, signed)
      assert.deepEqual([status, body], [200, { data: { cid, ...signed } }])
      assert.deepEqual((await api.get(path)).body, body)
      const spelled = CID.parse(cid).toString(base58btc)
      assert.deepEqual((await api.get(pathOf(spelled, network))).body, { data: { cid: spelled, ...signed } })
      const removed = await api.delete(path)
      assert.deepEqual([removed.status, removed.body], [200, { data: null }])
      for (const reply of [await api.get(path), await api.delete(path)])
        assertError(reply, 404, 'cid: has no signature')
      assert.equal((await api.post(path, newSigned())).status, 200)
    })
  it('a signature may be added again unchanged, but a different one returns 409', async () => {
    const path = pathOf(await newFile())
    const signed = newSigned()
    for (let i = 0; i < 2; i++) assert.equal((await api.post(path, signed)).status, 200)
    for (const change of [{ signature: hex(65) }, { address: hex(20) }])
      assertError(await api.post(path, { ...signed, ...change }), 409, 'cid: has a signature already')
    assert.deepEqual((await api.get(path)).body.data.signature, signed.signature)
  })
  it('several signatures added to a CID at once: one is stored', async () => {
    const path = pathOf(await newFile())
    const replies = await Promise.all([1, 2, 3, 4].map(() => api.post(path, newSigned())))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409, 409, 409])
  })
  it('gateways with the plugin send the signature of what they serve in a header', async () => {
    const [signed, plain] = [await newFile(), await newFile()]
    const { signature } = (await api.post(pathOf(signed), newSigned())).body.data
    const gateway = await openGateway(context, mine)
    const shown = async (cid: string) => (await gateway.head(`/ipfs/${cid}`)).headers['pinata-signature']
    assert.equal(await shown(signed), undefined)
    const plugins = `/v3/gateways/plugins/${gateway.id}`
    assert.equal((await api.post(plugins, { plugin_id: 1 })).status, 200)
    assert.equal(await shown(signed), signature)
    assert.equal(await shown(plain), undefined)
    const { headers } = await gateway.get(`/ipfs/${signed}`, { 'if-none-match': `"${signed}"` })
    assert.equal(headers['pinata-signature'], signature)
    assert.match(`${headers['access-control-expose-headers']}`, /Pinata-Signature/)
    assert.equal((await api.put(`/v3/files/public/swap/${plain}`, { swap_cid: signed })).status, 200)
    await api.post(plugins, { plugin_id: 2 })
    assert.equal(await shown(plain), signature)
    assert.equal((await api.delete(`${plugins}/plugin/1`)).status, 200)
    assert.equal(await shown(signed), undefined)
  })
  it('a gateway sends the signature of an inner CID even if its own file is deleted', async () => {
    const content = randomUUID()
    const { id, cid } = await store(api, 'public', content)
    const { signature } = (await api.post(pathOf(cid), newSigned())).body.data
    assert.equal((await api.delete(`/v3/files/public/${id}`)).status, 200)
    await upload(api, file(content, 'root/a.txt'), ['network', 'public'])
    const gateway = await openGateway(context, mine)
    await api.post(`/v3/gateways/plugins/${gateway.id}`, { plugin_id: 1 })
    await api.request('PATCH', `/v3/gateways/${gateway.id}`, { json: { inner_cids: true } })
    const { status, headers } = await gateway.head(`/ipfs/${cid}`)
    assert.deepEqual([status, headers['pinata-signature']], [200, signature])
  })
  it('a signature stays when its file is deleted', async () => {
    const { id, cid } = await store(api, 'public', randomUUID())
    await api.post(pathOf(cid), newSigned())
    assert.equal((await api.delete(`/v3/files/public/${id}`)).status, 200)
    assert.equal((await api.get(pathOf(cid))).status, 200)
    const rows = await sql('SELECT FROM cid_signature WHERE workspace_id = $1 AND cid_v1 = $2', [
      mine.id,
      cid,
    ])
    assert.equal(rows.length, 1)
  })

  it('a signature returns 400 for an invalid CID', async () =>
    assertError(await api.post(pathOf('x'), newSigned()), 400, /^cid: not a CID/))
})
