/** Options for a gateway's owner: serving inner CIDs directly, and a host for each CID. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CID } from 'multiformats/cid'
import { assertError } from '../support/client.ts'
import { assertRefused, gatewayReader } from '../support/gateway.ts'
import { until } from '../support/processes.ts'
import { inlineCid, missingCid, openContext, type Workspace } from './context.ts'
import { openGateway } from './gateway.ts'

const context = await openContext()
const node = await context.provider()
const workspace = await context.workspace()
const other = await context.workspace()
const pin = async ({ api }: Workspace, cid: CID) => {
  const wanted = { cid: `${cid}`, host_nodes: [node.multiaddr] }
  const { record } = await api.pin(wanted, { wait: 120 })
  assert.equal(record.status, 'pinned')
  return record.id
}
const change = ({ api }: Workspace, id: string, json: object) =>
  api.request('PATCH', `/v3/gateways/${id}`, { json })

const NOT_KEPT = 'cid: not kept here'
const own = await node.folder({ 'sub/a.txt': Buffer.from('a in own'), 'b.json': Buffer.from('{"b":1}') })
const foreign = await node.folder({ 'sub/a.txt': Buffer.from('a in foreign') })
await pin(workspace, own)
await pin(other, foreign)
const [json, sub] = (await node.links(own)) as [CID, CID]
const [text] = (await node.links(sub)) as [CID]
const [foreignSub] = (await node.links(foreign)) as [CID]

describe('a CID within a file', async () => {
  const gateway = await openGateway(context, workspace)

  it('a CID within a file is not served directly by default, only through the path from its file', async () => {
    for (const cid of [sub, text]) assertRefused(await gateway.get(`/ipfs/${cid}`), 404, NOT_KEPT)
    assert.equal((await gateway.get(`/ipfs/${own}/sub/a.txt`)).text, 'a in own')
  })

  it("a CID within a file is served directly once the gateway's owner allows it", async () => {
    const { status, body } = await change(workspace, gateway.id, { inner_cids: true })
    assert.deepEqual([status, body], [200, { data: { inner_cids: true, cid_hosts: false } }])
    assert.equal((await gateway.get(`/ipfs/${text}`)).text, 'a in own')
    assert.equal((await gateway.get(`/ipfs/${sub}/a.txt`)).text, 'a in own')
    assert.equal((await gateway.get(`/ipfs/${sub}?format=car`)).status, 200)
    const served = await gateway.get(`/ipfs/${json}`)
    assert.deepEqual([served.text, served.headers['content-type']], ['{"b":1}', 'application/json'])
    const { text: page } = await gateway.get(`/ipfs/${sub}/`)
    assert.ok(page.includes(`<a class="ipfs-hash" translate="no" href="/ipfs/${text}?filename=a.txt">`), page)
  })

  it('a CID within a file of another workspace, or of no file, is not served directly', async () => {
    const [inner] = (await node.links(foreignSub)) as [CID]
    for (const cid of [foreign, foreignSub, inner, await missingCid(), inlineCid('not kept by anyone')])
      assertRefused(await gateway.get(`/ipfs/${cid}`), 404, NOT_KEPT)
    assert.equal((await gateway.head(`/ipfs/${inner}`, { 'cache-control': 'only-if-cached' })).status, 412)
  })

  it('a CID within a file is not served once the file is deleted', async () => {
    const doomed = await node.folder({ 'only/here.txt': Buffer.from('only here') })
    const [inner] = (await node.links(doomed)) as [CID]
    const id = await pin(workspace, doomed)
    assert.equal((await gateway.get(`/ipfs/${inner}/here.txt`)).text, 'only here')
    await workspace.api.delete(`/v3/files/public/${id}`)
    assertRefused(await gateway.get(`/ipfs/${inner}/here.txt`), 404, NOT_KEPT)
  })

  it("a CID within a file is no longer served directly once the gateway's owner disables it", async () => {
    await change(workspace, gateway.id, { inner_cids: false })
    await until('the gateway is as before', async () => (await gateway.get(`/ipfs/${text}`)).status === 404)
  })
})

describe('a gateway with a host for each CID', async () => {
  const gateway = await openGateway(context, workspace)
  await change(workspace, gateway.id, { cid_hosts: true })
  const scheme = 'http'

  it('a gateway with a host for each CID redirects paths to that host', async () => {
    for (const rest of ['/', '/sub/a%20b+c?x=1%202&y', '/sub?format=car']) {
      const { status, headers } = await gateway.get(`/ipfs/${own}${rest}`)
      assert.deepEqual([status, headers.location], [301, `${scheme}://${own}.ipfs.${gateway.host}${rest}`])
    }
    const bare = await gateway.get(`/ipfs/${own}`)
    assert.equal(bare.headers.location, `${scheme}://${own}.ipfs.${gateway.host}/`)
    const at = gatewayReader(context.url, `${own}.ipfs.${gateway.host}`)
    assert.equal((await at.get('/sub/a.txt')).text, 'a in own')
  })

  it('a gateway with a host for each CID explains in text what is wrong with a path', async () => {
    const { status, headers, text: words } = await gateway.get('/ipfs/QmInvalidCID')
    assert.equal(status, 400)
    assert.equal(headers['content-type'], 'text/plain; charset=utf-8')
    assert.match(words, /^invalid path "\/ipfs\/QmInvalidCID": cid: /)
    const long = inlineCid('n'.repeat(60))
    const message = /CID incompatible with DNS label length limit of 63$/
    assertRefused(await gateway.get(`/ipfs/${long}`), 400, message)
    const at = gatewayReader(context.url, `${long}.ipfs.${gateway.host}`)
    assert.match((await at.get('/')).text, /CID incompatible with DNS label length limit of 63/)
  })

  it('a gateway with a host for each CID redirects before it checks for content', async () => {
    assert.equal((await gateway.get(`/ipfs/${await missingCid()}`)).status, 301)
  })
})

it('an ipfs:// link that a browser passes on is redirected to its path', async () => {
  const gateway = await openGateway(context, workspace)
  for (const path of ['/ipfs/', '/ipfs']) {
    const uri = encodeURIComponent(`ipfs://${own}/sub/a.txt?x=1`)
    const { status, headers } = await gateway.get(`${path}?uri=${uri}`)
    assert.deepEqual([status, headers.location], [301, `/ipfs/${own}/sub/a.txt?x=1`])
  }
  assertRefused(await gateway.get('/ipfs/?uri=https%3A%2F%2Fexample.com%2F'), 400, /^cid: /)
})

it('only keys of the workspace that may write gateways change what a gateway serves', async () => {
  const { id } = await openGateway(context, workspace)
  assertError(await change(other, id, { inner_cids: true }), 404, 'There is no such gateway')
  assertError(await change(workspace, id, { inner_cids: 'yes' }), 400, /^inner_cids: /)
  const reader = await workspace.keyed('org:gateways:read')
  assert.equal((await reader.request('PATCH', `/v3/gateways/${id}`, { json: {} })).status, 403)
  const { body } = await workspace.api.get(`/v3/gateways/${id}`)
  assert.deepEqual([body.data.inner_cids, body.data.cid_hosts], [false, false])
})
