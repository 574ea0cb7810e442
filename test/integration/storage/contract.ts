import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import * as dagCbor from '@ipld/dag-cbor'
import { CID } from 'multiformats/cid'
import { sha256 } from 'multiformats/hashes/sha2'
import {
  type PinProgress,
  type Storage,
  StorageError,
  type StorageErrorCode,
} from '../../../src/storage/port.ts'
import { until } from '../../support/processes.ts'
import { carCases } from './cases/car.ts'
import { pathCases } from './cases/paths.ts'
import { collect, file, folder, randomBytes, texts } from './content.ts'
import { startProvider } from './node-process.ts'
import { untrustedDagCases } from './untrusted.ts'

/** A driver under test. */
export interface Subject {
  storage: Storage
  close(): Promise<void>
}

const MIB = 1024 * 1024
const STALL_MS = 20_000
/** Nobody listens on port 1. */
const CLOSED = '/ip4/127.0.0.1/tcp/1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN'

/** Checks that a call fails as the port says. */
export function failsWith(code: StorageErrorCode) {
  return (error: unknown) => {
    assert.ok(error instanceof StorageError, `not a StorageError: ${error}`)
    assert.equal(error.code, code, error.message)
    return true
  }
}

/** The cases that every driver of the storage port has to pass. */
export function storageContract(
  name: string,
  open: () => Promise<Subject>,
  skip: string | false = false,
): void {
  describe(`storage contract: ${name}`, { skip }, () => {
    const { signal } = new AbortController()
    let subject: Subject
    let storage: Storage
    let provider: Awaited<ReturnType<typeof startProvider>>

    before(async () => {
      provider = await startProvider()
      subject = await open()
      storage = subject.storage
    })
    after(async () => {
      await subject?.close()
      await provider?.stop()
    })

    const pin = (cid: CID, options: Partial<Parameters<Storage['pin']>[1]> = {}) =>
      storage.pin(cid, { origins: [provider.address], stallMs: STALL_MS, signal, ...options })
    const listed = async () => {
      const cids: string[] = []
      for await (const cid of storage.list({ signal })) cids.push(`${cid}`)
      return cids
    }
    const cat = (cid: CID, range: { path?: string; offset?: number; length?: number } = {}) =>
      collect(storage.cat(cid, { ...range, signal }))

    /** A CID that nobody has. */
    const nobodys = async (text: string) => CID.createV1(0x55, await sha256.digest(Buffer.from(text)))

    describe('add', () => {
      test('makes the CIDs that Kubo states for the profile, at the borders of a chunk', async () => {
        const vectors = [
          [MIB, 'bafkreiacndfy443ter6qr2tmbbdhadvxxheowwf75s6zehscklu6ezxmta'],
          [MIB + 1, 'bafybeigmix7t42i6jacydtquhet7srwvgpizfg7gjbq7627d35mjomtu64'],
        ] as const
        for (const [size, expected] of vectors) {
          const added = await storage.add(file('chunk-v1-seed', size), { signal })
          assert.deepEqual([`${added.cid}`, added.size], [expected, size])
          assert.deepEqual(await cat(added.cid), await collect(randomBytes('chunk-v1-seed', size)))
        }
        const hello = await storage.add(texts({ 'hello.txt': 'hello world' }), { signal })
        assert.equal(`${hello.cid}`, 'bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e')
      })

      test('shards a directory exactly where Kubo does', async () => {
        const directories = [
          [21, 'bafybeic3h7rwruealwxkacabdy45jivq2crwz6bufb5ljwupn36gicplx4'],
          [22, 'bafybeiegvuterwurhdtkikfhbxcldohmxp566vpjdofhzmnhv6o4freidu'],
        ] as const
        for (const [lastNameLength, expected] of directories) {
          const names = await vectorNames('hamt-unixfs-v1-2025', 4766, 11, lastNameLength)
          const { cid } = await storage.add(texts(Object.fromEntries(names.map((path) => [path, 'x']))), {
            signal,
          })
          assert.equal(`${cid}`, expected)
          const stat = await storage.stat(cid, { signal })
          assert.deepEqual(stat, { size: 4766, files: 4766, mimeType: 'directory' })
          assert.equal(`${await cat(cid, { path: names[4000] })}`, 'x')
        }
      })

      test('an empty file, and nothing at all', async () => {
        const { cid, size } = await storage.add(texts({ empty: '' }), { signal })
        assert.equal(size, 0)
        assert.equal(`${cid}`, 'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku')
        assert.equal((await cat(cid)).length, 0)
        await assert.rejects(storage.add(texts({}), { signal }), failsWith('invalid_object'))
      })

      test('one entry with a slash is a directory, and all entries are pinned', async () => {
        const single = await storage.add(texts({ 'docs/readme.txt': 'read me' }), { signal })
        assert.equal(`${await cat(single.cid, { path: 'docs/readme.txt' })}`, 'read me')
        assert.equal(await storage.isPinned(single.cid, { signal }), true)
        assert.ok((await listed()).includes(`${single.cid}`))
      })

      test('a source that fails leaves no pin', async () => {
        const before = await listed()
        async function* broken() {
          yield* file('broken', 3 * MIB)
          throw new Error('the upload broke off')
        }
        await assert.rejects(storage.add(broken(), { signal }))
        assert.deepEqual((await listed()).sort(), before.sort())
      })
    })

    describe('cat and stat', () => {
      test('ranges', async () => {
        const { cid } = await storage.add(file('ranges', 5 * MIB + 77), { signal })
        const whole = await collect(randomBytes('ranges', 5 * MIB + 77))
        const ranges = [
          [0, 10],
          [MIB - 5, 10],
          [MIB, MIB],
          [3 * MIB + 1, 2 * MIB],
          [5 * MIB, 1000],
          [5 * MIB + 77, 5],
          [9 * MIB, 5],
          [7, 0],
          [123, undefined],
        ] as const
        for (const [offset, length] of ranges) {
          const expected = whole.subarray(offset, length === undefined ? undefined : offset + length)
          assert.deepEqual(await cat(cid, { offset, length }), expected, `${offset}+${length}`)
        }
      })

      test('sizes, numbers of files and MIME types', async () => {
        const binary = await storage.add(file('stat', 2 * MIB), { signal })
        const text = await storage.add(texts({ 'a.txt': 'plain text, ünïcode' }), { signal })
        const pdf = await storage.add(texts({ report: '%PDF-1.7\n' }), { signal })
        const tree = await storage.add(texts({ 'a/b/c.txt': '123', 'a/d.txt': '45', 'e.txt': '6' }), {
          signal,
        })
        const stat = (cid: CID) => storage.stat(cid, { signal })
        assert.deepEqual(await stat(binary.cid), {
          size: 2 * MIB,
          files: 1,
          mimeType: 'application/octet-stream',
        })
        assert.deepEqual(await stat(text.cid), { size: text.size, files: 1, mimeType: 'text/plain' })
        assert.deepEqual(await stat(pdf.cid), { size: pdf.size, files: 1, mimeType: 'application/pdf' })
        assert.deepEqual(await stat(tree.cid), { size: 6, files: 3, mimeType: 'directory' })
        const withEmpty = await storage.add(texts({ 'd/empty': '', 'd/full': '1' }), { signal })
        assert.deepEqual(await stat(withEmpty.cid), { size: 1, files: 2, mimeType: 'directory' })
      })

      test('never ask the network', async () => {
        const near = CID.parse(await provider.node.call('addTexts', { 'near.txt': 'pinned here' }))
        const far = CID.parse(await provider.node.call('addTexts', { 'far.txt': 'only at the provider' }))
        await pin(near) // so that the provider is connected
        await assert.rejects(cat(far), failsWith('not_found'))
        await assert.rejects(storage.stat(far, { signal }), failsWith('not_found'))
        await assert.rejects(cat(near, { path: 'no/such/file' }), failsWith('not_found'))
      })

      test('a directory has no bytes', async () => {
        const { cid } = await storage.add(texts({ 'a/b': '1', c: '2' }), { signal })
        await assert.rejects(cat(cid), failsWith('invalid_object'))
      })

      test('an identity CID carries its own bytes', async () => {
        const cid = CID.parse('bafkqaddimvwgy3zao5xxe3debi')
        assert.equal(`${await cat(cid)}`, 'hello world\n')
      })
    })

    carCases({ storage: () => storage, provider: () => provider })
    pathCases({ storage: () => storage, provider: () => provider })
    untrustedDagCases(() => ({ storage, provider }))

    describe('pin', () => {
      test('a file of several MB, with progress that only grows', async () => {
        const cid = CID.parse(await provider.node.call('addFile', 'pin-file', 12 * MIB + 5))
        const reports: PinProgress[] = []
        const { blocks, bytes } = await pin(cid, { onProgress: (progress) => reports.push(progress) })
        assert.equal(blocks, 14)
        assert.ok(bytes > 12 * MIB)
        assert.deepEqual(await cat(cid), await collect(randomBytes('pin-file', 12 * MIB + 5)))
        assert.equal(reports[0]?.phase, 'searching')
        assert.deepEqual([reports.at(-1)?.blocks, reports.at(-1)?.bytes], [blocks, bytes])
        for (const [index, next] of reports.entries()) {
          const previous = reports[index - 1] ?? next
          assert.ok(
            next.blocks >= previous.blocks && next.bytes >= previous.bytes,
            `report ${index} went back`,
          )
          if (previous.phase === 'retrieving') assert.equal(next.phase, 'retrieving')
        }
        assert.equal(await storage.isPinned(cid, { signal }), true)
      })

      test('a directory of 2,000 files', async () => {
        const cid = CID.parse(await provider.node.call('addFolder', 'pin-folder', 2000, 2000))
        await pin(cid)
        assert.deepEqual(await storage.stat(cid, { signal }), {
          size: 4_000_000,
          files: 2000,
          mimeType: 'directory',
        })
        const path = 'part-19/file-1999.bin'
        assert.deepEqual(await cat(cid, { path }), await collect(randomBytes('pin-folder-1999', 2000)))
      })

      test('a DAG that is not UnixFS', async () => {
        const leaf = CID.parse(await provider.node.call('addFile', 'cbor-leaf', 100_000))
        const bytes = dagCbor.encode({ name: 'root', parts: [leaf, { again: leaf }] })
        const cid = CID.createV1(dagCbor.code, await sha256.digest(bytes))
        await provider.node.call('putBlock', `${cid}`, bytes)
        assert.equal((await pin(cid)).blocks, 2)
        const size = bytes.length + 100_000
        assert.deepEqual(await storage.stat(cid, { signal }), {
          size,
          files: 1,
          mimeType: 'application/octet-stream',
        })
        await assert.rejects(cat(cid), failsWith('invalid_object'))
      })

      test('is idempotent, also side by side, and needs nobody when it is there', async () => {
        const cid = CID.parse(await provider.node.call('addFile', 'twice', 3 * MIB))
        await Promise.all([pin(cid), pin(cid), pin(cid), pin(cid)])
        assert.deepEqual(await pin(cid, { origins: [CLOSED], stallMs: 1000 }), { blocks: 0, bytes: 0 })
        assert.equal((await listed()).filter((listedCid) => listedCid === `${cid}`).length, 1)
      })

      test('ends as stalled when nobody has the content', async () => {
        const started = Date.now()
        await assert.rejects(pin(await nobodys('stalled'), { stallMs: 1000 }), failsWith('stalled'))
        await assert.rejects(
          pin(await nobodys('stalled'), { stallMs: 500, origins: [] }),
          failsWith('stalled'),
        )
        assert.ok(Date.now() - started < 5000)
      })

      test('ends as stalled when only a part of the content is there', async () => {
        const leaf = await nobodys('missing part')
        const bytes = dagCbor.encode({ leaf })
        const cid = CID.createV1(dagCbor.code, await sha256.digest(bytes))
        await provider.node.call('putBlock', `${cid}`, bytes)
        await assert.rejects(pin(cid, { stallMs: 1500 }), failsWith('stalled'))
        await assert.rejects(pin(cid, { stallMs: 1500, origins: [CLOSED] }), failsWith('stalled'))
        assert.equal(await storage.isPinned(cid, { signal }), false)
      })

      test('ends as bad_host_node when no host node can be reached, sooner than a stall', async () => {
        const started = Date.now()
        const unknownPeer = '/p2p/12D3KooWEqnTdgqHnkkwarSrJjeMP2ZJiADWLYADaNvUb6SQNyPF'
        const options = { origins: [CLOSED, unknownPeer], stallMs: 60_000 }
        await assert.rejects(pin(await nobodys('bad host node'), options), failsWith('bad_host_node'))
        assert.ok(Date.now() - started < 15_000)
      })

      test('one host node that answers is enough', async () => {
        const cid = CID.parse(await provider.node.call('addTexts', { 'a.txt': 'one of two' }))
        await pin(cid, { origins: [CLOSED, provider.address] })
        assert.equal(`${await cat(cid)}`, 'one of two')
      })

      test('ends promptly when aborted', async () => {
        const controller = new AbortController()
        const pinning = pin(await nobodys('aborted'), {
          signal: controller.signal,
          onProgress: () => setImmediate(() => controller.abort()),
        })
        const started = Date.now()
        await assert.rejects(pinning, failsWith('aborted'))
        assert.ok(Date.now() - started < 1000)
        await assert.rejects(
          pin(await nobodys('aborted'), { signal: AbortSignal.abort() }),
          failsWith('aborted'),
        )
      })

      test('ends as too_large above maxBytes, and is not kept', async () => {
        const cid = CID.parse(await provider.node.call('addFile', 'too-large', 5 * MIB))
        await assert.rejects(pin(cid, { maxBytes: 2 * MIB }), failsWith('too_large'))
        assert.equal(await storage.isPinned(cid, { signal }), false)
        await pin(cid, { maxBytes: 6 * MIB })
      })

      test('ends as invalid_object when a block is not what its codec says', async () => {
        for (const code of [0x70, 0x71, 0x129]) {
          const bytes = Buffer.from(`{ not a block of ${code} at all`)
          const cid = CID.createV1(code, await sha256.digest(bytes))
          await provider.node.call('putBlock', `${cid}`, bytes)
          await assert.rejects(pin(cid, { stallMs: 5000 }), failsWith('invalid_object'), `codec ${code}`)
          assert.equal(await storage.isPinned(cid, { signal }), false)
        }
      })

      test('ends as invalid_object when the codec is unknown', async () => {
        const bytes = Buffer.from('some bytes')
        const cid = CID.createV1(0x300001, await sha256.digest(bytes))
        await provider.node.call('putBlock', `${cid}`, bytes)
        await assert.rejects(pin(cid, { stallMs: 5000 }), failsWith('invalid_object'))
      })

      test('short calls do not wait behind pins that hang', async () => {
        const controller = new AbortController()
        const hanging = Array.from({ length: 20 }, async (_, i) =>
          pin(await nobodys(`hanging ${i}`), { signal: controller.signal, stallMs: 60_000 }),
        )
        const settled = Promise.allSettled(hanging)
        const started = Date.now()
        await storage.info({ signal })
        await storage.isPinned(await nobodys('hanging 1'), { signal })
        await listed()
        assert.ok(Date.now() - started < 2000)
        controller.abort()
        for (const result of await settled) {
          assert.ok(result.status === 'rejected' && failsWith('aborted')(result.reason))
        }
      })
    })

    describe('unpin and gc', () => {
      test('remove what nobody keeps, and only that', async () => {
        const first = await storage.add(texts({ 'x.txt': 'only in the first', 'y.txt': 'in both' }), {
          signal,
        })
        const second = await storage.add(texts({ 'y.txt': 'in both', 'z.txt': 'only in the second' }), {
          signal,
        })
        const raw = async (text: string) => CID.createV1(0x55, await sha256.digest(Buffer.from(text)))
        assert.equal(await storage.unpin(first.cid, { signal }), true)
        assert.equal(await storage.unpin(first.cid, { signal }), false)
        assert.equal(await storage.isPinned(first.cid, { signal }), false)
        const onlyInFirst = await raw('only in the first')
        await until('what only the first had is collected', async () => {
          await storage.gc({ signal })
          return (await storage.stat(onlyInFirst, { signal }).catch(() => null)) === null
        })
        await assert.rejects(storage.stat(first.cid, { signal }), failsWith('not_found'))
        assert.equal(`${await cat(second.cid, { path: 'y.txt' })}`, 'in both')
        assert.equal(`${await cat(second.cid, { path: 'z.txt' })}`, 'only in the second')
        assert.equal((await storage.gc({ signal })).removedBlocks, 0)
      })

      test('a pin that is released while another one keeps its parts', async () => {
        const inner = await storage.add(file('inner', 2 * MIB), { signal })
        const { cid } = await storage.add(folder('outer', 3, 1000), { signal })
        await storage.unpin(cid, { signal })
        await until('what nobody keeps is collected', async () => {
          await storage.gc({ signal })
          return (await storage.stat(cid, { signal }).catch(() => null)) === null
        })
        assert.equal((await cat(inner.cid)).length, 2 * MIB)
      })
    })

    test('info says who and where the node is', async () => {
      const info = await storage.info({ signal })
      assert.equal(info.driver, storage.driver)
      for (const address of info.addresses) assert.match(address, /\/p2p\/[^/]+$/)
    })
  })
}

/** The file names of Kubo's directory vectors. */
async function vectorNames(
  seed: string,
  count: number,
  length: number,
  lastLength: number,
): Promise<string[]> {
  const alphabet = 'abcdefghijklmnopqrstuvwxyz01234567890-_'
  const bytes = await collect(randomBytes(seed, MIB))
  return Array.from({ length: count }, (_, i) => {
    const name = bytes.subarray(i * length, i * length + (i === count - 1 ? lastLength : length))
    return Array.from(name, (byte) => alphabet[byte % alphabet.length]).join('')
  })
}
