import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { after, before, describe, mock, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import * as dagCbor from '@ipld/dag-cbor'
import * as dagPb from '@ipld/dag-pb'
import { noise } from '@libp2p/noise'
import { tcp } from '@libp2p/tcp'
import { yamux } from '@libp2p/yamux'
import { multiaddr } from '@multiformats/multiaddr'
import { UnixFS } from 'ipfs-unixfs'
import { createLibp2p } from 'libp2p'
import { CID } from 'multiformats/cid'
import { sha256 } from 'multiformats/hashes/sha2'
import { encode as varint } from 'uint8-varint'
import { Frontier } from '../../../src/storage/dag/frontier.ts'
import { BlockFolder } from '../../../src/storage/embedded/blocks.ts'
import { createEmbeddedStorage, type EmbeddedOptions } from '../../../src/storage/embedded.ts'
import type { Storage } from '../../../src/storage/port.ts'
import { listen } from '../../support/http-server.ts'
import { until } from '../../support/processes.ts'
import { block, carOf, inPieces } from './cases/blocks.ts'
import { failsWith, MIB } from './cases/context.ts'
import { collect, file, texts } from './content.ts'
import { keepingCases, storageContract } from './contract.ts'
import { openSubject } from './embedded-subject.ts'
import { startProvider, temporaryFolder } from './node-process.ts'

storageContract('embedded, what is kept', openSubject, { groups: keepingCases })

describe('embedded node', () => {
  const { signal } = new AbortController()
  const closing: (() => Promise<void>)[] = []
  let provider: Awaited<ReturnType<typeof startProvider>>
  let dir: string

  /** A node on the folder of this suite, or on another one. */
  const open = async (options: Partial<EmbeddedOptions> = {}): Promise<Storage> => {
    const storage = createEmbeddedStorage({ dir, network: 'public', allowPrivate: true, ...options })
    await storage.start()
    closing.push(() => storage.stop())
    return storage
  }
  const newFolder = async () => {
    const folder = await temporaryFolder()
    closing.unshift(folder.remove)
    return folder.dir
  }
  const pin = (storage: Storage, cid: CID, origins: string[], stallMs = 20_000) =>
    storage.pin(cid, { origins, stallMs, signal })

  before(async () => {
    provider = await startProvider()
    dir = await newFolder()
  })
  after(async () => {
    for (const close of closing.reverse()) await close()
    await provider.stop()
  })

  test('an offline node does everything except retrieve, next to an online node', async () => {
    const online = await open()
    const offline = await open({ offline: true })
    const { cid } = await online.add(texts({ 'a.txt': 'seen by both' }), { signal })
    assert.equal(`${await collect(offline.cat(cid, { signal }))}`, 'seen by both')
    assert.equal(await offline.isPinned(cid, { signal }), true)
    assert.equal(await offline.unpin(cid, { signal }), true)
    assert.equal(await online.isPinned(cid, { signal }), false)
    await pin(offline, cid, [])
    assert.equal(await online.isPinned(cid, { signal }), true)
    const far = CID.parse(await provider.node.call('addTexts', { 'far.txt': 'not here' }))
    const started = Date.now()
    await assert.rejects(pin(offline, far, [provider.address], 60_000), failsWith('stalled'))
    assert.ok(Date.now() - started < 40_000)
    const { peerId, addresses } = await offline.info({ signal })
    assert.deepEqual([peerId, addresses], [null, []])
  })

  test('a listening node keeps its identity in a file that only its user can read', async () => {
    const own = await newFolder()
    const listen = ['/ip4/127.0.0.1/tcp/0']
    const first = await open({ dir: own, listen })
    const { peerId, addresses } = await first.info({ signal })
    assert.ok(peerId && addresses[0]?.endsWith(`/p2p/${peerId}`))
    await first.stop()
    assert.equal((await stat(join(own, 'peer.key'))).mode & 0o777, 0o600)
    const second = await open({ dir: own, listen })
    assert.equal((await second.info({ signal })).peerId, peerId)
  })

  test('a taken address makes the start fail as unavailable', async () => {
    const listening = await open({ dir: await newFolder(), listen: ['/ip4/127.0.0.1/tcp/0'] })
    const [address = ''] = (await listening.info({ signal })).addresses
    const taken = address.slice(0, address.indexOf('/p2p/'))
    await assert.rejects(open({ dir: await newFolder(), listen: [taken] }), failsWith('unavailable'))
  })

  test('private addresses are not dialled unless allowed', async () => {
    const cid = CID.parse(await provider.node.call('addTexts', { 'a.txt': 'on loopback' }))
    const careful = await open({ dir: await newFolder(), allowPrivate: false })
    await assert.rejects(pin(careful, cid, [provider.address]), failsWith('bad_host_node'))
  })

  describe('with delegated routing', () => {
    let routingUrl: string
    let asked: string[]
    const server = createServer((request, response) => {
      asked.push(request.url ?? '')
      const [address = '', peerId] = provider.address.split('/p2p/')
      const record = { Schema: 'peer', ID: peerId, Addrs: [address, '/dns4/example.com/tcp/1/ws'] }
      const isProvided = /providers/.test(request.url ?? '')
      response.setHeader('content-type', 'application/json')
      response.end(
        JSON.stringify(isProvided ? { Providers: [{ Schema: 'x' }, record] } : { Peers: [record] }),
      )
    })

    before(async () => {
      asked = []
      await once(server.listen(0, '127.0.0.1'), 'listening')
      routingUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    })
    after(() => server.close())

    test('content is found by delegated routing without any host node', async () => {
      const cid = CID.parse(await provider.node.call('addTexts', { 'a.txt': 'found by routing' }))
      const storage = await open({ dir: await newFolder(), routingUrl })
      await pin(storage, cid, [])
      assert.deepEqual(asked, [`/routing/v1/providers/${cid}`])
    })

    test('a host node given only by its peer id is looked up', async () => {
      const cid = CID.parse(await provider.node.call('addTexts', { 'a.txt': 'found by peer id' }))
      const storage = await open({ dir: await newFolder(), routingUrl })
      const peerId = provider.address.slice(provider.address.indexOf('/p2p/') + 5)
      await pin(storage, cid, [`/p2p/${peerId}`])
      assert.ok(asked.includes(`/routing/v1/peers/${peerId}`))
    })
  })

  test('an unreachable host node is bad only if routing answers', async () => {
    let status = 500
    const routingUrl = await listen((_, response) => response.writeHead(status).end())
    const cid = CID.createV1(0x55, await sha256.digest(Buffer.from('behind a router')))
    const away = ['/ip4/127.0.0.1/tcp/1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN']
    const bare = ['/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN']
    const storage = await open({ dir: await newFolder(), routingUrl })
    for (const origins of [away, bare]) {
      await assert.rejects(pin(storage, cid, origins, 3000), failsWith('stalled'))
    }
    status = 404 // no peer is known
    for (const origins of [away, bare]) {
      await assert.rejects(pin(storage, cid, origins), failsWith('bad_host_node'))
    }
  })

  test('a node that retrieves content serves it too if it listens', async () => {
    const cid = CID.parse(await provider.node.call('addFile', 'passed on', 3 * MIB))
    const middle = await open({ dir: await newFolder(), listen: ['/ip4/127.0.0.1/tcp/0'] })
    await pin(middle, cid, [provider.address])
    const last = await open({ dir: await newFolder() })
    await pin(last, cid, (await middle.info({ signal })).addresses)
    assert.equal((await last.stat(cid, { signal })).size, 3 * MIB)
  })

  test('a peer whose message is rejected is disconnected, and so expects no response', async (t) => {
    const libp2p = await createLibp2p({
      transports: [tcp()],
      connectionEncrypters: [noise()],
      streamMuxers: [yamux()],
    })
    t.after(() => libp2p.stop())
    const connection = await libp2p.dial(multiaddr(provider.address))
    const stream = await connection.newStream('/ipfs/bitswap/1.2.0')
    const gone = once(libp2p, 'peer:disconnect', { signal: AbortSignal.timeout(30_000) })
    stream.send(varint(4 * MIB + 1))
    await gone
  })

  test('a block above 2 MiB is not retrieved, but a backup that has it can restore it', async () => {
    const large = await block(new Uint8Array(3 * MIB))
    await provider.node.call('putBlock', `${large.cid}`, large.bytes)
    const storage = await open({ dir: await newFolder() })
    await assert.rejects(pin(storage, large.cid, [provider.address]), failsWith('invalid_object'))
    const car = () => inPieces(carOf(large.cid, [large]), MIB)
    await assert.rejects(storage.importCar(car(), { signal }), failsWith('invalid_object'))
    await storage.importCar(car(), { isOwn: true, signal })
    assert.equal((await storage.stat(large.cid, { signal })).size, 3 * MIB)
  })

  test('a DAG whose nodes all link twice to the next node is walked once', async () => {
    let cid = CID.parse(await provider.node.call('addTexts', { leaf: 'deep down' }))
    for (let level = 0; level < 60; level++) {
      const bytes = dagCbor.encode({ level, left: cid, right: cid })
      cid = CID.createV1(dagCbor.code, await sha256.digest(bytes))
      await provider.node.call('putBlock', `${cid}`, bytes)
    }
    const storage = await open()
    assert.equal((await pin(storage, cid, [provider.address])).blocks, 61)
  })

  test('a damaged block counts as missing: it is not served, and is retrieved again', async () => {
    const storage = await open()
    const cid = CID.parse(await provider.node.call('addTexts', { 'a.txt': 'to be damaged', 'b.txt': 'b' }))
    await pin(storage, cid, [provider.address])
    const path = new BlockFolder(dir, { touchAfterMs: 1000 }).path(cid)
    await writeFile(path, 'something else')
    await assert.rejects(collect(storage.cat(cid, { path: 'a.txt', signal })), failsWith('not_found'))
    await storage.unpin(cid, { signal })
    await pin(storage, cid, [provider.address])
    assert.equal(`${await collect(storage.cat(cid, { path: 'a.txt', signal }))}`, 'to be damaged')
  })

  test('a disk that fails is unavailable and leaves no partial files', async () => {
    const own = await newFolder()
    const storage = await open({ dir: own })
    const cid = CID.parse(await provider.node.call('addTexts', { 'a.txt': 'does not fit' }))
    await rename(join(own, 'blocks'), join(own, 'aside'))
    await writeFile(join(own, 'blocks'), 'not a folder')
    await assert.rejects(pin(storage, cid, [provider.address]), failsWith('unavailable'))
    await assert.rejects(storage.add(file('disk', 3_000_000), { signal }), failsWith('unavailable'))
    assert.deepEqual(await readdir(join(own, 'tmp')), [])
    assert.deepEqual(await readdir(join(own, 'pins')), [])
    await rm(join(own, 'blocks'))
    await rename(join(own, 'aside'), join(own, 'blocks'))
    await pin(storage, cid, [provider.address])
  })

  test('gc keeps what a large object links to, even if its decoding thread gives up', async () => {
    const storage = await open({ dir: await newFolder(), gcGraceMs: 1 })
    const leaf = await block(Buffer.from('of a large object'))
    const root = await block(dagCbor.encode(Array(1000).fill(leaf.cid)), dagCbor.code)
    await storage.importCar(inPieces(carOf(root.cid, [root, leaf]), MIB), { signal })
    const gone = mock.method(Worker.prototype, 'postMessage', function (this: Worker) {
      this.emit('error', new Error('no time'))
    })
    await delay(50)
    const { removedBlocks } = await storage.gc({ signal }).finally(() => gone.mock.restore())
    assert.deepEqual([gone.mock.callCount(), removedBlocks], [1, 0])
    assert.equal((await storage.stat(root.cid, { signal })).size, root.bytes.length + leaf.bytes.length)
  })

  test('a complete file is described without reading all of it, and a missing piece is detected', async () => {
    const own = await newFolder()
    const storage = await open({ dir: own, offline: true })
    const unixfs = new UnixFS({ type: 'file' })
    const pieces = await Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        const data = Buffer.alloc(1000, n)
        unixfs.addBlockSize(1000n)
        return block(
          dagPb.encode({ Data: new UnixFS({ type: 'file', data }).marshal(), Links: [] }),
          dagPb.code,
        )
      }),
    )
    const Links = pieces.map(({ cid }) => ({ Name: '', Hash: cid, Tsize: 1000 }))
    const root = await block(dagPb.encode({ Data: unixfs.marshal(), Links }), dagPb.code)
    await storage.importCar(inPieces(carOf(root.cid, [root, ...pieces]), MIB), { signal })
    await storage.unpin(root.cid, { signal })
    await pin(storage, root.cid, [])

    const reads = mock.method(BlockFolder.prototype, 'read')
    const { size } = await storage.stat(root.cid, { signal }).finally(() => reads.mock.restore())
    assert.equal(size, 20_000)
    const last = pieces.at(-1)?.cid as CID
    assert.ok(!reads.mock.calls.some(({ arguments: [cid] }) => `${cid}` === `${last}`))
    await rm(new BlockFolder(own, { touchAfterMs: 1 }).path(last))
    await assert.rejects(storage.stat(root.cid, { signal }), failsWith('not_found'))
  })

  test('gc cleans up after processes that died', async () => {
    const own = await newFolder()
    const storage = await open({ dir: own, gcGraceMs: 50 })
    const { cid } = await storage.add(texts({ 'a.txt': 'was being moved' }), { signal })
    const old = new Date(Date.now() - 2 * 24 * 3_600_000)

    // Died while it wrote a block, while it retrieved a block, and while it moved a pinned block aside.
    await writeFile(join(own, 'tmp', 'half'), 'half a block')
    await utimes(join(own, 'tmp', 'half'), old, old)
    const mark = join(own, 'pins', `${cid}.pinning-0123456789abcdef`)
    await writeFile(mark, '')
    await utimes(mark, old, old)
    const path = new BlockFolder(own, { touchAfterMs: 1000 }).path(cid)
    const bytes = await readFile(path)
    await rename(path, join(own, 'trash', `some-id.${path.slice(dirname(path).length + 1)}`))

    await storage.gc({ signal })
    assert.deepEqual(await readdir(join(own, 'tmp')), [])
    assert.deepEqual(await readdir(join(own, 'pins')), [`${cid}`])
    assert.deepEqual(await readdir(join(own, 'trash')), [])
    assert.deepEqual(await readFile(path), bytes)
  })

  test('gc keeps what an import in progress has written, however long it takes', async () => {
    const collector = await open({ dir: await newFolder() })
    const source = await collector.add(file('slow', 4 * MIB), { signal })
    const car = await collect(collector.exportCar(source.cid, { signal }))

    const own = await newFolder()
    const storage = await open({ dir: own, gcGraceMs: 50 })
    const other = await open({ dir: own, gcGraceMs: 50 })
    const whileGcRuns = async function* <T>(first: AsyncIterable<T>, second: AsyncIterable<T>) {
      yield* first
      await until('the youngest block is old', async () => Date.now() - (await youngestBlock(own)) > 200)
      assert.equal((await other.gc({ signal })).removedBlocks, 0)
      yield* second
    }
    const files = whileGcRuns(file('slow 1', 2 * MIB, '1.bin'), file('slow 2', 2 * MIB, '2.bin'))
    const { cid } = await storage.add(files, { signal })
    assert.equal((await collect(storage.cat(cid, { path: '1.bin', signal }))).length, 2 * MIB)

    const [start, end] = [car.subarray(0, 3 * MIB), car.subarray(3 * MIB)]
    const imported = await storage.importCar(whileGcRuns(inPieces(start, MIB), inPieces(end, MIB)), {
      signal,
    })
    assert.equal((await collect(storage.cat(imported.cid, { signal }))).length, 4 * MIB)
  })

  test('stop aborts calls of the embedded node in progress', async () => {
    const storage = await open({ dir: await newFolder() })
    const cid = CID.createV1(0x55, await sha256.digest(Buffer.from('never there')))
    const pinning = pin(storage, cid, [provider.address], 60_000)
    const rejected = assert.rejects(pinning, failsWith('aborted'))
    await storage.stop()
    await rejected
  })
})

/** When the youngest block of a folder was written, in ms; infinity while there is none. */
async function youngestBlock(dir: string): Promise<number> {
  const names = await readdir(join(dir, 'blocks'), { recursive: true })
  const files = names.filter((name) => name.endsWith('.data'))
  const stats = await Promise.all(files.map((name) => stat(join(dir, 'blocks', name))))
  return stats.length === 0 ? Infinity : Math.max(...stats.map(({ mtimeMs }) => mtimeMs))
}

describe('frontier', () => {
  test('the frontier visits every link in depth-first order, even if it has to drop links', async () => {
    const cidOf = async (name: string) => CID.createV1(0x71, await sha256.digest(Buffer.from(name)))
    const tree = new Map<string, CID[]>()
    const names = new Map<string, string>()
    const grow = async (name: string, depth: number): Promise<CID> => {
      const cid = await cidOf(name)
      names.set(`${cid}`, name)
      const children: CID[] = []
      for (let i = 0; depth > 0 && i < 4; i++) children.push(await grow(`${name}.${i}`, depth - 1))
      tree.set(`${cid}`, children)
      return cid
    }
    const root = await grow('r', 4)
    for (const limit of [1, 5, 1000]) {
      let opened = 0
      const frontier = new Frontier(async (cid) => {
        opened++
        return tree.get(`${cid}`) ?? []
      }, limit)
      frontier.push(root)
      const visited: string[] = []
      for (let cid = await frontier.next(); cid; cid = await frontier.next()) {
        visited.push(names.get(`${cid}`) ?? '')
        frontier.push(cid)
      }
      assert.deepEqual(visited, [...names.values()].slice(1))
      assert.ok(frontier.isEmpty)
      assert.ok(limit < 1000 || opened === names.size)
    }
  })
})
