/** Swapped content as readers get it: at gateways with and without the plugin, on both networks. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { base58btc } from 'multiformats/bases/base58'
import type { CID } from 'multiformats/cid'
import { assertError } from '../support/client.ts'
import { assertRefused, gatewayReader } from '../support/gateway.ts'
import { inlineCid, openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { file, upload } from './upload-form.ts'

const context = await openContext()
const mine = await context.workspace()
const { api } = mine
const plain = await openGateway(context, mine)
const [own] = (await api.get('/v3/gateways')).body.data.rows
const swapping = gatewayReader(context.url, `${own.host}:${new URL(context.url).port}`)

let made = 0
/** A new public file, and its text. */
async function newFile(): Promise<{ cid: CID; text: string; id: string }> {
  const text = `served ${++made}`
  const cid = inlineCid(text)
  const { record } = await api.pin({ cid: `${cid}` }, { wait: 120 })
  assert.equal(record.status, 'pinned')
  return { cid, text, id: record.id }
}
async function swap(from: CID, to: CID): Promise<void> {
  assert.equal((await api.put(`/v3/files/public/swap/${from}`, { swap_cid: `${to}` })).status, 200)
}
const read = async (cid: { toString(): string }, gateway = swapping) => {
  const { status, text } = await gateway.get(`/ipfs/${cid}`)
  assert.equal(status, 200, text)
  return text
}
const remove = async (id: string) => assert.equal((await api.delete(`/v3/files/public/${id}`)).status, 200)

describe('a swapped CID', () => {
  it('a swapped CID is served from its newest target, in any spelling, until the swap is removed', async () => {
    const [a, b, c] = [await newFile(), await newFile(), await newFile()]
    assert.equal(await read(a.cid), a.text)
    await swap(a.cid, b.cid)
    assert.equal(await read(a.cid), b.text)
    await swap(a.cid, c.cid)
    assert.equal(await read(a.cid.toString(base58btc)), c.text)
    assert.equal((await api.delete(`/v3/files/public/swap/${a.cid}`)).status, 200)
    assert.equal(await read(a.cid), a.text)
  })
  it('a swapped CID has the ETag of its target, and is not cached for long', async () => {
    const [a, b] = [await newFile(), await newFile()]
    const before = await swapping.get(`/ipfs/${a.cid}`)
    await swap(a.cid, b.cid)
    const { headers } = await swapping.get(`/ipfs/${a.cid}`)
    assert.deepEqual([headers.etag, headers['x-ipfs-roots']], [`"${b.cid}"`, `${b.cid}`])
    for (const asked of [a, await newFile()]) {
      const answer = await swapping.get(`/ipfs/${asked.cid}`)
      assert.equal(answer.headers['cache-control'], 'public, max-age=60')
    }
    const again = await swapping.get(`/ipfs/${a.cid}`, { 'if-none-match': before.headers.etag ?? '' })
    assert.deepEqual([again.status, again.text], [200, b.text])
  })
  it('a swap is followed for one step only', async () => {
    const [a, b, c] = [await newFile(), await newFile(), await newFile()]
    await swap(a.cid, b.cid)
    await swap(b.cid, c.cid)
    await swap(c.cid, a.cid)
    assert.deepEqual([await read(a.cid), await read(b.cid), await read(c.cid)], [b.text, c.text, a.text])
  })
  it('a gateway without the plugin serves a swapped CID from its own content', async () => {
    const [a, b] = [await newFile(), await newFile()]
    await swap(a.cid, b.cid)
    assert.equal(await read(a.cid, plain), a.text)
    const plugin = `/v3/gateways/plugins/${plain.id}`
    assert.equal((await api.post(plugin, { plugin_id: 2 })).status, 200)
    assert.equal(await read(a.cid, plain), b.text)
    assert.equal((await api.delete(`${plugin}/plugin/2`)).status, 200)
    assert.equal(await read(a.cid, plain), a.text)
  })
  it("a swapped CID needs its target's file, but not its own", async () => {
    const [a, b] = [await newFile(), await newFile()]
    await swap(a.cid, b.cid)
    await remove(a.id)
    assert.equal(await read(a.cid), b.text)
    await remove(b.id)
    assertRefused(await swapping.get(`/ipfs/${a.cid}`), 404, 'cid: not kept here')
  })
})

describe('swaps of private files', () => {
  it('the signed URL of a private file serves the file it was swapped to', async () => {
    const [a, b] = [
      await upload(api, ['network', 'private'], file('private before')),
      await upload(api, ['network', 'private'], file('private after')),
    ]
    const path = `/v3/files/private/swap/${a.cid}`
    const swapped = await api.put(path, { swap_cid: b.cid })
    assert.equal(swapped.status, 200)
    assert.deepEqual((await api.get(path, { domain: own.domain })).body, { data: [swapped.body.data] })
    const url = `http://${swapping.host}/files/${a.cid}`
    const date = Math.floor(Date.now() / 1000)
    const link = await api.post('/v3/files/private/download_link', { url, date, expires: 60, method: 'GET' })
    const signed = new URL(link.body.data)
    const served = await swapping.get(`${signed.pathname}${signed.search}`)
    assert.deepEqual([served.status, served.text], [200, 'private after'])
  })
  it('only its own workspace can read the history of a private swap', async () => {
    const [a, b] = [
      await upload(api, ['network', 'private'], file('for nobody')),
      await upload(api, ['network', 'private'], file('nor this')),
    ]
    const path = `/v3/files/private/swap/${a.cid}`
    assert.equal((await api.put(path, { swap_cid: b.cid })).status, 200)
    const query = { domain: own.domain }
    assert.equal((await api.get(path, query)).body.data[0].mapped_cid, b.cid)
    const { api: stranger } = await context.workspace()
    assertError(await stranger.get(path, query), 404, 'CID does not have history')
  })
})
