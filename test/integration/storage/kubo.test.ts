import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { create } from 'kubo-rpc-client'
import { CID } from 'multiformats/cid'
import { code as raw } from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import { cachingBlocks } from '../../../src/storage/block-cache.ts'
import { PROBE_CID } from '../../../src/storage/dag/unixfs-write.ts'
import { OFFLINE } from '../../../src/storage/kubo/client.ts'
import { createKuboStorage } from '../../../src/storage/kubo.ts'
import type { Storage } from '../../../src/storage/port.ts'
import { onDemand } from '../../support/clock.ts'
import { listen } from '../../support/http-server.ts'
import { type KuboNode, kuboBinary, startKubo } from '../../support/kubo.ts'
import { freePort, until } from '../../support/processes.ts'
import { startProvider as startHeldProvider } from '../../support/provider.ts'
import { node } from './cases/blocks.ts'
import { failsWith } from './cases/context.ts'
import { collect, file, randomBytes as randomContent, texts } from './content.ts'
import { storageContract } from './contract.ts'
import { startProvider } from './node-process.ts'

const MIB = 1024 * 1024
/** By default, a pin has stalled after this time without a block, and host nodes are dialled again. */
const [STALL_MS, REDIAL_MS] = [120_000, 15_000]
const skip = kuboBinary
  ? false
  : 'BERTH_TEST_KUBO is not set: it names the Kubo binary, see scripts/ci/kubo.sh'

storageContract(
  'kubo',
  async () => {
    const kubo = await startKubo()
    const storage = createKuboStorage({ apiUrl: kubo.apiUrl, network: 'public' })
    await storage.start()
    return {
      storage,
      close: async () => {
        await storage.stop()
        await kubo.stop()
      },
    }
  },
  { skip },
)

describe('kubo', { skip }, () => {
  const { signal } = new AbortController()
  let kubo: KuboNode
  let storage: Storage
  let provider: Awaited<ReturnType<typeof startProvider>>

  before(async () => {
    provider = await startProvider()
    kubo = await startKubo()
    storage = createKuboStorage({ apiUrl: kubo.apiUrl, network: 'public' })
    await storage.start()
  })
  after(async () => {
    await storage?.stop()
    await kubo?.stop()
    await provider?.stop()
  })

  /** Calls Kubo's API like another user of the node. */
  const api = async (command: string) => {
    const answer = await fetch(`${kubo.apiUrl}/api/v0/${command}`, { method: 'POST' })
    return { ok: answer.ok, text: await answer.text() }
  }
  const nameOf = async (cid: CID) => {
    const { ok, text } = await api(`pin/ls?arg=${cid}&type=recursive&names=true`)
    return ok ? JSON.parse(text).Keys[`${cid}`].Name : null
  }
  const listed = async () => {
    const cids: string[] = []
    for await (const cid of storage.list({ signal })) cids.push(`${cid}`)
    return cids
  }
  const pin = (cid: CID) => storage.pin(cid, { origins: [provider.address], stallMs: 20_000, signal })

  test('a daemon killed in mid-pin is unavailable, and the pin succeeds after its restart', async (t) => {
    const held = await startHeldProvider()
    t.after(() => held.stop())
    const cid = await held.file(randomBytes(150 * MIB))
    // The last leaf comes after the daemon was killed, however late that is.
    const release = held.hold((await held.links(cid)).at(-1) as CID)
    const options = { origins: [held.multiaddr], stallMs: 20_000, signal }
    let killed: Promise<void> | null = null
    const pinning = storage.pin(cid, {
      ...options,
      onProgress: ({ phase }) => {
        if (phase === 'retrieving') killed ??= kubo.kill()
      },
    })
    await assert.rejects(pinning, failsWith('unavailable'))
    await killed
    await assert.rejects(storage.isPinned(cid, { signal }), failsWith('unavailable'))
    await assert.rejects(storage.info({ signal }), failsWith('unavailable'))
    await assert.rejects(listed(), failsWith('unavailable'))
    await assert.rejects(collect(storage.cat(cid, { signal })), failsWith('unavailable'))
    await assert.rejects(storage.start(), failsWith('unavailable'))
    await kubo.restart()
    await storage.start()
    assert.equal(await storage.isPinned(cid, { signal }), false)
    release()
    await storage.pin(cid, options)
    assert.equal((await storage.stat(cid, { signal })).size, 150 * MIB)
  })

  test('a host node whose connection drops in mid-pin is dialled again', async () => {
    const cid = CID.parse(await provider.node.call('addFile', 'kubo disconnected', 150 * MIB))
    const peerId = provider.address.slice(provider.address.lastIndexOf('/') + 1)
    let dropped: Promise<unknown> | null = null
    const { blocks } = await storage.pin(cid, {
      origins: [provider.address],
      stallMs: 60_000,
      signal,
      onProgress: ({ blocks }) => {
        if (blocks > 0) dropped ??= api(`swarm/disconnect?arg=/p2p/${peerId}`)
      },
    })
    assert.ok(blocks > 100)
    assert.match(JSON.stringify(await dropped), /success/)
  })

  test('a silent host node on an open connection is reconnected', async (t) => {
    const deaf = await startHeldProvider()
    t.after(() => deaf.stop())
    const [lost, wanted] = [await deaf.block(randomBytes(100), raw), await deaf.block(randomBytes(100), raw)]
    const options = { origins: [deaf.multiaddr], signal }
    // The peer reads this block forever, and nothing else of the connection in the meantime.
    deaf.hold(lost)
    await assert.rejects(storage.pin(lost, { ...options, stallMs: 1_000 }), failsWith('stalled'))
    const redial = onDemand(t, REDIAL_MS)
    await Promise.all([storage.pin(wanted, { ...options, stallMs: STALL_MS }), until('it redials', redial)])
  })

  test('a host node that loses a request in mid-pin is reconnected', async (t) => {
    const forgetful = await startHeldProvider()
    t.after(() => forgetful.stop())
    const files = { 'a.bin': randomBytes(100), 'b.bin': randomBytes(100), 'c.bin': randomBytes(100) }
    const root = await forgetful.folder(files)
    const leaves = await forgetful.links(root)
    const lost = forgetful.lose(leaves[1] as CID)
    const reports: number[] = []
    const onProgress = ({ blocks }: { blocks: number }) => void reports.push(blocks)
    const redial = onDemand(t, REDIAL_MS)
    const origins = [forgetful.multiaddr]
    const pinning = storage.pin(root, { origins, stallMs: STALL_MS, signal, onProgress })
    const reported = until('blocks are reported', () => reports.some((blocks) => blocks > 0))
    await Promise.race([pinning, Promise.all([lost, reported])])
    // If blocks have arrived, only a second silence ends the connection.
    for (const _ of [1, 2]) redial()
    await pinning
    assert.ok(
      reports.some((blocks) => blocks > 0 && blocks < 4),
      `nothing was reported before the request was lost: ${reports}`,
    )
    assert.equal((await storage.stat(root, { signal })).size, 300)
  })

  test('third-party pins are not listed and stay unchanged', async () => {
    const shared = await storage.add(texts({ 'a.txt': 'pinned by both' }), { signal })
    await storage.unpin(shared.cid, { signal })
    for (const theirs of ['', 'their name', 'not berth']) {
      await api(`pin/add?arg=${shared.cid}&name=${encodeURIComponent(theirs)}`)
      assert.equal(await storage.isPinned(shared.cid, { signal }), false)
      assert.ok(!(await listed()).includes(`${shared.cid}`))
      assert.equal(await storage.unpin(shared.cid, { signal }), false)
      assert.equal(await nameOf(shared.cid), theirs)

      await pin(shared.cid)
      assert.equal(await storage.isPinned(shared.cid, { signal }), true)
      assert.ok((await listed()).includes(`${shared.cid}`))
      assert.equal(await storage.unpin(shared.cid, { signal }), true)
      assert.equal(await nameOf(shared.cid), theirs)
    }
  })

  test('a build on a pin shared with others belongs only to Berth', async () => {
    const base = (await storage.add(texts({ 'a/b.txt': 'pinned by both, built on' }), { signal })).cid
    await storage.unpin(base, { signal })
    await api(`pin/add?arg=${base}&name=theirs`)
    const root = await node([base])
    const build = () => storage.build(async (put) => put(root).then(() => root.cid), { base, signal })
    await assert.rejects(build(), failsWith('not_found'))
    await pin(base)
    await build()
    assert.equal(await nameOf(root.cid), 'berth')
    assert.equal(await storage.unpin(root.cid, { signal }), true)
    assert.equal(await nameOf(root.cid), null)
    // And what others have pinned already stays theirs.
    await api(`pin/add?arg=${root.cid}&name=theirs`)
    await build()
    assert.equal(await storage.isPinned(root.cid, { signal }), true)
    await storage.unpin(root.cid, { signal })
    assert.equal(await nameOf(root.cid), 'theirs')
  })

  test('two Berths on one Kubo do not see each other', async () => {
    const other = createKuboStorage({ apiUrl: kubo.apiUrl, network: 'private', pinName: 'other' })
    await other.start()
    const { cid } = await other.add(texts({ 'a.txt': 'of the other one' }), { signal })
    assert.equal(await storage.isPinned(cid, { signal }), false)
    assert.ok(!(await listed()).includes(`${cid}`))
    await other.stop()
  })

  test('a caller who leaves in the last step of an import does not remove another caller’s pin', async () => {
    const caller = new AbortController()
    const { hostname, port } = new URL(kubo.apiUrl)
    // Lets another caller's import happen between the check for a pin and the pin.
    let others: Promise<unknown> | undefined
    const between = await listen(async (req, res) => {
      if (req.url?.includes('/pin/add')) {
        others ??= storage.add(texts({ file: 'from two' }), { signal })
        await others
        caller.abort()
      }
      const { method, url: path, headers } = req
      const forwarded = request({ hostname, port, method, path, headers }, (answer) => {
        answer.pipe(res.writeHead(answer.statusCode ?? 502, answer.headers))
      })
      req.pipe(forwarded)
    })
    const first = createKuboStorage({ apiUrl: between, network: 'public' })
    try {
      await first.start()
      const { cid } = await first.add(texts({ file: 'from two' }), { signal: caller.signal })
      assert.ok(others, 'the other import came in between')
      assert.equal(await storage.isPinned(cid, { signal }), true)
    } finally {
      await first.stop()
    }
  })

  test('one node for both networks is rejected as soon as it is detected', async () => {
    const { apiUrl } = kubo
    const refused = /IPFS_PRIVATE_API_URL leads to the node of IPFS_API_URL/
    const open = (otherApiUrl: string) => createKuboStorage({ apiUrl, network: 'private', otherApiUrl })
    assert.throws(() => open(apiUrl), refused)
    const same = open(apiUrl.replace('127.0.0.1', 'localhost'))
    await assert.rejects(same.start(), refused)
    await assert.rejects(same.info({ signal }), { code: 'unavailable', message: refused })
    const withOneAway = open(`http://127.0.0.1:${await freePort()}`)
    await withOneAway.start()
    await Promise.all([same.stop(), withOneAway.stop()])
  })

  test('an unreachable host node is not bad if routing reaches no peer', async () => {
    const set = async (type: string) => {
      await api(`config?arg=Routing.Type&arg=${type}`)
      await kubo.kill()
      await kubo.restart()
    }
    await set('dht') // without any peers to ask
    try {
      const cid = CID.createV1(0x55, await sha256.digest(Buffer.from('nobody to ask')))
      const origins = ['/ip4/127.0.0.1/tcp/1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN']
      await assert.rejects(storage.pin(cid, { origins, stallMs: 5000, signal }), failsWith('stalled'))
    } finally {
      await set('none')
    }
  })

  test('a response that Kubo cuts short is an error', async () => {
    const { cid } = await storage.add(file('cut short', 4 * MIB), { signal })
    // A leaf in the middle is lost: Kubo notices only after it has begun to respond.
    const [, leaf] = (await api(`refs?arg=${cid}`)).text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).Ref)
    await api(`pin/rm?arg=${cid}`)
    assert.ok((await api(`block/rm?arg=${leaf}`)).ok)
    await assert.rejects(collect(storage.cat(cid, { signal })), failsWith('not_found'))
    await assert.rejects(collect(storage.exportCar(cid, { signal })), failsWith('not_found'))
    // Why Berth does not use kubo-rpc-client for this: it treats the first part as everything.
    assert.equal((await collect(create(kubo.apiUrl).cat(cid, { signal, ...OFFLINE }))).length, MIB)
  })

  test('a Kubo that is too old or imports differently is rejected with a remedy', async () => {
    const peerId = '12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN'
    const answers: Record<string, object> = {
      '/api/v0/version': { Version: '0.42.1' },
      '/api/v0/add': { Name: 'probe', Hash: 'QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn' },
    }
    const apiUrl = await listen((request, response) => {
      request
        .resume()
        .on('end', () => response.end(JSON.stringify(answers[request.url?.split('?')[0] ?? ''])))
    })
    const refused = createKuboStorage({ apiUrl, network: 'public' })
    await assert.rejects(refused.start(), /0\.42\.1 is too old/)
    answers['/api/v0/version'] = { Version: '0.43.0-rc1' }
    await assert.rejects(refused.start(), /ipfs config profile apply unixfs-v1-2025/)
    // The node is not used either, until it has been fixed.
    const unusable = { code: 'unavailable', message: /ipfs config profile apply/ }
    const cid = CID.parse('bafkqaaa')
    await assert.rejects(refused.info({ signal }), unusable)
    await assert.rejects(refused.pin(cid, { stallMs: 1000, signal }), unusable)
    await assert.rejects(refused.add(texts({ a: 'a' }), { signal }), unusable)
    await assert.rejects(collect(refused.cat(cid, { signal })), unusable)
    await assert.rejects(refused.list({ signal })[Symbol.asyncIterator]().next(), unusable)
    answers['/api/v0/add'] = { Name: 'probe', Hash: `${PROBE_CID}` }
    await refused.start()
    answers['/api/v0/id'] = { ID: peerId, Addresses: null, AgentVersion: 'kubo/0.43.0' }
    answers['/api/v0/repo/stat'] = { RepoSize: 1, StorageMax: 2, NumObjects: 0, RepoPath: '', Version: '' }
    assert.equal((await refused.info({ signal })).peerId, peerId)
    await refused.stop()
  })

  test('a Kubo that does not answer is unavailable in time', async () => {
    const waiting = createKuboStorage({ apiUrl: await listen(() => {}), network: 'public' })
    const started = Date.now()
    await assert.rejects(waiting.start(), failsWith('unavailable'))
    assert.ok(Date.now() - started < 60_000)
    await waiting.stop()
  })

  test('ranges of a file whose root is cached are read from the blocks that have them', async () => {
    const size = 5 * MIB + 7
    const all = await collect(randomContent('ranges', size))
    const { cid } = await storage.add(file('ranges', size), { signal })
    const asked: CID[] = []
    const cached = cachingBlocks({
      ...storage,
      cat(part, range) {
        asked.push(part)
        return storage.cat(part, range)
      },
    })
    await cached.block(cid, { signal })
    const ranges: [offset: number, length: number, wholeFile: number][] = [
      [0, 1, 0],
      [MIB - 1, 2, 0],
      [MIB, 3 * MIB, 0],
      [3 * MIB + 1, size, 0],
      [MIB - 1, 3 * MIB, 1],
      [0, size, 1],
    ]
    for (const [offset, length, wholeFile] of ranges) {
      asked.length = 0
      const part = await collect(cached.cat(cid, { offset, length, signal }))
      assert.ok(part.equals(all.subarray(offset, offset + length)), `${offset}+${length}`)
      assert.equal(asked.filter((one) => one.equals(cid)).length, wholeFile, `${offset}+${length}`)
    }
    assert.ok((await collect(cached.cat(cid, { signal }))).equals(all))
  })

  test('a daemon that hangs is unavailable before the caller gives up', async () => {
    const { cid } = await storage.add(texts({ 'a/b.txt': 'described' }), { signal })
    await kubo.pause()
    try {
      const patient = AbortSignal.timeout(60_000)
      // Calls through both clients, see `kubo/stream.ts`.
      await Promise.all([
        assert.rejects(storage.stat(cid, { signal: patient }), failsWith('unavailable')),
        assert.rejects(storage.isPinned(cid, { signal: patient }), failsWith('unavailable')),
        assert.rejects(storage.info({ signal: patient }), failsWith('unavailable')),
      ])
      const impatient = AbortSignal.timeout(200)
      await assert.rejects(storage.stat(cid, { signal: impatient }), failsWith('aborted'))
    } finally {
      kubo.resume()
    }
    assert.equal((await storage.stat(cid, { signal })).size, 9)
  })

  test('stop aborts calls of the Kubo driver in progress', async () => {
    const own = createKuboStorage({ apiUrl: kubo.apiUrl, network: 'public' })
    await own.start()
    const cid = CID.createV1(0x55, await sha256.digest(Buffer.from('never there')))
    let searching = false
    const pinning = own.pin(cid, {
      origins: [provider.address],
      stallMs: 60_000,
      signal,
      onProgress: () => {
        searching = true
      },
    })
    const rejected = assert.rejects(pinning, failsWith('aborted'))
    await until('the search has begun', () => searching)
    await own.stop()
    await rejected
  })
})
