import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as dagCbor from '@ipld/dag-cbor'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { create as createDigest } from 'multiformats/hashes/digest'
import { identity } from 'multiformats/hashes/identity'
import { sha256 } from 'multiformats/hashes/sha2'
import { digestOf } from '../../../../src/storage/dag/hashes.ts'
import { UnsupportedError } from '../../../../src/storage/port.ts'
import { collect } from '../content.ts'
import { carOf, inPieces } from './blocks.ts'
import { type Cases, failsWith, MIB, pinned, STALL_MS } from './context.ts'

const GIT_RAW = 0x78
const DAG_JOSE = 0x85
const HASHES = {
  sha1: [0x11, 20],
  'sha3-256': [0x16, 32],
  'shake-256': [0x19, 64],
  'keccak-256': [0x1b, 32],
  blake3: [0x1e, 32],
  'dbl-sha2-256': [0x56, 32],
  'blake2b-256': [0xb220, 32],
  'blake2s-256': [0xb260, 32],
} as const

const made = (codec: number, code: number, length: number) =>
  CID.createV1(codec, createDigest(code, new Uint8Array(length).fill(1)))

/** CIDs of content that no node can verify, or that Berth cannot decode. */
const IMPOSSIBLE = {
  'an identity CID of 200 bytes': made(raw.code, identity.code, 200),
  'a digest that is too short': made(raw.code, sha256.code, 19),
  'a digest that is longer than its hash': made(dagCbor.code, sha256.code, 200),
  md5: made(raw.code, 0xd5, 16),
  'git-raw': made(GIT_RAW, 0x11, 20),
}

/** Unusual hash functions and codecs: content that Kubo supports is kept, and other content is rejected at once. */
export function unsupportedCases({ storage, provider }: Cases): void {
  const { signal } = new AbortController()
  const put = async (codec: number, [code, length]: readonly [number, number], bytes: Uint8Array) => {
    const cid = CID.createV1(codec, createDigest(code, await digestOf({ code, length }, bytes)))
    await provider().node.call('putBlock', `${cid}`, bytes)
    return { cid, bytes }
  }
  const pin = (cid: CID) => storage().pin(cid, { origins: [provider().address], stallMs: STALL_MS, signal })

  describe('hash functions and codecs', () => {
    test('a dag-jose DAG with all hash functions is kept and read [report: impossible content]', async () => {
      const leaves = await Promise.all(
        Object.entries(HASHES).map(([name, hash]) => put(raw.code, hash, Buffer.from(`by ${name}`))),
      )
      const object = await put(
        dagCbor.code,
        HASHES['blake2b-256'],
        dagCbor.encode(leaves.map(({ cid }) => cid)),
      )
      // A dag-jose block, whose payload is the signed CID.
      const signatures = [{ protected: Buffer.from('{}'), signature: Buffer.alloc(64, 1) }]
      const jose = dagCbor.encode({ payload: object.cid.bytes, signatures })
      const root = await put(DAG_JOSE, HASHES.blake3, jose)
      assert.equal((await pin(root.cid)).blocks, leaves.length + 2)
      assert.equal(await storage().isPinned(root.cid, { signal }), true)
      for (const { cid, bytes } of [root, object, ...leaves])
        assert.deepEqual(Buffer.from(await storage().block(cid, { signal })), Buffer.from(bytes))
      const [leaf] = leaves
      assert.equal(`${await collect(storage().cat(leaf?.cid as CID, { signal }))}`, 'by sha1')
      assert.equal((await storage().stat(root.cid, { signal })).mimeType, 'application/octet-stream')
      const car = await collect(storage().exportCar(root.cid, { signal }))
      assert.equal(await storage().unpin(root.cid, { signal }), true)
      assert.equal(`${(await storage().importCar(inPieces(car, MIB), { signal })).cid}`, `${root.cid}`)
    })

    for (const [what, cid] of Object.entries(IMPOSSIBLE)) {
      test(`${what} is rejected at once and leaves nothing [report: impossible content]`, async () => {
        const before = await pinned(storage())
        await assert.rejects(pin(cid), (error) => error instanceof UnsupportedError)
        const car = inPieces(carOf(cid, [{ cid, bytes: cid.multihash.digest }]), MIB)
        await assert.rejects(
          storage().importCar(car, { signal }),
          (error) => error instanceof UnsupportedError,
        )
        assert.equal(await storage().isPinned(cid, { signal }), false)
        assert.equal(await storage().unpin(cid, { signal }), false)
        assert.deepEqual(await pinned(storage()), before)
      })
    }

    test('an unsupported inner block ends a pin and is named [report: impossible content]', async () => {
      for (const inner of [IMPOSSIBLE['an identity CID of 200 bytes'], IMPOSSIBLE.md5]) {
        const { cid } = await put(dagCbor.code, [sha256.code, 32], dagCbor.encode({ inner }))
        await assert.rejects(pin(cid), (error) => error instanceof UnsupportedError)
        assert.equal(await storage().unpin(cid, { signal }), false)
      }
    })

    test('links to impossible CIDs do not stop a garbage collection [report: impossible content]', async () => {
      const inner = IMPOSSIBLE['a digest that is longer than its hash']
      const { cid } = await put(dagCbor.code, [sha256.code, 32], dagCbor.encode({ inner }))
      await assert.rejects(pin(cid), failsWith('invalid_object'))
      await storage().gc({ signal })
    })
  })
}
