/** Sites at CID hosts: `_redirects`. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertRefused, gatewayReader } from '../support/gateway.ts'
import { openContext } from './context.ts'
import { openGateway } from './gateway.ts'

const context = await openContext()
const node = await context.provider()
const workspace = await context.workspace()
const gateway = await openGateway(context, workspace)

const RULES = `# the rules of a site
/one /1.html
/two /2.html 302
/year/:y/:name /archive/:name/:y 308
/app/* /index.html 200
/gone/* /410.html 410
/folder /plain 200
/nowhere /missing.html 200
/away https://example.net/there
/host //example.net/there
/slashes /\\\\example.net/there
/* /404.html 404
`

async function site(rules: string) {
  const files = {
    _redirects: rules,
    'index.html': '<p>index',
    '404.html': '<p>nothing here',
    '410.html': '<p>gone',
    'plain/a.txt': 'a',
  }
  const cid = await node.folder(
    Object.fromEntries(Object.entries(files).map(([k, v]) => [k, Buffer.from(v)])),
  )
  const { record } = await workspace.api.pin({ cid: `${cid}`, host_nodes: [node.multiaddr] }, { wait: 120 })
  assert.equal(record.status, 'pinned')
  return { cid, at: gatewayReader(context.url, `${cid}.ipfs.${gateway.host}`) }
}

describe('the rules of a site', async () => {
  const { cid, at } = await site(RULES)

  it('the rules of a site redirect missing paths', async () => {
    const redirects: [string, number, string][] = [
      ['/one', 301, '/1.html'],
      ['/one/', 301, '/1.html'],
      ['/two?a=1', 302, '/2.html?a=1'],
      ['/year/2026/a%20b', 308, '/archive/a%20b/2026'],
      ['/away', 301, 'https://example.net/there'],
      ['/host', 301, '/example.net/there'],
      ['/slashes', 301, '/example.net/there'],
    ]
    for (const [path, status, location] of redirects) {
      const served = await at.get(path)
      assert.deepEqual([served.status, served.headers.location], [status, location], path)
    }
  })

  it('the rules of a site serve other content under a path', async () => {
    const { status, text, headers } = await at.get('/app/any/where')
    assert.deepEqual([status, text], [200, '<p>index'])
    assert.equal(headers['x-ipfs-path'], `/ipfs/${cid}/app/any/where`)
    const again = await at.get('/app/else', { 'if-none-match': `${headers.etag}` })
    assert.equal(again.status, 304)
    assert.match((await at.get('/folder')).text, /Index of/)
  })

  it('the rules of a site define pages for missing paths', async () => {
    const missing = await at.get('/some/where')
    assert.deepEqual([missing.status, missing.text], [404, '<p>nothing here'])
    assert.equal(missing.headers['cache-control'], 'public, max-age=29030400, immutable')
    const etag = `${missing.headers.etag}`
    assert.equal((await at.get('/some/where', { 'if-none-match': etag, range: 'bytes=0-1' })).status, 404)
    assert.equal((await at.head('/gone/for/good')).status, 410)
    assertRefused(await at.get('/nowhere'), 404, 'path: does not exist')
  })

  it('the rules of a site do not apply to existing files, to blocks, or at shared origins', async () => {
    assert.equal((await at.get('/')).text, '<p>index')
    assert.equal((await at.get('/plain/a.txt')).text, 'a')
    assertRefused(await at.get('/one?format=raw'), 404, 'path: does not exist')
    assertRefused(await gateway.get(`/ipfs/${cid}/one`), 404, 'path: does not exist')
  })

  it('a redirect to another host drops the gateway token', async () => {
    const { headers } = await at.get('/away?pinataGatewayToken=secret&a=1')
    assert.equal(headers.location, 'https://example.net/there?a=1')
    const { headers: inside } = await at.get('/one?pinataGatewayToken=token')
    assert.equal(inside.location, '/1.html?pinataGatewayToken=token')
  })
})

describe('invalid rules', () => {
  it('invalid rules are reported only on paths that need them', async () => {
    const { at } = await site('/a /b 301!')
    assertRefused(await at.get('/a'), 500, 'could not parse _redirects: line 1: status 301! is not supported')
    assert.equal((await at.get('/plain/a.txt')).status, 200)
  })
  it('rules above 64 KiB are refused', async () => {
    const { at } = await site('/a /b\n'.repeat(12_000))
    assertRefused(await at.get('/a'), 500, /redirects file size cannot exceed 65536 bytes$/)
  })
})
