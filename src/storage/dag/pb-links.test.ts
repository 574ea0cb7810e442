import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import { openDagPb } from './pb-links.ts'
import { decodeUnixFs } from './unixfs-node.ts'

const cids = await Promise.all(
  Array.from({ length: 5 }, async (_, i) => CID.createV1(raw.code, await sha256.digest(Uint8Array.of(i)))),
)
const linkTo = (i: number, Name: string) => ({ Name, Hash: cids[i % cids.length] as CID, Tsize: i })
const Data = new UnixFS({ type: 'directory' }).marshal()

/** All links, as returned by `some`. */
async function allOf(bytes: Uint8Array): Promise<dagPb.PBLink[]> {
  const all: dagPb.PBLink[] = []
  for await (const links of openDagPb(bytes).links.some()) all.push(...links)
  return all
}

test('links match the codec’s, however many, with data before or after them', async () => {
  for (const count of [0, 1, 128, 129, 1000]) {
    const node = { Data, Links: Array.from({ length: count }, (_, i) => linkTo(i, `name ${1000 + i}`)) }
    for (const dataFirst of [false, true]) {
      const bytes = dagPb.encode(node, { dataFirst } as dagPb.EncodeOptions)
      assert.deepEqual(await allOf(bytes), dagPb.decode(bytes).Links)
      assert.deepEqual(Buffer.from(openDagPb(bytes).data ?? []), Buffer.from(Data))
    }
  }
})

test('a link is found by its name, even if other names contain it', async () => {
  const names = ['', 'a', 'aa', 'aa', 'aaa', 'größe', 'html', 'index.htm', 'index.html', 'index.html.bak']
  const { links } = openDagPb(dagPb.encode({ Links: names.map((name, i) => linkTo(i, name)) }))
  for (const name of names) {
    assert.equal((await links.named(name))?.Tsize, names.indexOf(name), name)
  }
  for (const name of ['b', 'inde', 'index', 'grö', 'aaaa']) assert.equal(await links.named(name), undefined)
})

test('a name is searched only in links, not in the bytes around them', async () => {
  const data = new UnixFS({ type: 'file', data: Buffer.from('sought') }).marshal()
  const bytes = dagPb.encode({ Data: data, Links: [linkTo(0, 'a'), linkTo(1, 'b')] })
  assert.equal(await openDagPb(bytes).links.named('sought'), undefined)
})

test('bytes that are not a node are rejected', () => {
  const link = dagPb.encode({ Links: [linkTo(0, 'a')] })
  const data = Buffer.from([0x0a, 0x01, 0x00])
  for (const bytes of [
    Buffer.from('neither'),
    link.subarray(0, -1),
    Buffer.concat([data, data]),
    Buffer.concat([link, data, link]),
    Buffer.from([0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    Buffer.from([0x0a]),
  ]) {
    assert.throws(() => openDagPb(bytes), /protobuf/, bytes.toString('hex'))
    assert.throws(() => dagPb.decode(bytes), bytes.toString('hex'))
  }
})

test('sizes of a file are those that it claims', () => {
  const blockSizes = [5n, 2n ** 40n, 2n ** 63n]
  const unixfs = new UnixFS({ type: 'file', data: Buffer.from('abc'), blockSizes: blockSizes.slice(0, 2) })
  const Links = blockSizes.map((_, i) => linkTo(i, ''))
  const small = decodeUnixFs(dagPb.encode({ Data: unixfs.marshal(), Links }))
  assert.deepEqual(small?.sizes, [5, 2 ** 40])
  assert.equal(small?.fileSize, 2 ** 40 + 8)
  assert.equal(`${Buffer.from(small?.unixfs.data ?? [])}`, 'abc')
  const large = new UnixFS({ type: 'file', blockSizes }).marshal()
  assert.equal(decodeUnixFs(dagPb.encode({ Data: large, Links }))?.fileSize, Number.MAX_SAFE_INTEGER)
})

test('a message with more fields than a file can have is not UnixFS', () => {
  const type = [0x08, 0x02]
  const size = Buffer.from([0x20, 0x01])
  const message = (sizes: number) =>
    dagPb.encode({ Data: Buffer.concat([Buffer.from(type), ...Array(sizes).fill(size)]), Links: [] })
  assert.equal(decodeUnixFs(message(3))?.unixfs.type, 'file')
  // Only the first of the sizes without a link is kept.
  assert.deepEqual(decodeUnixFs(message(60_000))?.sizes, [1])
  assert.equal(decodeUnixFs(message(70_000)), null)
  const twice = Buffer.concat(Array(20).fill(Buffer.from(type)))
  assert.equal(decodeUnixFs(dagPb.encode({ Data: twice, Links: [] })), null)
})
