/** Files at a gateway: which bytes are sent, and with which headers (reference of the path gateway). */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { base16upper } from 'multiformats/bases/base16'
import { base36 } from 'multiformats/bases/base36'
import { base58btc } from 'multiformats/bases/base58'
import { CID } from 'multiformats/cid'
import { assertRefused } from '../support/gateway.ts'
import { inlineCid, missingCid, openContext } from './context.ts'
import { openGateway } from './gateway.ts'

const context = await openContext()
const workspace = await context.workspace()
const gateway = await openGateway(context, workspace)
const node = await context.provider()

/** Several blocks, the last one not full. Its first bytes match no file type. */
const large = randomBytes(2_500_000).fill(7, 0, 2)
const text = Buffer.from('Ein kleiner Text, größer als nichts.\n')
const page = '<!doctype html><script>document.title = "ran"</script>'
const files = {
  'index.txt': text,
  'site.css': Buffer.from('a{}'),
  'a b/größe & mehr?#.txt': Buffer.from('odd'),
  'a b/100%.bin': Buffer.from([0, 255, 254]),
  'c^d.txt': Buffer.from('caret'),
  'e\\f.txt': Buffer.from('backslash'),
  ' g ': Buffer.from('spaces'),
  'no-extension': Buffer.from('{"a":1}'),
  'page.html': Buffer.from(page),
  'drawing.svg': Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
  'deep/er/file.bin': large,
}
const pin = async (cid: CID, name?: string) => {
  const { record } = await workspace.api.pin(
    { cid: `${cid}`, host_nodes: [node.multiaddr], ...(name && { name }) },
    { wait: 120 },
  )
  assert.equal(record.status, 'pinned')
  return cid
}
const [largeCid, textCid, folder, empty] = await Promise.all([
  node.file(large).then((cid) => pin(cid)),
  node.file(text).then((cid) => pin(cid, 'notes.txt')),
  node.folder(files).then((cid) => pin(cid)),
  node.file(Buffer.alloc(0)).then((cid) => pin(cid)),
])
const LARGE = `/ipfs/${largeCid}`
const TEXT = `/ipfs/${textCid}`

describe('a file', () => {
  it('a file is served whole, with its headers', async () => {
    const { status, headers, bytes } = await gateway.get(LARGE)
    assert.equal(status, 200)
    assert.ok(bytes.equals(large))
    assert.equal(headers['content-length'], `${large.length}`)
    assert.equal(headers['content-type'], 'application/octet-stream')
    assert.equal(headers.etag, `"${largeCid}"`)
    assert.equal(headers['accept-ranges'], 'bytes')
    assert.equal(headers['x-ipfs-path'], LARGE)
    assert.equal(headers['x-ipfs-roots'], `${largeCid}`)
    assert.match(`${headers['x-request-id']}`, /^[0-9a-f]{32}$/)
  })

  it('a file is cached forever, because the content of a CID never changes', async () => {
    assert.equal((await gateway.get(TEXT)).headers['cache-control'], 'public, max-age=29030400, immutable')
  })

  it('a file may be read by any site, and browsers must not guess its type', async () => {
    const { headers } = await gateway.get(TEXT)
    assert.equal(headers['content-type'], 'text/plain; charset=utf-8')
    assert.equal(headers['access-control-allow-origin'], '*')
    assert.match(`${headers['access-control-expose-headers']}`, /X-Ipfs-Roots/)
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal(headers['x-powered-by'], undefined)
    assert.equal(headers['strict-transport-security'], undefined)
  })

  it('a file is found by every spelling of its CID', async () => {
    const v0 = await node.folder({ 'a.txt': text }).then((cid) => pin(cid))
    const spellings = [
      v0.toV0().toString(),
      v0.toString(base36),
      v0.toString(base58btc),
      v0.toString(base16upper),
      v0.toString().toUpperCase().replace(/^B/, 'B'),
    ]
    for (const spelling of spellings) {
      const { status, text: body } = await gateway.get(`/ipfs/${encodeURIComponent(spelling)}/a.txt`)
      assert.equal(status, 200, spelling)
      assert.equal(body, text.toString())
    }
  })

  it('a file may be empty, or contained in its CID', async () => {
    const nothing = await gateway.get(`/ipfs/${empty}`)
    assert.equal(nothing.status, 200)
    assert.equal(nothing.headers['content-length'], '0')
    const inline = await pin(inlineCid('contained in the CID'))
    assert.equal((await gateway.get(`/ipfs/${inline}`)).text, 'contained in the CID')
  })

  it('HEAD returns the same headers as GET', async () => {
    for (const path of [
      LARGE,
      TEXT,
      `/ipfs/${folder}/`,
      `/ipfs/${folder}/no-extension`,
      `${TEXT}?format=raw`,
    ]) {
      const [get, head] = await Promise.all([gateway.get(path), gateway.head(path)])
      assert.equal(head.status, 200)
      assert.equal(head.bytes.length, 0)
      for (const name of ['date', 'x-request-id', 'transfer-encoding']) {
        delete get.headers[name]
        delete head.headers[name]
      }
      assert.deepEqual(head.headers, get.headers, path)
    }
  })
})

describe('a path', () => {
  it('a path finds files by name, whatever characters the name has', async () => {
    for (const [name, content] of Object.entries(files)) {
      const path = name.split('/').map(encodeURIComponent).join('/')
      const { status, bytes } = await gateway.get(`/ipfs/${folder}/${path}`)
      assert.equal(status, 200, name)
      assert.ok(bytes.equals(content), name)
    }
  })

  it('the type of a path is derived from its name, or from its first bytes', async () => {
    const types = {
      'site.css': 'text/css; charset=utf-8',
      'page.html': 'text/html; charset=utf-8',
      'drawing.svg': 'image/svg+xml',
      'no-extension': 'application/json',
      'a%20b/100%25.bin': 'application/octet-stream',
    }
    for (const [path, type] of Object.entries(types)) {
      assert.equal((await gateway.get(`/ipfs/${folder}/${path}`)).headers['content-type'], type, path)
    }
  })

  it('a response names the path, and the CIDs along it', async () => {
    const path = `/ipfs/${folder}/deep/er/file.bin`
    const { headers } = await gateway.get(path)
    const roots = `${headers['x-ipfs-roots']}`.split(',')
    assert.equal(roots.length, 4)
    assert.equal(roots[0], `${folder}`)
    assert.equal(roots[3], `${largeCid}`)
    assert.equal(headers.etag, `"${largeCid}"`)
    assert.equal(headers['x-ipfs-path'], path)
  })

  it('a path may have empty segments, but no trailing slash after a file', async () => {
    assert.equal((await gateway.get(`/ipfs/${folder}//deep///er/file.bin`)).status, 200)
    assertRefused(await gateway.get(`${TEXT}/`), 404, 'path: not a directory')
  })

  it('a path never leads outside its CID', async () => {
    for (const path of [
      `/ipfs/${folder}/../../v3/files/public`,
      `/ipfs/${folder}/%2e%2e/%2e%2e/readyz`,
      '/ipfs/../v3/files/public',
      '/ipfs/..%2f..%2fetc%2fpasswd',
      `/ipfs/${folder}/..%2f..%2f..%2fetc%2fpasswd`,
      `/ipfs/${folder}/..%5c..%5cwindows`,
      `/ipfs/${folder}/%00`,
      `//${gateway.host}/ipfs/${folder}/index.txt`,
    ]) {
      const { status, text: body } = await gateway.get(path)
      assert.ok(status === 404 || status === 400, `${path}: ${status}`)
      assert.equal(typeof JSON.parse(body).error, 'string')
    }
    assert.equal((await gateway.get(`/ipfs/${folder}/deep/../index.txt`)).text, text.toString())
    // As in Kubo, an encoded slash within the CID acts as a slash.
    assert.equal((await gateway.get(`/ipfs/${folder}/a%20b%2f100%25.bin`)).status, 200)
  })

  it('a path that leads nowhere returns 404', async () => {
    for (const path of ['/nothing', '/index.txt/below', '/deep/nothing/below', '/index.html']) {
      assertRefused(await gateway.get(`/ipfs/${folder}${path}`), 404, 'path: does not exist')
    }
    assertRefused(await gateway.get(`${TEXT}/below`), 404, 'path: does not exist')
    for (const path of ['/', '/ipfs', '/ipfs/', '/favicon.ico', '/ipns/example.com', '/IPFS/x']) {
      assertRefused(await gateway.get(path), 404, /^A gateway has content only/)
    }
  })

  it('a path without a CID, or with a broken encoding, returns 400', async () => {
    assertRefused(await gateway.get('/ipfs/nonsense'), 400, /^cid: not a CID/)
    assertRefused(await gateway.get('/ipfs/nonsense/index.html'), 400, /^cid: not a CID/)
    assertRefused(await gateway.get(`/ipfs/${folder}/%E0%A4%A`), 400, 'path: URI malformed')
    assertRefused(await gateway.get(`/ipfs/${CID.createV1(0x72, folder.multihash)}`), 400, /IPNS/)
  })
})

describe('ranges', () => {
  const parts: [string, number, number][] = [
    ['bytes=0-0', 0, 0],
    ['bytes=1048570-1048580', 1_048_570, 1_048_580],
    ['bytes=2499990-', 2_499_990, 2_499_999],
    ['bytes=7-9, 1-3', 7, 9],
    ['bytes=-10', 2_499_990, 2_499_999],
    ['bytes=-9999999', 0, 2_499_999],
    ['bytes=2499999-9999999999999999999', 2_499_999, 2_499_999],
  ]
  for (const [range, start, end] of parts) {
    it(`the range ${range} is served as 206 with only its bytes`, async () => {
      const { status, headers, bytes } = await gateway.get(LARGE, { range })
      assert.equal(status, 206)
      assert.equal(headers['content-range'], `bytes ${start}-${end}/2500000`)
      assert.equal(headers['content-length'], `${end - start + 1}`)
      assert.ok(bytes.equals(large.subarray(start, end + 1)))
    })
  }

  for (const range of ['bytes=5-2', 'bytes=a-b', 'bytes=-', 'lines=1-2', 'bytes 0-1']) {
    it(`the range ${range} is ignored, and the whole file is served`, async () => {
      const { status, bytes } = await gateway.get(TEXT, { range })
      assert.equal(status, 200)
      assert.ok(bytes.equals(text))
    })
  }

  for (const range of ['bytes=2500000-', 'bytes=2500000-2500001', 'bytes=-0']) {
    it(`the range ${range} is refused`, async () => {
      const served = await gateway.get(LARGE, { range })
      assertRefused(served, 416, 'Range: the content has 2500000 bytes')
      assert.equal(served.headers['content-range'], 'bytes */2500000')
    })
  }

  it('a gateway sends the first of several ranges that the file has [report: HTTP rules]', async () => {
    const range = 'bytes=2500000-2500009, ,-0,7-9,1-3'
    const { status, headers, bytes } = await gateway.get(LARGE, { range })
    assert.deepEqual([status, headers['content-range']], [206, 'bytes 7-9/2500000'])
    assert.ok(bytes.equals(large.subarray(7, 10)))
    assert.equal((await gateway.get(LARGE, { range: 'bytes=2500000-,-0' })).status, 416)
    assert.equal((await gateway.get(LARGE, { range: 'bytes=0-1,9-3' })).status, 200)
  })

  it('a range of an empty file is the whole file [report: HTTP rules]', async () => {
    for (const range of ['bytes=0-', 'bytes=0-0', 'bytes=-5', 'bytes=-0']) {
      const { status, headers, bytes } = await gateway.get(`/ipfs/${empty}`, { range })
      assert.deepEqual([status, headers['content-length'], bytes.length], [200, '0', 0], range)
    }
  })

  it('a range has no effect on HEAD', async () => {
    for (const range of ['bytes=0-9', 'bytes=2500000-']) {
      const { status, headers } = await gateway.head(LARGE, { range })
      assert.deepEqual([status, headers['content-length']], [200, '2500000'])
      assert.equal(headers['content-range'], undefined)
    }
  })

  it('a range with If-Range is served only if the content is unchanged', async () => {
    const range = 'bytes=0-9'
    const of = async (condition: string) =>
      (await gateway.get(LARGE, { range, 'if-range': condition })).status
    assert.equal(await of(`"${largeCid}"`), 206)
    assert.equal(await of(`W/"${largeCid}"`), 200)
    assert.equal(await of(`"${textCid}"`), 200)
    assert.equal(await of(new Date().toUTCString()), 200)
  })
})

describe('content that the client has cached', () => {
  it('content that the client has cached is not sent again', async () => {
    for (const known of [`"${textCid}"`, `W/"${textCid}"`, '*', `"a", W/"b", "${textCid}"`]) {
      const { status, headers, bytes } = await gateway.get(TEXT, { 'if-none-match': known })
      assert.equal(status, 304, known)
      assert.equal(bytes.length, 0)
      assert.equal(headers.etag, `"${textCid}"`)
      assert.equal(headers['cache-control'], 'public, max-age=29030400, immutable')
    }
    assert.equal((await gateway.get(TEXT, { 'if-none-match': `"${largeCid}"` })).status, 200)
    const both = { 'if-none-match': `"${textCid}"`, range: 'bytes=0-1' }
    assert.equal((await gateway.get(TEXT, both)).status, 304)
  })

  it('content that the client has cached in another form is sent', async () => {
    const known = { 'if-none-match': `"${textCid}"` }
    assert.equal((await gateway.get(`${TEXT}?format=raw`, known)).status, 200)
  })
})

describe('If-Match', () => {
  it('If-Match with another version returns 412, before other conditions [report: HTTP rules]', async () => {
    const own = `"${textCid}"`
    const conditions: [condition: string, status: number][] = [
      [own, 200],
      ['*', 200],
      [`"other", ${own}`, 200],
      ['"other"', 412],
      [`W/${own}`, 412],
      ['nonsense', 412],
    ]
    for (const [condition, status] of conditions)
      for (const method of ['GET', 'HEAD'])
        assert.equal((await gateway.ask(method, TEXT, { 'if-match': condition })).status, status, condition)
    assertRefused(
      await gateway.get(TEXT, { 'if-match': '"other"', 'if-none-match': own }),
      412,
      `If-Match: the content has the tag ${own}`,
    )
    assert.equal((await gateway.get(TEXT, { 'if-match': own, 'if-none-match': own })).status, 304)
    assert.equal((await gateway.get(LARGE, { 'if-match': own, range: 'bytes=0-1' })).status, 412)
  })
})

describe('content that the workspace does not keep', () => {
  it('content that the workspace does not keep returns 404, and is not searched for', async () => {
    const cid = await missingCid()
    assertRefused(await gateway.get(`/ipfs/${cid}`), 404, 'cid: not kept here')
    const elsewhere = await node.file(randomBytes(10))
    assertRefused(await gateway.get(`/ipfs/${elsewhere}`), 404, 'cid: not kept here')
  })

  it('content that the workspace does not keep returns 412 for only-if-cached', async () => {
    const only = { 'cache-control': 'only-if-cached' }
    assertRefused(await gateway.get(`/ipfs/${await missingCid()}`, only), 412, 'cid: not kept here')
    assert.equal((await gateway.get(TEXT, only)).status, 200)
  })

  it('content of another workspace is not served', async () => {
    const other = await context.workspace()
    const theirs = await openGateway(context, other)
    assertRefused(await theirs.get(TEXT), 404, 'cid: not kept here')
  })
})

describe('downloads', () => {
  it('a download has the file name that the client requests', async () => {
    const names: [string, string][] = [
      ['?filename=a.txt', 'inline; filename="a.txt"'],
      ['?filename=a.txt&download=true', 'attachment; filename="a.txt"'],
      ['?download=true', 'attachment; filename="notes.txt"'],
      ['?download=true&filename=', 'attachment; filename="notes.txt"'],
      ['?download=false', 'undefined'],
      ['?filename=%22q%22%20b', 'inline; filename="\\"q\\" b"'],
      ['?filename=gr%C3%B6%C3%9Fe', `inline; filename="gr__e"; filename*=UTF-8''gr%C3%B6%C3%9Fe`],
      ['?filename=a%0D%0ASet-Cookie:%20b', 'inline; filename="a__Set-Cookie: b"'],
      ['?filename=..%2F..%5Cetc', 'inline; filename=".._.._etc"'],
      ['?filename=x%20filename%3Devil.exe', 'inline; filename="x filename=evil.exe"'],
      ['?filename=x%3B%20filename%3Da%22b', 'inline; filename="x; filename=a\\"b"'],
    ]
    for (const [query, expected] of names) {
      const { status, headers } = await gateway.get(TEXT + query)
      assert.equal(status, 200, query)
      assert.equal(`${headers['content-disposition']}`, expected, query)
      assert.equal(headers['set-cookie'], undefined)
    }
    const path = `/ipfs/${folder}/deep/er/file.bin?download=true`
    assert.equal((await gateway.head(path)).headers['content-disposition'], 'attachment; filename="file.bin"')
  })
})

describe('pages', () => {
  it('a page gets an opaque origin, because all CIDs share one host', async () => {
    for (const path of ['page.html', 'drawing.svg', 'index.txt']) {
      const policy = (await gateway.get(`/ipfs/${folder}/${path}`)).headers['content-security-policy']
      assert.match(`${policy}`, /^sandbox /)
      assert.doesNotMatch(`${policy}`, /allow-same-origin/)
    }
  })
})
