import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as dagCbor from '@ipld/dag-cbor'
import { CID } from 'multiformats/cid'
import { sha256 } from 'multiformats/hashes/sha2'
import type { PinProgress, Storage } from '../../../../src/storage/port.ts'
import { collect, folder, randomBytes } from '../content.ts'
import { type Cases, cidOf, failsWith, MIB, pinned, STALL_MS } from './context.ts'

/** An address where nothing listens. */
const CLOSED = '/ip4/127.0.0.1/tcp/1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN'

/** Retrieval. */
export function pinCases({ storage, provider }: Cases): void {
  const { signal } = new AbortController()
  const pin = (cid: CID, options: Partial<Parameters<Storage['pin']>[1]> = {}) =>
    storage().pin(cid, { origins: [provider().address], stallMs: STALL_MS, signal, ...options })
  const cat = (cid: CID, path?: string) => collect(storage().cat(cid, { path, signal }))

  describe('pin', () => {
    test('pin keeps a file of several MB, with progress that only grows', async () => {
      const cid = CID.parse(await provider().node.call('addFile', 'pin-file', 12 * MIB + 5))
      const reports: PinProgress[] = []
      const { blocks, bytes } = await pin(cid, { onProgress: (progress) => reports.push(progress) })
      assert.equal(blocks, 14)
      assert.ok(bytes > 12 * MIB)
      assert.deepEqual(await cat(cid), await collect(randomBytes('pin-file', 12 * MIB + 5)))
      assert.equal(reports[0]?.phase, 'searching')
      assert.deepEqual([reports.at(-1)?.blocks, reports.at(-1)?.bytes], [blocks, bytes])
      for (const [index, next] of reports.entries()) {
        const previous = reports[index - 1] ?? next
        assert.ok(next.blocks >= previous.blocks && next.bytes >= previous.bytes, `report ${index} went back`)
        if (previous.phase === 'retrieving') assert.equal(next.phase, 'retrieving')
      }
      assert.equal(await storage().isPinned(cid, { signal }), true)
    })

    test('pin keeps a directory of 2,000 files', async () => {
      const cid = CID.parse(await provider().node.call('addFolder', 'pin-folder', 2000, 2000))
      await pin(cid)
      assert.deepEqual(await storage().stat(cid, { signal }), {
        size: 4_000_000,
        files: 2000,
        mimeType: 'directory',
      })
      const path = 'part-19/file-1999.bin'
      assert.deepEqual(await cat(cid, path), await collect(randomBytes('pin-folder-1999', 2000)))
    })

    test('pin keeps a DAG that is not UnixFS', async () => {
      const leaf = CID.parse(await provider().node.call('addFile', 'cbor-leaf', 100_000))
      const bytes = dagCbor.encode({ name: 'root', parts: [leaf, { again: leaf }] })
      const cid = CID.createV1(dagCbor.code, await sha256.digest(bytes))
      await provider().node.call('putBlock', `${cid}`, bytes)
      assert.equal((await pin(cid)).blocks, 2)
      const size = bytes.length + 100_000
      assert.deepEqual(await storage().stat(cid, { signal }), {
        size,
        files: 1,
        mimeType: 'application/octet-stream',
      })
      await assert.rejects(cat(cid), failsWith('invalid_object'))
    })

    test('pin is idempotent, even concurrently, and needs no peer for stored content', async () => {
      const cid = CID.parse(await provider().node.call('addFile', 'twice', 3 * MIB))
      await Promise.all([pin(cid), pin(cid), pin(cid), pin(cid)])
      assert.deepEqual(await pin(cid, { origins: [CLOSED], stallMs: 1000 }), { blocks: 0, bytes: 0 })
      assert.equal((await pinned(storage())).filter((listedCid) => listedCid === `${cid}`).length, 1)
    })

    test('pin fails as stalled if no peer has the content', async () => {
      const started = Date.now()
      await assert.rejects(pin(await cidOf('stalled'), { stallMs: 1000 }), failsWith('stalled'))
      await assert.rejects(pin(await cidOf('stalled'), { stallMs: 500, origins: [] }), failsWith('stalled'))
      assert.ok(Date.now() - started < 60_000)
    })

    test('pin fails as stalled if only a part of the content is available', async () => {
      const leaf = await cidOf('missing part')
      const bytes = dagCbor.encode({ leaf })
      const cid = CID.createV1(dagCbor.code, await sha256.digest(bytes))
      await provider().node.call('putBlock', `${cid}`, bytes)
      await assert.rejects(pin(cid, { stallMs: 4000 }), failsWith('stalled'))
      await assert.rejects(pin(cid, { stallMs: 1500, origins: [CLOSED] }), failsWith('stalled'))
      assert.equal(await storage().isPinned(cid, { signal }), false)
    })

    test('pin fails as bad_host_node if no host node is reachable, sooner than a stall', async () => {
      const started = Date.now()
      const unknownPeer = '/p2p/12D3KooWEqnTdgqHnkkwarSrJjeMP2ZJiADWLYADaNvUb6SQNyPF'
      const options = { origins: [CLOSED, unknownPeer], stallMs: 60_000 }
      await assert.rejects(pin(await cidOf('bad host node'), options), failsWith('bad_host_node'))
      assert.ok(Date.now() - started < 45_000)
    })

    test('pin needs only one host node that answers', async () => {
      const cid = CID.parse(await provider().node.call('addTexts', { 'a.txt': 'one of two' }))
      await pin(cid, { origins: [CLOSED, provider().address] })
      assert.equal(`${await cat(cid)}`, 'one of two')
    })

    test('pin ends promptly when aborted', async () => {
      const controller = new AbortController()
      const pinning = pin(await cidOf('aborted'), {
        signal: controller.signal,
        onProgress: () => setImmediate(() => controller.abort()),
      })
      const started = Date.now()
      await assert.rejects(pinning, failsWith('aborted'))
      assert.ok(Date.now() - started < 15_000)
      await assert.rejects(pin(await cidOf('aborted'), { signal: AbortSignal.abort() }), failsWith('aborted'))
    })

    test('pin fails as too_large above maxBytes, and is released', async () => {
      const cid = CID.parse(await provider().node.call('addFile', 'too-large', 5 * MIB))
      await assert.rejects(pin(cid, { maxBytes: 2 * MIB }), failsWith('too_large'))
      if (storage().driver === 'embedded') assert.equal(await storage().isPinned(cid, { signal }), false)
      await storage().unpin(cid, { signal })
      assert.equal(await storage().isPinned(cid, { signal }), false)
      await pin(cid, { maxBytes: 6 * MIB })
    })

    test('pin fails as invalid_object if a block does not match its codec', async () => {
      // Decoders have many ways to fail: their messages depend on the bytes.
      const blocks = [
        '{ not a block at all',
        '-b',
        '{"/":{"bytes":"?"}}',
        '{"no space left on device":1,"no space left on device":2}',
      ].map((text) => Buffer.from(text))
      blocks.push(Buffer.from('eb1ed82a00', 'hex'), Buffer.alloc(20, 0x02), Buffer.alloc(20, 0xff))
      for (let i = 0; i < 50; i++)
        blocks.push(Buffer.from(await collect(randomBytes(`not a block ${i}`, 1 + i))))
      for (const code of [0x70, 0x71, 0x129]) {
        for (const bytes of blocks) {
          const cid = CID.createV1(code, await sha256.digest(bytes))
          await provider().node.call('putBlock', `${cid}`, bytes)
          const message = `codec ${code}, ${bytes.toString('hex')}`
          await assert.rejects(pin(cid), failsWith('invalid_object'), message)
          assert.equal(await storage().isPinned(cid, { signal }), false)
        }
      }
    })

    test('pin fails as invalid_object if the codec is unknown', async () => {
      const bytes = Buffer.from('some bytes')
      const cid = CID.createV1(0x300001, await sha256.digest(bytes))
      await provider().node.call('putBlock', `${cid}`, bytes)
      await assert.rejects(pin(cid), failsWith('invalid_object'))
    })

    test('short calls do not wait for pins that hang', async () => {
      const controller = new AbortController()
      const hanging = Array.from({ length: 20 }, async (_, i) =>
        pin(await cidOf(`hanging ${i}`), { signal: controller.signal, stallMs: 60_000 }),
      )
      const settled = Promise.allSettled(hanging)
      const started = Date.now()
      await storage().info({ signal })
      await storage().isPinned(await cidOf('hanging 1'), { signal })
      await pinned(storage())
      assert.ok(Date.now() - started < 45_000)
      controller.abort()
      for (const result of await settled) {
        assert.ok(result.status === 'rejected' && failsWith('aborted')(result.reason))
      }
    })

    test('pin with offline keeps stored content and asks no peer', async () => {
      const { cid } = await storage().add(folder('pinned offline', 3, 1000), { signal })
      await storage().unpin(cid, { signal })
      assert.equal((await pin(cid, { offline: true })).blocks, 5)
      assert.equal(await storage().isPinned(cid, { signal }), true)

      const far = CID.parse(await provider().node.call('addTexts', { 'far.txt': 'at the provider' }))
      const bytes = dagCbor.encode({ near: cid, far })
      const partial = CID.createV1(dagCbor.code, await sha256.digest(bytes))
      await provider().node.call('putBlock', `${partial}`, bytes)
      await pin(CID.parse(await provider().node.call('addTexts', { 'near.txt': 'connects' })))
      await assert.rejects(pin(far, { offline: true }), failsWith('not_found'))
      await assert.rejects(pin(partial, { offline: true }), failsWith('not_found'))
      for (const missing of [far, partial]) assert.equal(await storage().isPinned(missing, { signal }), false)
    })
  })
}
