import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CarBlockIterator } from '@ipld/car'
import * as dagCbor from '@ipld/dag-cbor'
import * as dagPb from '@ipld/dag-pb'
import { CID } from 'multiformats/cid'
import * as json from 'multiformats/codecs/json'
import * as raw from 'multiformats/codecs/raw'
import { identity } from 'multiformats/hashes/identity'
import { sha256 } from 'multiformats/hashes/sha2'
import { encode as varint } from 'uint8-varint'
import { carHeader, carSection } from '../../../../src/storage/dag/car.ts'
import type { PutBlock } from '../../../../src/storage/port.ts'
import { collect, file, randomBytes, texts } from '../content.ts'
import type { Subject } from '../contract.ts'
import { openSubject } from '../embedded-subject.ts'
import { block, carOf, inPieces, namesOf, node } from './blocks.ts'
import { type Cases, cidOf, failsWith, heldBytes, MIB, pinned } from './context.ts'

/** CARs, imported and exported. */
export function carCases(cases: Cases): void {
  const { signal } = new AbortController()

  const importCar = (car: Uint8Array, pieces = 50_000) =>
    cases.storage().importCar(inPieces(car, pieces), { signal })
  const refuses = async (car: Uint8Array, message: RegExp) => {
    const before = await pinned(cases.storage())
    await assert.rejects(importCar(car), (error) => {
      assert.match((error as Error).message, message)
      return failsWith('invalid_object')(error)
    })
    assert.deepEqual(await pinned(cases.storage()), before)
  }
  let elsewhere: Subject
  before(async () => {
    elsewhere = await openSubject()
  })
  after(() => elsewhere.close())
  /** A file as a CAR from another node. */
  const exported = async (seed: string, size: number): Promise<{ cid: CID; car: Buffer }> => {
    const { storage } = elsewhere
    const { cid } = await storage.add(file(seed, size), { signal })
    return { cid, car: await collect(storage.exportCar(cid, { signal })) }
  }

  describe('exportCar', () => {
    test('exportCar is a CARv1 with every block once, depth first', async () => {
      const storage = cases.storage()
      const { cid } = await storage.add(texts({ 'a/x.txt': 'twice', 'b/y.txt': 'twice', 'b/z.txt': 'z' }), {
        signal,
      })
      const car = await CarBlockIterator.fromIterable(storage.exportCar(cid, { signal }))
      assert.deepEqual([car.version, (await car.getRoots()).map(String)], [1, [`${cid}`]])
      const order: string[] = []
      for await (const block of car) {
        assert.deepEqual((await sha256.digest(block.bytes)).digest, block.cid.multihash.digest)
        order.push(`${block.cid}`)
      }
      const at = async (path: string) => `${(await storage.resolve(cid, { path, signal })).cid}`
      const expected = [cid, await at('a'), await at('a/x.txt'), await at('b'), await at('b/z.txt')]
      assert.deepEqual(order, expected.map(String))
    })

    test('blocks come in the order of a CAR, and blocks of a repeated folder come once', async () => {
      const storage = cases.storage()
      const files = {
        'a/x.txt': 'first',
        'a/y.txt': 'same',
        'b/x.txt': 'first',
        'b/y.txt': 'same',
        c: 'same',
      }
      const { cid } = await storage.add(texts(files), { signal })
      const names = await namesOf(storage.blocks(cid, { signal }))
      assert.equal(names.length, 4)
      const car = await CarBlockIterator.fromIterable(storage.exportCar(cid, { signal }))
      assert.deepEqual(names, await namesOf(car))
    })

    test('blocks with identity CIDs are omitted', async () => {
      const storage = cases.storage()
      const stored = await block(Buffer.from('a block'))
      const inline = CID.createV1(raw.code, identity.digest(Buffer.from('its own bytes')))
      const folder = await node([inline, stored.cid])
      const make = async (put: PutBlock) => {
        for (const one of [stored, folder]) await put(one)
        return folder.cid
      }
      const cid = await storage.build(make, { base: null, signal })
      assert.deepEqual(await namesOf(storage.blocks(cid, { signal })), [`${cid}`, `${stored.cid}`])
    })

    test('exportCar fails as not_found if a block is missing', async () => {
      const leaf = await cidOf('missing in a CAR')
      const bytes = dagCbor.encode({ leaf })
      const cid = CID.createV1(dagCbor.code, await sha256.digest(bytes))
      // Only one node of the DAG, as after a pin that did not find the rest.
      const { provider } = cases
      await provider().node.call('putBlock', `${cid}`, bytes)
      const pinning = { origins: [provider().address], stallMs: 1500, signal }
      await assert.rejects(cases.storage().pin(cid, pinning), failsWith('stalled'))
      await assert.rejects(collect(cases.storage().exportCar(cid, { signal })), failsWith('not_found'))
      await assert.rejects(collect(cases.storage().exportCar(leaf, { signal })), failsWith('not_found'))
      await assert.rejects(namesOf(cases.storage().blocks(cid, { signal })), failsWith('not_found'))
    })
  })

  describe('importCar', () => {
    test('importCar restores what was exported', async () => {
      const { cid, car } = await exported('there and back', 5 * MIB + 3)
      const storage = cases.storage()
      await assert.rejects(storage.stat(cid, { signal }), failsWith('not_found'))
      assert.equal(`${(await importCar(car)).cid}`, `${cid}`)
      assert.equal(await storage.isPinned(cid, { signal }), true)
      const bytes = await collect(randomBytes('there and back', 5 * MIB + 3))
      assert.deepEqual(await collect(storage.cat(cid, { signal })), bytes)
      assert.deepEqual(await collect(storage.exportCar(cid, { signal })), car)
      assert.equal(`${(await importCar(car, 1_000_000)).cid}`, `${cid}`, 'a second time')
    })

    test('importCar restores an object that links to the same bytes as two kinds of leaves', async () => {
      const leaf = await block(Buffer.from('{"a":1}'))
      const asJson = { cid: CID.createV1(json.code, leaf.cid.multihash), bytes: leaf.bytes }
      const root = await block(dagCbor.encode({ raw: leaf.cid, json: asJson.cid }), dagCbor.code)
      const made = [root, leaf, asJson]
      await elsewhere.storage.importCar(inPieces(carOf(root.cid, made), MIB), { signal })
      const car = await collect(elsewhere.storage.exportCar(root.cid, { signal }))
      assert.equal(`${(await importCar(car)).cid}`, `${root.cid}`)
      const names = made.map(({ cid }) => `${cid}`).sort()
      assert.deepEqual((await namesOf(cases.storage().blocks(root.cid, { signal }))).sort(), names)
    })

    test('importCar accepts version 2, with padding and an index', async () => {
      const { cid, car } = await exported('version 2', 3 * MIB)
      assert.equal(`${(await importCar(asVersion2(car))).cid}`, `${cid}`)
      assert.equal((await cases.storage().stat(cid, { signal })).size, 3 * MIB)
    })

    test('importCar accepts pieces of any size, blocks in any order, and blocks of 2 MiB', async () => {
      const leaf = await block(new Uint8Array(2 * MIB).fill(1))
      const small = await block(Buffer.from('small'))
      const root = await node([leaf.cid, small.cid])
      assert.equal(`${(await importCar(carOf(root.cid, [small, leaf, root]), 777)).cid}`, `${root.cid}`)
    })

    test('importCar keeps a CIDv0 root and pins it by its CIDv1', async () => {
      const leaf = await block(Buffer.from('under a CIDv0'))
      const { cid, bytes } = await node([leaf.cid])
      const root = CID.createV0(cid.multihash as never)
      assert.equal(`${(await importCar(carOf(root, [{ cid: root, bytes }, leaf]))).cid}`, `${root}`)
      assert.equal(await cases.storage().isPinned(cid, { signal }), true)
    })

    test('importCar needs no block for an identity root', async () => {
      const root = CID.parse('bafkqaddimvwgy3zao5xxe3debi')
      assert.equal(`${(await importCar(carOf(root, []))).cid}`, `${root}`)
    })

    test('importCar rejects a damaged CAR', async () => {
      const { car } = await exported('damaged', 2 * MIB)
      const flipped = Buffer.from(car)
      flipped[MIB] = (flipped[MIB] ?? 0) ^ 1
      await refuses(flipped, /damaged/)
      await refuses(car.subarray(0, car.length - 1), /Unexpected end/)
      await refuses(car.subarray(0, 20), /./)
      await refuses(new Uint8Array(), /./)
      await refuses(Buffer.from('this is not a CAR at all'), /./)
      await refuses(asVersion2(car.subarray(0, car.length - MIB)), /./)
    })

    test('importCar rejects a CAR without exactly one root, and reports it [report: error texts]', async () => {
      const [one, two] = [await block(Buffer.from('one')), await block(Buffer.from('two'))]
      const header = (roots: CID[]) => {
        const bytes = dagCbor.encode({ version: 1, roots })
        return Buffer.concat([varint(bytes.length), bytes])
      }
      const sections = [...carSection(one), ...carSection(two)]
      await refuses(
        Buffer.concat([header([one.cid, two.cid]), ...sections]),
        /it has 2 roots: a CAR with exactly one root can be imported/,
      )
      await refuses(Buffer.concat([header([]), ...sections]), /it has no root: /)
    })

    test('importCar rejects a CAR that lacks a block, even if the block is stored here', async () => {
      const storage = cases.storage()
      const absent = await cidOf('in no CAR')
      const present = (await storage.add(texts({ 'a.txt': 'of somebody else' }), { signal })).cid
      const folder = (await storage.add(texts({ 'b/a.txt': 'of somebody else' }), { signal })).cid
      for (const cid of [absent, present, folder]) {
        const root = await node([cid])
        await refuses(carOf(root.cid, [root]), /a block that it links to is missing/)
      }
      await refuses(carOf(absent, []), /missing/)
      // Anyone who knows the CIDs in a folder can build the folder's own block. Declared as a leaf, it hides its links.
      const hidden = await storage.block(folder, { signal })
      const root = await node([folder])
      const disguised = { cid: CID.createV1(raw.code, folder.multihash), bytes: hidden }
      await refuses(carOf(root.cid, [root, disguised]), /missing/)
    })

    test('importCar rejects impossible lengths', async () => {
      const { cid, bytes } = await block(Buffer.from('of a long section'))
      const section = (length: number) => Buffer.concat([carHeader(cid), varint(length), cid.bytes, bytes])
      await refuses(section(2 ** 40), /part of/)
      await refuses(section(5), /part of/)
      await refuses(section(0), /zero/)
      const large = await block(new Uint8Array(2 * MIB + 1))
      await refuses(carOf(large.cid, [large]), /part of/)
      const version2 = asVersion2(carOf(cid, [{ cid, bytes }]))
      version2.writeBigUInt64LE(2n ** 50n, 11 + 16)
      await refuses(version2, /part of/)
    })

    test('importCar rejects malformed blocks and unknown codecs', async () => {
      const odd = await block(Buffer.from('not a node'), dagPb.code)
      await refuses(carOf(odd.cid, [odd]), /does not decode/)
      const unknown = await block(Buffer.from('any bytes'), 0x300001)
      await refuses(carOf(unknown.cid, [unknown]), /not supported/)
    })

    test('importCar with a source that fails throws the source’s error and leaves no pin', async () => {
      const { car } = await exported('broken off', 3 * MIB)
      const before = await pinned(cases.storage())
      async function* broken() {
        yield* inPieces(car.subarray(0, 2 * MIB), 50_000)
        throw new Error('the upload broke off')
      }
      await assert.rejects(cases.storage().importCar(broken(), { signal }), /^Error: the upload broke off$/)
      assert.deepEqual(await pinned(cases.storage()), before)
    })

    test('importCar holds only a part of a fast source', async () => {
      const { car } = await exported('backpressure', 64 * MIB)
      const before = heldBytes()
      let most = 0
      async function* measured() {
        let pieces = 0
        for await (const piece of inPieces(car, 64 * 1024)) {
          if (++pieces % 64 === 0) most = Math.max(most, heldBytes() - before)
          yield piece
        }
      }
      await cases.storage().importCar(measured(), { signal })
      assert.ok(most < 32 * MIB, `${most} bytes were held`)
    })
  })
}

/** The same CAR as version 2: a fixed header, padding, the version 1, and an index that is never read. */
function asVersion2(car: Uint8Array): Buffer {
  const pragma = Buffer.from('0aa16776657273696f6e02', 'hex')
  const padding = 1000
  const header = Buffer.alloc(40)
  header.writeBigUInt64LE(BigInt(pragma.length + header.length + padding), 16)
  header.writeBigUInt64LE(BigInt(car.length), 24)
  header.writeBigUInt64LE(BigInt(pragma.length + header.length + padding + car.length), 32)
  return Buffer.concat([pragma, header, Buffer.alloc(padding), car, Buffer.alloc(5000, 7)])
}
