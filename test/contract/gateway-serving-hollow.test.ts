/** Small DAGs that could cause endless work: which of them Berth keeps, and how gateways serve them. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as dagCbor from '@ipld/dag-cbor'
import { block, carOf } from '../integration/storage/cases/blocks.ts'
import { assertRefused } from '../support/gateway.ts'
import { hollowDirectory, hollowFile, type MadeDag } from '../support/hollow.ts'
import { openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { file, send } from './upload-form.ts'

const context = await openContext()
const workspace = await context.workspace()
const gateway = await openGateway(context, workspace)

const upload = ({ root, blocks }: MadeDag) =>
  send(workspace.api, [['network', 'public'], ['car', 'true'], file(carOf(root, blocks), 'made.car')])
const keep = async (dag: MadeDag) => {
  const { status, body } = await upload(dag)
  assert.equal(status, 200, JSON.stringify(body))
  return body.data
}

describe('a file with many blocks and almost no bytes', () => {
  it('a file with many blocks and almost no bytes is refused as a CAR upload', async () => {
    for (const dag of [await hollowFile(20_000, 3), await hollowFile(40, 5), await hollowFile(3000, 4)]) {
      const { status, body } = await upload(dag)
      assert.equal(status, 400)
      assert.match(body.error, /^file: baf\w+ is a file of \d+ blocks with \d+ bytes in them$/)
      assertRefused(await gateway.get(`/ipfs/${dag.root}`), 404, 'cid: not kept here')
    }
  })

  it('a file with many blocks and almost no bytes is invalid_object if it is pinned by CID', async () => {
    const node = await context.provider()
    const { root, blocks } = await hollowFile(3000, 4)
    for (const { cid, bytes } of blocks) await node.block(bytes, cid.code)
    const { record } = await workspace.api.pin(
      { cid: `${root}`, host_nodes: [node.multiaddr] },
      { wait: 120 },
    )
    assert.equal(record.status, 'invalid_object')
  })
})

describe('a file that repeats one block a million times', () => {
  const content = Buffer.alloc(2048, 'berth')
  const made = hollowFile(1000, 2, content).then(keep)

  it('a file that repeats one block a million times is served in ranges', async () => {
    const { cid } = await made
    const { status, headers } = await gateway.head(`/ipfs/${cid}`)
    assert.equal(status, 200)
    assert.equal(headers['content-length'], `${2048 * 1_000_000}`)
    const part = await gateway.get(`/ipfs/${cid}`, { range: 'bytes=2000000000-2000000009' })
    assert.equal(part.status, 206)
    assert.equal(part.headers['content-range'], 'bytes 2000000000-2000000009/2048000000')
    const start = 2_000_000_000 % 2048
    assert.equal(part.text, `${content.subarray(start, start + 10)}`)
    assert.equal((await gateway.get(`/ipfs/${cid}`, { range: 'bytes=-3' })).text, `${content.subarray(-3)}`)
  })
})

describe('a directory of 20,000 names for one and the same directory', () => {
  const made = hollowDirectory(20_000, 3).then(keep)

  it('a directory of 20,000 names for one and the same directory is listed one level at a time', async () => {
    const { cid } = await made
    const { status, text } = await gateway.get(`/ipfs/${cid}/`)
    assert.equal(status, 200)
    assert.equal(text.match(/<tr><td><bdi><a href="[^"]*\/n/g)?.length, 20_000)
    assert.equal((await gateway.head(`/ipfs/${cid}/`)).status, 200)
    const inner = await gateway.get(`/ipfs/${cid}/n000017/n019999/n010000`)
    assert.equal(inner.text, 'x')
    assertRefused(await gateway.get(`/ipfs/${cid}/n020000`), 404, 'path: does not exist')
  })
})

describe('an object with a huge array', () => {
  it('an object with a huge array is kept, and served as a block and as a CAR', async () => {
    const leaf = await block(Buffer.from('x'))
    const object = await block(dagCbor.encode(Array(20_000).fill(leaf.cid)), dagCbor.code)
    const { cid } = await keep({ root: object.cid, blocks: [object, leaf] })
    assertRefused(await gateway.get(`/ipfs/${cid}/17`), 404, 'path: does not exist')
    for (const query of ['', '?format=raw', '?format=dag-cbor']) {
      assert.ok((await gateway.get(`/ipfs/${cid}${query}`)).bytes.equals(object.bytes), query)
    }
    const page = await gateway.get(`/ipfs/${cid}`, { accept: 'text/html' })
    assert.ok(page.status === 200 && page.bytes.length < 10_000, 'a large object is not decoded for a page')
    assert.equal((await gateway.get(`/ipfs/${cid}?format=car`)).status, 200)
  })
})
