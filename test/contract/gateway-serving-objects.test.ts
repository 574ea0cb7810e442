/** Objects of codecs, symbolic links and tars at a gateway. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import * as dagCbor from '@ipld/dag-cbor'
import * as dagJson from '@ipld/dag-json'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import type { CID } from 'multiformats/cid'
import { block, carOf } from '../integration/storage/cases/blocks.ts'
import { useFolder } from '../support/folder.ts'
import { assertRefused } from '../support/gateway.ts'
import { stackKind } from '../support/stack.ts'
import { openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { file, upload } from './upload-form.ts'

const context = await openContext()
const workspace = await context.workspace()
const gateway = await openGateway(context, workspace)
/** Uploads blocks as a CAR whose root is the first one. */
const keep = async (...blocks: { cid: CID; bytes: Uint8Array }[]) => {
  const root = blocks[0]?.cid as CID
  const car = file(carOf(root, blocks), 'made.car')
  await upload(workspace.api, ['network', 'public'], ['car', 'true'], car)
  return root
}

const leaf = await block(Buffer.from('leaf'))
const value = { foo: { link: leaf.cid, text: '<b>' } }
const [JSON_CODE, CBOR_CODE] = [0x0200, 0x51]
const objects = [
  { name: 'dag-json', plain: 'json', made: await block(dagJson.encode(value), dagJson.code) },
  { name: 'dag-cbor', plain: 'cbor', made: await block(dagCbor.encode(value), dagCbor.code) },
  { name: 'json', plain: 'json', made: await block(Buffer.from('{"a": "plain"}'), JSON_CODE) },
  { name: 'cbor', plain: 'cbor', made: await block(dagCbor.encode({ a: 'plain' }), CBOR_CODE) },
]
for (const { name, made } of objects) await keep(made, ...(name.startsWith('dag') ? [leaf] : []))

const text = { cid: leaf.cid, Name: 'file.txt' }
const directory = (entries: { cid: CID; Name: string }[]) => {
  const Links = entries.map(({ cid, Name }) => ({ Name, Hash: cid, Tsize: 1 }))
  const Data = new UnixFS({ type: 'directory' }).marshal()
  return block(dagPb.encode(dagPb.prepare({ Data, Links })), dagPb.code)
}

for (const { name, plain, made } of objects) {
  describe(`an object of ${name}`, () => {
    const path = `/ipfs/${made.cid}`
    const type = name.startsWith('dag') ? `application/vnd.ipld.${name}` : `application/${name}`
    const usual = plain === 'json' ? 'inline' : 'attachment'

    it(`an object of ${name} is served unchanged`, async () => {
      for (const [query, accept] of [
        [''],
        [`?format=${name}`],
        ['', type],
        ['', `text/css, ${type};q=0.1`],
      ]) {
        const { status, headers, bytes } = await gateway.get(`${path}${query}`, accept ? { accept } : {})
        assert.deepEqual(
          [status, headers['content-type'], headers.etag],
          [200, type, `"${made.cid}.${name}"`],
        )
        assert.equal(headers['content-disposition'], `${usual}; filename="${made.cid}.${plain}"`)
        assert.ok(bytes.equals(made.bytes))
      }
      const part = await gateway.get(path, { range: 'bytes=2-4' })
      assert.deepEqual([part.status, part.bytes], [206, Buffer.from(made.bytes.subarray(2, 5))])
      const named = await gateway.head(`${path}?filename=own.${plain}&download=true`)
      assert.equal(named.headers['content-disposition'], `attachment; filename="own.${plain}"`)
    })

    it(`an object of ${name} is served with the same bytes as ${plain}, and in no other format`, async () => {
      for (const served of [
        await gateway.get(`${path}?format=${plain}`),
        await gateway.get(path, { accept: `application/${plain}` }),
      ]) {
        assert.deepEqual([served.status, served.headers['content-type']], [200, `application/${plain}`])
        assert.ok(served.bytes.equals(made.bytes))
      }
      const otherFormat = plain === 'json' ? 'dag-cbor' : 'dag-json'
      assertRefused(await gateway.get(`${path}?format=${otherFormat}`), 406, /not converted$/)
    })

    it(`an object of ${name} is shown as a page in browsers`, async () => {
      const { headers, text } = await gateway.get(path, { accept: 'text/html,*/*;q=0.8' })
      assert.equal(headers['content-type'], 'text/html; charset=utf-8')
      assert.match(`${headers.etag}`, /^"DagIndex-/)
      assert.match(`${headers['cache-control']}`, /^public, max-age=604800/)
      assert.match(text, /<\/html>\n$/)
      assert.doesNotMatch(text, /<b>/)
    })
  })
}

it('the page of an object is not many times larger than its block, however deep it is nested', async () => {
  // Kubo keeps nothing that is nested deeper than 1,024 levels.
  for (const depth of stackKind === 'real' ? [31, 33, 1000] : [31, 33, 1000, 3000]) {
    const many = Array(10_000).fill(1)
    let bytes: Uint8Array = dagCbor.encode(many)
    bytes = Buffer.concat([Buffer.alloc(depth - 1, 0x81), bytes])
    const root = await keep(await block(bytes, dagCbor.code))
    const { status, text } = await gateway.get(`/ipfs/${root}`, { accept: 'text/html' })
    assert.equal(status, 200)
    assert.match(text, new RegExp(`dag-cbor, ${bytes.length} bytes`))
    assert.ok(text.length < 1_000_000, `${text.length} characters`)
    assert.equal(text.includes('[\n'), depth < 32)
  }
})

it('the page of a folder at the end of a long path is not many times larger than the path', async () => {
  const folder = await directory([text])
  const nested = (depth: number, end: unknown): unknown => (depth === 0 ? end : { a: nested(depth - 1, end) })
  let made = await block(dagCbor.encode(nested(1000, folder.cid)), dagCbor.code)
  const blocks = [folder, leaf, made]
  for (let i = 0; i < 3; i++) {
    made = await block(dagCbor.encode(nested(1000, made.cid)), dagCbor.code)
    blocks.push(made)
  }
  const root = await keep(...blocks.reverse())
  const { status, text: page } = await gateway.get(`/ipfs/${root}${'/a'.repeat(4000)}/`)
  assert.equal(status, 200)
  assert.match(page, /file\.txt/)
  assert.ok(page.length < 100_000, `${page.length} characters`)
})

it('a path follows CIDs within objects, but cannot end at a value within a block', async () => {
  for (const { made } of objects.slice(0, 2)) {
    const path = `/ipfs/${made.cid}`
    const { text, headers } = await gateway.get(`${path}/foo/link`)
    assert.deepEqual([text, headers['x-ipfs-roots']], ['leaf', `${made.cid},${leaf.cid}`])
    for (const inside of ['/foo', '/foo/text'])
      assertRefused(await gateway.get(path + inside), 501, 'path: leads to a value within a block')
    for (const missing of ['/bar', '/foo/bar', '/foo/link/more'])
      assertRefused(await gateway.get(path + missing), 404, 'path: does not exist')
  }
})

const link = await block(
  dagPb.encode({ Data: new UnixFS({ type: 'symlink', data: Buffer.from('file.txt') }).marshal(), Links: [] }),
  dagPb.code,
)
it('a symbolic link is served as its target path', async () => {
  const folder = await directory([text, { cid: link.cid, Name: 'link' }])
  const root = await keep(folder, leaf, link)
  const { text: target, headers } = await gateway.get(`/ipfs/${root}/link`)
  assert.deepEqual([target, headers['content-type']], ['file.txt', 'inode/symlink'])
})

it('a UnixFS file is not converted to another codec', async () => {
  const root = await keep(leaf)
  for (const format of ['dag-json', 'dag-cbor'])
    assertRefused(await gateway.get(`/ipfs/${root}?format=${format}`), 406, /not converted$/)
  assert.equal((await gateway.get(`/ipfs/${root}`, { accept: 'application/json, text/html' })).text, 'leaf')
})

describe('a tar', async () => {
  const dir = await useFolder('berth-tar-')
  const unpack = async (path: string) => {
    const { status, headers, bytes } = await gateway.get(path)
    assert.deepEqual([status, headers['content-type']], [200, 'application/x-tar'])
    const into = await mkdtemp(join(dir, 'out-'))
    await writeFile(join(into, 'all.tar'), bytes)
    await promisify(execFile)('tar', ['-xf', 'all.tar'], { cwd: into })
    await rm(join(into, 'all.tar'))
    return { into, headers }
  }

  it('a tar contains the whole folder, and tar unpacks it', async () => {
    const large = randomBytes(1_048_576)
    const parts = [await block(large.subarray(0, 700_000)), await block(large.subarray(700_000))]
    const sizes = parts.map(({ bytes }) => BigInt(bytes.length))
    const Links = parts.map(({ cid, bytes }) => ({ Name: '', Hash: cid, Tsize: bytes.length }))
    const Data = new UnixFS({ type: 'file', blockSizes: sizes }).marshal()
    const whole = await block(dagPb.encode({ Data, Links }), dagPb.code)
    const inner = await directory([{ cid: whole.cid, Name: `${'lang'.repeat(40)}.bin` }])
    const folder = await directory([text, { cid: link.cid, Name: 'link' }, { cid: inner.cid, Name: 'größe' }])
    const root = await keep(folder, leaf, link, inner, whole, ...parts)
    const { into, headers } = await unpack(`/ipfs/${root}?format=tar`)
    assert.equal(headers.etag, `W/"${root}.x-tar"`)
    assert.equal(headers['content-disposition'], `attachment; filename="${root}.tar"`)
    assert.deepEqual((await readdir(join(into, `${root}`))).sort(), ['file.txt', 'größe', 'link'])
    assert.equal(`${await readFile(join(into, `${root}/link`))}`, 'leaf')
    assert.ok((await readFile(join(into, `${root}/größe/${'lang'.repeat(40)}.bin`))).equals(large))
    const single = await unpack(`/ipfs/${root}/file.txt?format=tar`)
    assert.equal(`${await readFile(join(single.into, `${leaf.cid}`))}`, 'leaf')
  })

  it('a tar is refused if a name would leave its folder', async () => {
    for (const Name of ['../file', 'a/b', '..', '']) {
      const root = await keep(await directory([{ cid: leaf.cid, Name }]), leaf)
      assertRefused(
        await gateway.get(`/ipfs/${root}?format=tar`),
        400,
        /^format: A file cannot have the name/,
      )
    }
  })
})
