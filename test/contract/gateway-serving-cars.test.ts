/** Partial CARs at a gateway: of paths, of a file or directory without its children, and of ranges. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { CarReader } from '@ipld/car'
import * as dagCbor from '@ipld/dag-cbor'
import * as dagPb from '@ipld/dag-pb'
import type { CID } from 'multiformats/cid'
import { block, carOf } from '../integration/storage/cases/blocks.ts'
import { assertError } from '../support/client.ts'
import { assertRefused, sendRaw } from '../support/gateway.ts'
import { hollowFile } from '../support/hollow.ts'
import { inlineCid, openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { file, upload } from './upload-form.ts'

const context = await openContext()
const workspace = await context.workspace()
const gateway = await openGateway(context, workspace)
const node = await context.provider()
const pin = async (cid: CID) => {
  const wanted = { cid: `${cid}`, host_nodes: [node.multiaddr] }
  assert.equal((await workspace.api.pin(wanted, { wait: 120 })).record.status, 'pinned')
  return cid
}

const MIB = 1024 * 1024
const ACCEPT = 'application/vnd.ipld.car'
// Four leaves; the last one has 10 bytes.
const large = randomBytes(3 * MIB + 10)
const LONG = 'n'.repeat(240)
const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`${LONG}${i}`, Buffer.from(`${i}`)]))
const root = await node
  .folder({ 'sub/large': large, 'sub/copy': large, 'sub/small.txt': Buffer.from('small') })
  .then(pin)
const sharded = await node.folder(many).then(pin)
const [sub] = (await node.links(root)) as [CID]
const [copy, , small] = (await node.links(sub)) as [CID, CID, CID]
const leaves = await node.links(copy)

async function read(path: string, accept?: string) {
  const { status, headers, bytes, text } = await gateway.get(path, accept ? { accept } : {})
  assert.equal(status, 200, text)
  const reader = await CarReader.fromBytes(bytes)
  const blocks: string[] = []
  for await (const { cid } of reader.blocks()) blocks.push(`${cid}`)
  return { headers, roots: (await reader.getRoots()).map(String), blocks }
}

const assertBlocks = ({ blocks }: { blocks: string[] }, expected: CID[]) =>
  assert.deepEqual(blocks, expected.map(String))

describe('a CAR of a path', () => {
  it('a CAR of a path has the blocks along the path and the whole DAG at its end, depth first', async () => {
    const car = await read(`/ipfs/${root}/sub/large?format=car`)
    assertBlocks(car, [root, sub, copy, ...leaves])
    assert.deepEqual(car.roots, [`${root}`])
    assertBlocks(await read(`/ipfs/${root}/sub/small.txt`, ACCEPT), [root, sub, small])
    assert.equal((await gateway.get(`/ipfs/${root}/sub/none?format=car`)).status, 404)
  })

  it('a CAR of a path through a sharded directory has only the shards along the path', async () => {
    const name = `${LONG}471`
    const { blocks } = await read(`/ipfs/${sharded}/${name}?format=car`)
    const [, end] =
      (await gateway.get(`/ipfs/${sharded}/${name}`)).headers['x-ipfs-roots']?.toString().split(',') ?? []
    assert.deepEqual([blocks[0], blocks.at(-1)], [`${sharded}`, end])
    assert.ok(blocks.length >= 2 && blocks.length <= 4, `${blocks.length} blocks`)
  })

  it('a CAR of a path follows links within objects', async () => {
    const inner = await node.block(dagCbor.encode({ end: true }), dagCbor.code)
    const object = await node.block(dagCbor.encode({ a: { b: inner, c: small } }), dagCbor.code).then(pin)
    assertBlocks(await read(`/ipfs/${object}/a/b?format=car`), [object, inner])
    assertBlocks(await read(`/ipfs/${object}?format=car&dag-scope=entity`), [object])
    assertBlocks(await read(`/ipfs/${object}?format=car`), [object, inner, small])
  })
})

describe('the scope of a CAR', () => {
  it('the scope of a CAR is one block, the whole entity, or everything', async () => {
    const path = `/ipfs/${root}/sub`
    assertBlocks(await read(`${path}?format=car&dag-scope=block`), [root, sub])
    assertBlocks(await read(`${path}?format=car&dag-scope=entity`), [root, sub])
    assertBlocks(await read(`${path}?format=car&dag-scope=all`), [root, sub, copy, ...leaves, small])
    assertBlocks(await read(`${path}/large?format=car&dag-scope=block`), [root, sub, copy])
    assertBlocks(await read(`${path}/large?format=car&dag-scope=entity`), [root, sub, copy, ...leaves])
  })

  it('a CAR with the entity of a sharded directory has its shards, without the entries', async () => {
    const { blocks } = await read(`/ipfs/${sharded}?format=car&dag-scope=entity`)
    const all = await read(`/ipfs/${sharded}?format=car`)
    assert.equal(blocks[0], `${sharded}`)
    assert.equal(all.blocks.length - blocks.length, 1000)
    assert.deepEqual(
      all.blocks.filter((cid) => blocks.includes(cid)),
      blocks,
    )
  })
})

describe('ranges of a file as a CAR', () => {
  const [first, second, third, last] = leaves as [CID, CID, CID, CID]
  const ranges: [string, CID[]][] = [
    ['0:*', leaves],
    ['0:0', [first]],
    [`${MIB}:${MIB}`, [second]],
    [`${MIB - 1}:${2 * MIB}`, [first, second, third]],
    [`${2 * MIB}:*`, [third, last]],
    ['-10:*', [last]],
    ['-11:-11', [third]],
    [`0:-${2 * MIB + 11}`, [first]],
    ['-9999999:-11', [first, second, third]],
    ['99999999:*', []],
  ]
  for (const [range, expected] of ranges) {
    it(`a CAR of the range ${range} of a file has the blocks that contain it`, async () => {
      const path = `/ipfs/${root}/sub/large?format=car&entity-bytes=${range}`
      assertBlocks(await read(path), [root, sub, copy, ...expected])
    })
  }

  it('a CAR ignores a range if its path does not lead to a file', async () => {
    assertBlocks(await read(`/ipfs/${root}/sub?format=car&entity-bytes=5:9`), [root, sub])
  })
})

describe('repeated blocks', () => {
  it('a CAR repeats blocks if the client asks for it', async () => {
    const once = [root, sub, copy, ...leaves, small]
    const twice = [root, sub, copy, ...leaves, copy, ...leaves, small]
    const car = await read(`/ipfs/${root}`, `${ACCEPT}; version=1; order=dfs; dups=y`)
    assertBlocks(car, twice)
    assert.equal(car.headers['content-type'], `${ACCEPT}; version=1; order=dfs; dups=y`)
    for (const accept of [`${ACCEPT};dups=n`, ACCEPT]) assertBlocks(await read(`/ipfs/${root}`, accept), once)
    assertBlocks(await read(`/ipfs/${root}?format=car&car-dups=n`, `${ACCEPT};dups=y`), once)
    assertBlocks(await read(`/ipfs/${root}?format=car`, `text/html, ${ACCEPT};dups=y;q=0.5`), twice)
  })

  it('a CAR ends early if its blocks repeat again and again with almost no bytes', async () => {
    const { root: hollow, blocks } = await hollowFile(120, 2)
    const object = await block(dagCbor.encode([hollow, hollow]), dagCbor.code)
    const outer = await block(dagCbor.encode([object.cid, object.cid]), dagCbor.code)
    const { cid } = await upload(
      workspace.api,
      ['network', 'public'],
      ['car', 'true'],
      file(carOf(outer.cid, [outer, object, ...blocks]), 'made.car'),
    )
    const path = `/ipfs/${cid}?format=car&car-dups=y`
    const answer = await sendRaw(context.url, `GET ${path} HTTP/1.1\r\nHost: ${gateway.host}\r\n\r\n`)
    assert.match(answer, /^HTTP\/1\.1 200 /)
    assert.doesNotMatch(answer, /\r\n0\r\n\r\n$/, 'a truncated response has no final chunk')
    assert.equal((await read(`/ipfs/${cid}?format=car`)).blocks.length, 2 + blocks.length)
  })
})

it('the entity tag of a CAR depends on its path, scope, range and duplicates', async () => {
  const tags = new Set<string>()
  const queries = ['', '&dag-scope=block', '&dag-scope=entity', '&entity-bytes=0:9', '&car-dups=y']
  for (const path of [`/ipfs/${root}/sub/large`, `/ipfs/${root}/sub/copy`, `/ipfs/${sub}`]) {
    for (const query of queries) {
      const { headers } = await gateway.head(`${path}?format=car${query}`)
      if (headers.etag) tags.add(headers.etag)
    }
  }
  // Both names lead through the same blocks to the same file; the subfolder itself is not a file of the workspace.
  assert.equal(tags.size, queries.length)
  const [tag = ''] = tags
  const { status } = await gateway.get(`/ipfs/${root}/sub/large?format=car`, { 'if-none-match': tag })
  assert.equal(status, 304)
})

it('an identity CID gives a CAR without blocks', async () => {
  const { record } = await workspace.api.pin({ cid: `${inlineCid('text')}` }, { wait: 60 })
  assert.equal(record.status, 'pinned')
  assertBlocks(await read(`/ipfs/${inlineCid('text')}?format=car&car-dups=y`), [])
})

it('a gateway does not list a shard within a directory [report: HTTP rules]', async () => {
  const inner = (await node.links(sharded)).filter(({ code }) => code === dagPb.code)
  assert.ok(inner.length > 0)
  const shard = await pin(inner[0] as CID)
  const path = `/ipfs/${shard}`
  assertRefused(
    await gateway.get(`${path}/`),
    406,
    `cid: ${shard} is a shard within a directory: ask for the directory, or for format=raw or format=car`,
  )
  for (const format of ['raw', 'car'])
    assert.equal((await gateway.get(`${path}?format=${format}`)).status, 200)
  assert.equal((await gateway.get(`/ipfs/${sharded}/`)).status, 200)
  const { body } = await workspace.api.get('/v3/files/public', { cid: `${shard}` })
  const entries = await workspace.api.get(`/v0/files/public/${body.data.files[0].id}/entries`)
  assertError(
    entries,
    400,
    `path: ${shard} is a shard within a folder, whose entries have no path from there`,
  )
})
