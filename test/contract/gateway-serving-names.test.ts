/** Names that are not valid text, and paths that encode more than necessary, at a gateway and in the API. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import type { CID } from 'multiformats/cid'
import type { Block } from '../../src/storage/port.ts'
import { block, carOf } from '../integration/storage/cases/blocks.ts'
import { useFolder } from '../support/folder.ts'
import { assertRefused, gatewayReader } from '../support/gateway.ts'
import { openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { file, upload } from './upload-form.ts'

const context = await openContext()
const workspace = await context.workspace()
const gateway = await openGateway(context, workspace)

/** Uploads blocks as a CAR whose root is the first one. */
async function keep(...blocks: Block[]): Promise<{ cid: CID; id: string }> {
  const cid = blocks[0]?.cid as CID
  const { id } = await upload(
    workspace.api,
    ['network', 'public'],
    ['car', 'true'],
    file(carOf(cid, blocks), 'x.car'),
  )
  return { cid, id }
}

/** Builds a directory by hand, because the codec writes names only as UTF-8. */
function directory(
  entries: [name: string | Buffer, entry: Block][],
  unixfs = new UnixFS({ type: 'directory' }),
) {
  const field = (tag: number, bytes: Uint8Array) => Buffer.concat([Buffer.of(tag, bytes.length), bytes])
  const links = entries.map(([name, { cid }]) =>
    field(0x12, Buffer.concat([field(0x0a, cid.bytes), field(0x12, Buffer.from(name)), Buffer.of(0x18, 1)])),
  )
  return block(Buffer.concat([...links, field(0x0a, unixfs.marshal())]), dagPb.code)
}

const LATIN1 = Buffer.from('café', 'latin1')
const leaf = await block(Buffer.from('leaf'))
const inner = await directory([['a.txt', leaf]])

describe('names that are not text', async () => {
  const root = await directory([
    [Buffer.concat([LATIN1, Buffer.from('.txt')]), leaf],
    [LATIN1, inner],
    ['\ufeffbom.txt', leaf],
    ['caf%E9', leaf],
  ])
  const { cid, id } = await keep(root, inner, leaf)

  it('a name that is not text leads to its entry by its bytes [report: raw names]', async () => {
    for (const path of ['caf%E9.txt', 'caf%e9/a.txt', '%EF%BB%BFbom.txt', 'caf%25E9']) {
      const { status, text } = await gateway.get(`/ipfs/${cid}/${path}`)
      assert.deepEqual([status, text], [200, 'leaf'], path)
    }
    for (const path of ['bom.txt', 'caf%EF%BF%BD.txt', 'caf%C3%A9.txt'])
      assertRefused(await gateway.get(`/ipfs/${cid}/${path}`), 404, 'path: does not exist')
  })

  it('a listing links to a name that is not text by its bytes [report: raw names]', async () => {
    const { text } = await gateway.get(`/ipfs/${cid}/`)
    for (const [, link = ''] of text.matchAll(/<bdi><a href="([^"]+)"/g))
      assert.equal((await gateway.get(link)).status, link.endsWith('/caf%E9') ? 301 : 200, link)
    assert.match(text, />caf%E9\.txt</)
    assert.match((await gateway.get(`/ipfs/${cid}/caf%E9/`)).text, /Index of \/.*>caf%E9</)
  })

  it('a download with a name that is not text gets it percent-escaped [report: raw names]', async () => {
    const { headers } = await gateway.get(`/ipfs/${cid}/caf%E9.txt?download=true`)
    assert.match(headers['content-disposition'] ?? '', /^attachment; filename="caf(%E9|_|%25E9)/)
  })

  it('the API lists names that are not text percent-escaped, and finds them [report: raw names]', async () => {
    const list = async (path: string) =>
      (await workspace.api.get(`/v0/files/public/${id}/entries`, { path })).body.data
    const names = (await list('')).entries.map(({ name }: { name: string }) => name)
    assert.deepEqual(names, ['caf%E9.txt', 'caf%E9', '\ufeffbom.txt', 'caf%E9'])
    const other = await keep(await directory([[LATIN1, inner]]), inner, leaf)
    const { body } = await workspace.api.get(`/v0/files/public/${other.id}/entries`, { path: 'caf%E9' })
    assert.equal(body.data.entries[0].name, 'a.txt')
  })

  it('a sharded directory has names that are not text [report: raw names]', async () => {
    const { murmur364 } = await import('@multiformats/murmur3')
    const hash = Buffer.from(await murmur364.encode(LATIN1)).readBigUInt64BE()
    const place = (hash >> 56n).toString(16).toUpperCase().padStart(2, '0')
    const unixfs = new UnixFS({ type: 'hamt-sharded-directory', fanout: 256n, hashType: 0x22n })
    const shard = await directory([[Buffer.concat([Buffer.from(place), LATIN1]), leaf]], unixfs)
    const { cid } = await keep(shard, leaf)
    assert.equal((await gateway.get(`/ipfs/${cid}/caf%E9`)).text, 'leaf')
    assert.match((await gateway.get(`/ipfs/${cid}/`)).text, /href="[^"]+\/caf%E9"/)
  })
})

describe('encoded slashes', async () => {
  const rules = Buffer.from('/go/* /x/:splat 302\n/one/:name /y/:name 302\n/* /index.html 200\n')
  const index = await block(Buffer.from('index'))
  const root = await directory([
    ['_redirects', await block(rules)],
    ['index.html', index],
    ['a', inner],
  ])
  const { cid } = await keep(root, await block(rules), index, inner, leaf)
  const at = gatewayReader(context.url, `${cid}.ipfs.${gateway.host}`)

  it('an encoded slash acts as a slash, as in Kubo [report: raw names]', async () => {
    for (const path of [`/ipfs/${cid}/a%2Fa.txt`, `/ipfs/${cid}/a%2fa.txt`])
      assert.equal((await gateway.get(path)).text, 'leaf')
    assert.equal((await at.get('/a%2Fa.txt')).text, 'leaf')
    assertRefused(await gateway.get(`/ipfs/${cid}/a%2F..%2Fa`), 404, 'path: no entry has such a name')
  })

  it('the rules of a site apply to paths with any bytes [report: raw names]', async () => {
    for (const path of ['/nope%2Fx', '/nope%E9', '/%00', '/a%2Fnope', '/q/%252F'])
      assert.deepEqual([(await at.get(path)).status, (await at.get(path)).text], [200, 'index'], path)
    const locations: Record<string, string> = {
      '/go/q%2Fz': '/x/q/z',
      '/go/%E9x': '/x/%E9x',
      '/one/%E9': '/y/%E9',
      '/go/%EF%BB%BFx': '/x/%EF%BB%BFx',
    }
    for (const [path, location] of Object.entries(locations)) {
      const { status, headers } = await at.get(path)
      assert.deepEqual([status, headers.location], [302, location], path)
    }
    assertRefused(await at.get('/%zz'), 400, 'path: URI malformed')
  })
})

describe('a tar', async () => {
  const dir = await useFolder('berth-names-')

  it('a tar keeps hidden and empty folders, modes, times and name bytes [report: raw names]', async () => {
    const mtime = { secs: 981173106n, nsecs: 123456789 }
    const script = new UnixFS({ type: 'file', data: Buffer.from('#!/bin/sh\n'), mode: 0o750, mtime })
    const tool = await block(dagPb.encode({ Data: script.marshal(), Links: [] }), dagPb.code)
    const old = new UnixFS({ type: 'file', data: Buffer.from('old'), mtime: { secs: 86_400n } })
    const early = await block(dagPb.encode({ Data: old.marshal(), Links: [] }), dagPb.code)
    const empty = await directory([], new UnixFS({ type: 'directory', mode: 0o700, mtime }))
    const git = await directory([['config', leaf]])
    const root = await directory([
      ['.git', git],
      ['empty', empty],
      ['tool', tool],
      ['early', early],
      [LATIN1, leaf],
      ['\ufeffbom', leaf],
    ])
    const { cid } = await keep(root, git, empty, tool, early, leaf)
    const { status, bytes } = await gateway.get(`/ipfs/${cid}?format=tar`)
    assert.equal(status, 200)
    await writeFile(join(dir, 'all.tar'), bytes)
    await promisify(execFile)('tar', ['-xpf', 'all.tar'], { cwd: dir })
    const into = join(dir, `${cid}`)
    const names = await readdir(into, { encoding: 'buffer' })
    const expected = ['.git', 'empty', 'tool', 'early', '\ufeffbom'].map((name) => Buffer.from(name))
    assert.deepEqual(names.sort(Buffer.compare), [...expected, LATIN1].sort(Buffer.compare))
    assert.equal(`${await readFile(join(into, '.git/config'))}`, 'leaf')
    assert.equal(`${await readFile(Buffer.concat([Buffer.from(`${into}/`), LATIN1]))}`, 'leaf')
    const about = async (name: string) => {
      const { mode, mtimeMs } = await stat(join(into, name))
      return [(mode & 0o7777).toString(8), Math.floor(mtimeMs)]
    }
    assert.deepEqual(await about('tool'), ['750', 981173106123])
    assert.deepEqual(await about('empty'), ['700', 981173106123])
    assert.deepEqual(await about('early'), ['644', 86_400_000])
    assert.deepEqual(await readdir(join(into, 'empty')), [])
    const single = await gateway.get(`/ipfs/${cid}/tool?format=tar`)
    assert.match(`${single.bytes}`, /mtime=981173106\.123456789\n/)
  })
})
