import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { CID } from 'multiformats/cid'
import { createClusterStorage } from '../../../src/storage/cluster.ts'
import { type PinProgress, partsOf, type Storage, StorageError } from '../../../src/storage/port.ts'
import {
  type ClusterPeer,
  clusterBinary,
  connect,
  startCluster,
  type TestCluster,
} from '../../support/ipfs-cluster.ts'
import { kuboBinary } from '../../support/kubo.ts'
import { until } from '../../support/processes.ts'
import { collect, texts } from './content.ts'

const PINS = 1000
const AT_ONCE = 8
/** How long a peer has to be gone in these tests until its replicas no longer count. */
const LOST_MS = 3_000
const skip =
  kuboBinary && clusterBinary
    ? false
    : 'BERTH_TEST_KUBO or BERTH_TEST_IPFS_CLUSTER is not set: see scripts/ci/kubo.sh and ipfs-cluster.sh'

/** The state of each CID in Cluster's own list. */
async function collectKept(storage: Storage): Promise<Map<string, boolean>> {
  const [ofCluster] = partsOf(storage)
  const kept = new Map<string, boolean>()
  for await (const { cid, isWhole } of ofCluster?.({ signal: new AbortController().signal }) ?? [])
    kept.set(`${cid}`, isWhole)
  return kept
}

describe('three peers of IPFS Cluster', { skip }, () => {
  const { signal } = new AbortController()
  let cluster: TestCluster
  let peers: [own: ClusterPeer, ClusterPeer, ClusterPeer]
  let storage: Storage
  /** The pins of a new Kubo. */
  let first: string[]
  /** The replicas that plans ask for, by CID. */
  const replicas = new Map<string, number>()

  before(async () => {
    cluster = await startCluster(3)
    peers = cluster.peers as typeof peers
    first = await pinsOf(peers[0])
    storage = createClusterStorage({
      apiUrl: peers[0].kubo.apiUrl,
      clusterUrl: peers[0].url,
      replication: { min: 2, max: 2 },
      replicasOf: async () => replicas,
      network: 'public',
      lostMs: LOST_MS,
    })
    await storage.start()
  })
  after(async () => {
    await storage?.stop()
    await cluster?.stop()
  })
  beforeEach(() => cluster.untilReady(3))

  const allocations = async (cid: CID): Promise<string[] | undefined> => {
    const { status, text } = await cluster.api('GET', `/allocations/${cid}`)
    return status === 200 ? JSON.parse(text).allocations : undefined
  }
  const statusOf = async (cid: CID, peer: ClusterPeer): Promise<string | undefined> =>
    JSON.parse((await cluster.api('GET', `/pins/${cid}`)).text).peer_map?.[peer.id]?.status
  /** The recursive pins of a Kubo. */
  const pinsOf = async ({ kubo }: ClusterPeer): Promise<string[]> => {
    const answer = await fetch(`${kubo.apiUrl}/api/v0/pin/ls?type=recursive`, { method: 'POST' })
    return Object.keys(((await answer.json()) as { Keys?: object }).Keys ?? {}).sort()
  }
  const connectAll = async () => {
    for (const { kubo } of peers)
      for (const { kubo: other } of peers) if (kubo !== other) await connect(kubo, other)
  }
  const isPinned = (cid: CID) => storage.isPinned(cid, { signal })
  /** Pins again until nothing is away, as a worker does. */
  const pin = async (cid: CID) => {
    await until('the pin is whole', async () => {
      await storage.pin(cid, { offline: true, stallMs: 5_000, signal })
      return true
    })
  }

  test('a pin survives the kill of a peer during it and after it', async () => {
    const [own, ...others] = peers
    const adding = storage.add(texts({ file: 'kept by two' }), { signal })
    const cid = await until('the pin is given to Cluster', async () => {
      const { text } = await cluster.api('GET', '/allocations?filter=pin')
      return text.trim() ? CID.parse(JSON.parse(text).cid) : undefined
    })
    const chosen = others[(await allocations(cid))?.includes(others[0].id) ? 0 : 1] as ClusterPeer
    const spare = others.find((peer) => peer !== chosen) as ClusterPeer
    await until('the replica is retrieved', async () => {
      assert.equal(await statusOf(cid, chosen), 'pinning')
      return true
    })
    await chosen.kill()
    await connect(own.kubo, spare.kubo)
    const added = await adding
    assert.equal(`${added.cid}`, `${cid}`)
    assert.deepEqual(new Set(await allocations(added.cid)), new Set([own.id, spare.id]))
    assert.equal(await statusOf(added.cid, spare), 'pinned')
    assert.equal(await isPinned(added.cid), true)

    // A peer that dies later leaves the content readable, and its replica counts until it has been gone for long.
    await connect(own.kubo, chosen.kubo)
    await chosen.restart()
    await cluster.untilReady(3)
    await spare.kill()
    assert.equal(await isPinned(added.cid), true)
    assert.equal(`${await collect(storage.cat(added.cid, { signal }))}`, 'kept by two')
    const info = await until('its absence shows', async () => {
      const found = await storage.info({ signal })
      return found.peers?.some(({ error }) => error !== null) && found
    })
    assert.equal(info.peers?.length, 3)
    await until('its replica no longer counts', async () => !(await isPinned(added.cid)))
    await pin(added.cid)
    assert.deepEqual(new Set(await allocations(added.cid)), new Set([own.id, chosen.id]))
    assert.equal(await isPinned(added.cid), true)
    await spare.restart()
    await until('the former replica is released', async () => !(await pinsOf(spare)).includes(`${cid}`))
  })

  test('a pin that Cluster moved away from the own Kubo comes back', async () => {
    await connectAll()
    const [own, second, third] = peers
    const { cid } = await storage.add(texts({ file: 'moved' }), { signal })
    await storage.unpin(cid, { signal })
    const away = `replication-min=2&replication-max=2&name=berth&user-allocations=${second.id},${third.id}`
    await cluster.api('POST', `/pins/${cid}?${away}`)
    assert.deepEqual(new Set(await allocations(cid)), new Set([second.id, third.id]))
    assert.equal(await isPinned(cid), false)
    await pin(cid)
    assert.ok((await allocations(cid))?.includes(own.id))
    assert.equal(await isPinned(cid), true)
  })

  test('a pin is not whole until it has the replicas that its plan wants, and shows them', async () => {
    await connectAll()
    const { cid } = await storage.add(texts({ file: 'wanted by a larger plan' }), { signal })
    const byName = async () => {
      const found = await storage.replicas?.(cid, { signal })
      return [found?.wanted, found?.peers.map(({ status }) => status)]
    }
    assert.equal(await isPinned(cid), true)
    assert.deepEqual(await byName(), [2, ['pinned', 'pinned']])
    replicas.set(`${cid}`, 3)
    assert.equal(await isPinned(cid), false)
    const listed = await collectKept(storage)
    assert.equal(listed.get(`${cid}`), false)
    const seen: PinProgress[] = []
    const onProgress = (progress: PinProgress) => seen.push(progress)
    await storage.pin(cid, { offline: true, stallMs: 20_000, signal, onProgress })
    assert.deepEqual(seen.at(-1)?.replicas, { pinned: 3, wanted: 3 })
    assert.equal((await allocations(cid))?.length, 3)
    assert.equal(await isPinned(cid), true)
    assert.deepEqual(await byName(), [3, ['pinned', 'pinned', 'pinned']])
    // A smaller plan takes none away.
    replicas.clear()
    assert.equal(await isPinned(cid), true)
    await storage.unpin(cid, { signal })
  })

  test('a pin right after its release stays', async () => {
    await connectAll()
    const adding = Array.from({ length: 40 }, (_, index) =>
      storage.add(texts({ file: `released and pinned: ${index}` }), { signal }),
    )
    const cids = (await Promise.all(adding)).map(({ cid }) => cid)
    // All at once, so that the peer has a queue of removals.
    const again = async (cid: CID) => {
      assert.equal(await storage.unpin(cid, { signal }), true)
      await storage.pin(cid, { offline: true, stallMs: 20_000, signal })
    }
    await Promise.all(cids.map(again))
    await until('no removal is left', async () => {
      const { text } = await cluster.api('GET', '/pins?filter=unpin_queued,unpinning')
      return text.trim() === ''
    })
    const found = await Promise.all(cids.map(isPinned))
    assert.deepEqual(new Set(found), new Set([true]))
  })

  test('1,000 pins and releases across restarts of a peer: none is lost, none is orphaned', async () => {
    await connectAll()
    const [, second] = peers
    const cids: CID[] = []
    const each = async <T>(items: T[], work: (item: T, index: number) => Promise<void>) => {
      const rest = items.entries()
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          for (const [index, item] of rest) await work(item, index)
        }),
      )
    }
    /** Kills the peer at a quarter of the work, and starts it again at half of it. */
    const restartDuring = async (done: () => number, total: number) => {
      await until('a quarter is done', () => done() > total / 4, 300_000)
      await second.kill()
      await until('half is done', () => done() > total / 2, 300_000)
      await second.restart()
    }
    const again = async (work: () => Promise<unknown>) => {
      await until(
        'it works again',
        async () => {
          try {
            await work()
            return true
          } catch (error) {
            if (error instanceof StorageError && error.code === 'unavailable') return false
            throw error
          }
        },
        180_000,
      )
    }
    let added = 0
    await Promise.all([
      restartDuring(() => added, PINS),
      each(Array.from({ length: PINS }), async (_, index) => {
        await again(async () => {
          const entries = texts({ file: `one of a thousand: ${index}` })
          cids[index] = (await storage.add(entries, { signal })).cid
        })
        added++
      }),
    ])
    const released = cids.slice(0, PINS / 2)
    const kept = cids.slice(PINS / 2)
    let removed = 0
    await Promise.all([
      restartDuring(() => removed, released.length),
      each(released, async (cid) => {
        await again(() => storage.unpin(cid, { signal }))
        removed++
      }),
    ])
    await cluster.untilReady(3)
    for (const cid of kept) assert.equal(await isPinned(cid), true, `${cid}`)
    const expected = new Map<string, string[]>(peers.map(({ id }) => [id, []]))
    const state = (await cluster.api('GET', '/allocations?filter=pin')).text.trim().split('\n')
    for (const { cid, allocations } of state.map((row) => JSON.parse(row)))
      for (const peer of allocations) expected.get(peer)?.push(cid)
    const stillThere = new Set(state.map((row) => JSON.parse(row).cid))
    for (const cid of kept) assert.ok(stillThere.has(`${cid}`), `${cid} is lost`)
    for (const cid of released) assert.ok(!stillThere.has(`${cid}`), `${cid} is orphaned`)
    for (const peer of peers) {
      const wanted = expected.get(peer.id) as string[]
      await until(`Kubo ${peers.indexOf(peer)} has what Cluster allocates to it`, async () => {
        const found = new Set(await pinsOf(peer))
        assert.deepEqual(
          wanted.filter((cid) => !found.has(cid)),
          [],
        )
        for (const cid of [...first, ...wanted]) found.delete(cid)
        // Cluster keeps removals in memory: those that a killed peer had accepted stay in its Kubo.
        assert.ok(found.size <= (peer === second ? PINS / 20 : 0), `${[...found]}`)
        return true
      })
    }
  })
})
