/** Content at a host of its own: `<cid>.ipfs.<gateway's host>`, where a page may link from its root. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertRefused, gatewayReader } from '../support/gateway.ts'
import { inlineCid, missingCid, openContext } from './context.ts'
import { openGateway } from './gateway.ts'

const context = await openContext()
const { url } = context
const workspace = await context.workspace()
const gateway = await openGateway(context, workspace)
const node = await context.provider()
const site = await node.folder({
  'index.html': Buffer.from('<link href="/style.css">'),
  'style.css': Buffer.from('a{}'),
  'plain/a.txt': Buffer.from('a'),
})
const file = inlineCid('a file')
for (const cid of [site, file])
  await workspace.api.pin({ cid: `${cid}`, host_nodes: [node.multiaddr] }, { wait: 120 })
const at = (cid: unknown, label = 'ipfs') => gatewayReader(url, `${cid}.${label}.${gateway.host}`)

describe("a CID's host at a gateway", () => {
  it("a CID's host at a gateway has a folder at its root", async () => {
    const { status, text, headers } = await at(site.toV1()).get('/')
    assert.deepEqual([status, text], [200, '<link href="/style.css">'])
    assert.equal(headers['x-ipfs-path'], `/ipfs/${site.toV1()}/`)
    assert.equal((await at(site.toV1()).get('/style.css')).text, 'a{}')
    assert.equal((await at(`${site.toV1()}`.toUpperCase()).get('/style.css')).text, 'a{}')
  })
  it("a CID's host at a gateway leads to folders below it, with a slash", async () => {
    const { status, headers } = await at(site.toV1()).get('/plain?a=b')
    assert.deepEqual([status, headers.location], [301, '/plain/?a=b'])
    assert.match((await at(site.toV1()).get('/plain/')).text, /href="\/plain\/a\.txt"/)
  })
  it("a CID's host at a gateway does not lead to a host that is named like a folder", async () => {
    for (const slashes of ['//', '///', '/.//', '/%2e//']) {
      const { status, headers } = await at(site.toV1()).get(`${slashes}plain?a=b`)
      assert.deepEqual([status, headers.location], [301, '/plain/?a=b'], slashes)
    }
  })
  it("a CID's host at a gateway is a file, where that is what the CID is", async () => {
    assert.equal((await at(file).get('/')).text, 'a file')
    assert.equal((await at(file).get('/x')).status, 404)
  })
  it("a CID's host at a gateway has nothing but its content", async () => {
    for (const path of [`/ipfs/${file}`, `/../${file}`, `/../../ipfs/${file}`, `/files/${file}`])
      assert.equal((await at(site.toV1()).get(path)).status, 404, path)
  })
  it("a CID's host at a gateway is 404 for what the workspace does not keep, and 400 for what is no CID", async () => {
    assertRefused(await at((await missingCid()).toV1()).get('/'), 404, 'cid: not kept here')
    assertRefused(await at('bafy').get('/'), 400, /^cid: not a CID/)
    assertRefused(await at(site.toV1(), 'ipns').get('/'), 404, 'There is no gateway at this host')
  })
})
