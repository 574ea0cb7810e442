/** Uploads of several files, which become a folder, and of CARs. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { CarWriter } from '@ipld/car'
import * as dagCbor from '@ipld/dag-cbor'
import { CID } from 'multiformats/cid'
import type { Block } from '../../src/storage/port.ts'
import { block } from '../integration/storage/cases/blocks.ts'
import { assertError } from '../support/client.ts'
import { openContext } from './context.ts'
import { file, type Part, send, upload } from './upload-form.ts'

const { isPinned, provider, workspace } = await openContext()
const { api } = await workspace()
const node = await provider()

const PUBLIC: Part = ['network', 'public']
type Files = Record<string, Uint8Array>
const fileParts = (files: Files, prefix = '') =>
  Object.entries(files).map(([path, content]) => file(content, `${prefix}${path}`))

describe('a folder', () => {
  const tree = (): Files => ({
    'a.txt': randomBytes(10),
    'b/c.txt': randomBytes(20),
    'b/d/e.txt': randomBytes(30),
    'ünï ✓': Buffer.alloc(0),
  })

  for (const order of ['before', 'after']) {
    it(`files within one folder become that folder, with the network ${order} the files`, async () => {
      const files = tree()
      const parts = fileParts(files, 'root/')
      const data = await upload(api, ...(order === 'before' ? [PUBLIC, ...parts] : [...parts, PUBLIC]))
      assert.equal(data.cid, `${await node.folder(files)}`)
      assert.deepEqual(
        [data.name, data.size, data.number_of_files, data.mime_type],
        ['root', 60, 4, 'directory'],
      )
      assert.ok(await isPinned(CID.parse(data.cid)))
      const around = await node.folder(
        Object.fromEntries(Object.entries(files).map(([path, it]) => [`root/${path}`, it])),
      )
      assert.ok(!(await isPinned(around)), 'its parent folder is not kept')
    })
  }
  it('a single file within a folder becomes a folder', async () => {
    const files = { 'only.txt': randomBytes(9) }
    const data = await upload(api, ...fileParts(files, 'one/'), PUBLIC)
    assert.deepEqual(
      [data.cid, data.name, data.mime_type],
      [`${await node.folder(files)}`, 'one', 'directory'],
    )
  })
  it('files in no folder, or in several, get a common folder', async () => {
    for (const files of [
      { a: randomBytes(3), b: randomBytes(3) },
      { 'x/a': randomBytes(3), 'y/a': randomBytes(3) },
      { 'x/a': randomBytes(3), b: randomBytes(3) },
    ] as Files[]) {
      const data = await upload(api, ...fileParts(files), PUBLIC)
      assert.deepEqual([data.cid, data.name], [`${await node.folder(files)}`, null])
    }
  })
  it('a folder can have CID version 0 throughout', async () => {
    const { cid } = await upload(api, ...fileParts(tree(), 'root/'), PUBLIC, ['cid_version', 'v0'])
    assert.match(cid, /^Qm/)
    assert.ok(await isPinned(CID.parse(cid)))
  })
  it('a folder can have a thousand files', async () => {
    const files: Files = Object.fromEntries(
      Array.from({ length: 1000 }, (_, i) => [`${i % 10}/file-${i}`, Buffer.from(`${i}`)]),
    )
    const data = await upload(api, ...fileParts(files, 'many/'), PUBLIC)
    assert.deepEqual([data.cid, data.number_of_files], [`${await node.folder(files)}`, 1000])
  })
  it('a folder uploaded twice is the same folder', async () => {
    const parts = fileParts(tree(), 'root/')
    const first = await upload(api, ...parts, PUBLIC)
    assert.deepEqual(await upload(api, ...parts, PUBLIC), { ...first, is_duplicate: true })
    assert.ok(await isPinned(CID.parse(first.cid)))
  })

  const refused: [what: string, paths: string[], message: string][] = [
    ['leads out', ['a/../../b'], 'file: "a/../../b" is not a relative path without empty, . and .. parts'],
    ['is ..', ['..'], 'file: ".." is not a relative path without empty, . and .. parts'],
    ['has a dot', ['./a'], 'file: "./a" is not a relative path without empty, . and .. parts'],
    [
      'is absolute',
      ['/etc/passwd'],
      'file: "/etc/passwd" is not a relative path without empty, . and .. parts',
    ],
    ['has an empty part', ['a//b'], 'file: "a//b" is not a relative path without empty, . and .. parts'],
    ['ends in a slash', ['a/'], 'file: "a/" is not a relative path without empty, . and .. parts'],
    ['has a backslash', ['a\\..\\b'], 'file: "a\\\\..\\\\b" has a backslash or NUL'],
    ['has a NUL', ['a\0b'], 'file: "a\\u0000b" has a backslash or NUL'],
    ['is repeated', ['r/a', 'r/a'], 'file: "r/a" comes twice'],
    ['is a file and a folder', ['r/a', 'r/a/b'], 'file: "r/a" is a folder as well'],
    ['is a folder and a file', ['r/a/b', 'r/a'], 'file: "r/a" is a folder as well'],
    ['is missing', ['r/a', ''], 'file: each of several files needs a file name'],
    ['is missing first', ['', 'r/a'], 'file: each of several files needs a file name'],
    ['is too deep', [`${'d/'.repeat(64)}x`], `file: "${'d/'.repeat(64)}x" is deeper than 64 folders`],
    [
      'has too long a name',
      [`r/${'é'.repeat(128)}`],
      `file: "r/${'é'.repeat(128)}" has a name of more than 255 bytes`,
    ],
    ['is too long', [`${`${'n'.repeat(200)}/`.repeat(21)}x`], 'file: a path has at most 4096 bytes'],
  ]
  for (const [what, paths, message] of refused) {
    it(`a folder returns 400 for a path that ${what}`, async () => {
      const own = await workspace()
      for (const network of [[], [PUBLIC]]) {
        const parts = paths.map((path) => file('x', path))
        assertError(await send(own.api, [...network, ...parts]), 400, message)
      }
      for (const network of ['public', 'private'])
        assert.deepEqual((await own.api.get(`/v3/files/${network}`)).body.data.files, [])
    })
  }
})

describe('a CAR', () => {
  const CAR: Part = ['car', 'true']
  const encodeCar = async (roots: CID[], blocks: Block[]) => {
    const { writer, out } = CarWriter.create(roots)
    const packed = buffer(out)
    for (const each of blocks) await writer.put(each)
    await writer.close()
    return packed
  }
  const sample = async () => {
    const leaf = await block(randomBytes(1000))
    const root = await block(dagCbor.encode({ leaf: leaf.cid }), dagCbor.code)
    return { root, leaf }
  }

  for (const order of ['before', 'after']) {
    it(`a CAR is imported with its own blocks and root, with its fields ${order} the file`, async () => {
      const { root, leaf } = await sample()
      const part = file(await encodeCar([root.cid], [root, leaf]), 'dag.car', 'application/vnd.ipld.car')
      const data = await upload(api, ...(order === 'before' ? [PUBLIC, CAR, part] : [part, PUBLIC, CAR]))
      assert.deepEqual([data.cid, data.name], [`${root.cid}`, 'dag.car'])
      assert.ok(await isPinned(root.cid))
    })
  }
  it('a CAR can be of version 2, with an index after its blocks', async () => {
    for (const order of ['before', 'after']) {
      const { root, leaf } = await sample()
      const part = file(asVersion2(await encodeCar([root.cid], [root, leaf])), 'dag.car')
      const data = await upload(api, ...(order === 'before' ? [PUBLIC, CAR, part] : [part, PUBLIC, CAR]))
      assert.equal(data.cid, `${root.cid}`)
    }
  })
  it('a CAR returns 400 on the private network', async () => {
    const { root, leaf } = await sample()
    const part = file(await encodeCar([root.cid], [root, leaf]), 'dag.car')
    assertError(await send(api, [part, CAR]), 400, 'car: only on the public network')
  })
  it('a CAR returns 403 on the free plan', async () => {
    const free = await workspace('free')
    const { root, leaf } = await sample()
    const part = file(await encodeCar([root.cid], [root, leaf]), 'dag.car')
    assertError(await send(free.api, [part, PUBLIC, CAR]), 403, 'CAR upload is not part of the free plan')
  })
  it('a CAR returns 400 if it is damaged, lacks a block, or does not have exactly one root', async () => {
    const { root, leaf } = await sample()
    const whole = await encodeCar([root.cid], [root, leaf])
    const flipped = Buffer.from(whole)
    flipped.writeUInt8(flipped.readUInt8(flipped.length - 1) ^ 1, flipped.length - 1)
    const broken = {
      flipped,
      cut: whole.subarray(0, -10),
      empty: Buffer.alloc(0),
      text: Buffer.from('this is not a CAR'),
      lacking: await encodeCar([root.cid], [root]),
      'two roots': await encodeCar([root.cid, leaf.cid], [root, leaf]),
      'no root': await encodeCar([], [leaf]),
    }
    for (const [what, bytes] of Object.entries(broken)) {
      for (const parts of [
        [file(bytes, 'x.car'), PUBLIC, CAR],
        [PUBLIC, CAR, file(bytes, 'x.car')],
      ] as Part[][]) {
        const reply = await send(api, parts)
        assert.equal(reply.status, 400, `${what}: ${JSON.stringify(reply.body)}`)
        assertError(reply, 400, /^file: ./)
      }
    }
    assert.ok(!(await isPinned(root.cid)))
  })
  it('a CAR cannot be uploaded together with other files', async () => {
    const { root, leaf } = await sample()
    const car = await encodeCar([root.cid], [root, leaf])
    for (const network of ['before', 'after']) {
      const parts: Part[] = [file(car, 'a.car'), file('x', 'b')]
      const fields: Part[] = [PUBLIC, CAR]
      const reply = await send(api, network === 'before' ? [...fields, ...parts] : [...parts, ...fields])
      assertError(reply, 400, 'car: goes with one file only')
    }
    assert.ok(!(await isPinned(root.cid)))
  })
})

/**
 * The pragma, the characteristics, the offset and size of the inner version 1, and an index that is long enough to be
 * in the way.
 */
function asVersion2(inner: Buffer): Buffer {
  const header = Buffer.alloc(40)
  header.writeBigUInt64LE(51n, 16)
  header.writeBigUInt64LE(BigInt(inner.length), 24)
  header.writeBigUInt64LE(BigInt(51 + inner.length), 32)
  return Buffer.concat([Buffer.from('0aa16776657273696f6e02', 'hex'), header, inner, Buffer.alloc(300_000)])
}
