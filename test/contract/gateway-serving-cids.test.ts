/** Content at its own host, `<cid>.ipfs.<gateway's host>`, where pages may use links from the root. */
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
  it("a CID's host at a gateway serves a folder at its root", async () => {
    const { status, text, headers } = await at(site.toV1()).get('/')
    assert.deepEqual([status, text], [200, '<link href="/style.css">'])
    assert.equal(headers['x-ipfs-path'], `/ipfs/${site.toV1()}/`)
    assert.equal((await at(site.toV1()).get('/style.css')).text, 'a{}')
    assert.equal((await at(`${site.toV1()}`.toUpperCase()).get('/style.css')).text, 'a{}')
  })
  it("a CID's host at a gateway redirects to subfolders with a slash", async () => {
    const { status, headers } = await at(site.toV1()).get('/plain?a=b')
    assert.deepEqual([status, headers.location], [301, '/plain/?a=b'])
    assert.match((await at(site.toV1()).get('/plain/')).text, /href="\/plain\/a\.txt"/)
  })
  it("a CID's host at a gateway does not redirect to a host named like a folder", async () => {
    for (const slashes of ['//', '///', '/.//', '/%2e//']) {
      const { status, headers } = await at(site.toV1()).get(`${slashes}plain?a=b`)
      assert.deepEqual([status, headers.location], [301, '/plain/?a=b'], slashes)
    }
  })
  it("a CID's host at a gateway serves a file at its root if the CID is a file", async () => {
    assert.equal((await at(file).get('/')).text, 'a file')
    assert.equal((await at(file).get('/x')).status, 404)
  })
  it("a CID's host at a gateway serves only its own content", async () => {
    for (const path of [`/ipfs/${file}`, `/../${file}`, `/../../ipfs/${file}`, `/files/${file}`])
      assert.equal((await at(site.toV1()).get(path)).status, 404, path)
  })
  it("a CID's host at a gateway returns 404 for missing content, and 400 for an invalid CID", async () => {
    assertRefused(await at((await missingCid()).toV1()).get('/'), 404, 'cid: not kept here')
    assertRefused(await at('bafy').get('/'), 400, /^cid: not a CID/)
    assertRefused(await at(site.toV1(), 'ipns').get('/'), 404, 'There is no gateway at this host')
  })
})
