import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import type { Plan } from '../../../src/db/statements/plan.ts'
import { keepContent } from '../../../src/files/uploads/keep.ts'
import { createClusterStorage } from '../../../src/storage/cluster.ts'
import { createKuboStorage } from '../../../src/storage/kubo.ts'
import { replicasIn } from '../../../src/storage/open.ts'
import type { Storage } from '../../../src/storage/port.ts'
import { reconcilePins } from '../../../workers/reconcile/pins.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import {
  type ClusterPeer,
  clusterBinary,
  startCluster,
  type TestCluster,
} from '../../support/ipfs-cluster.ts'
import { kuboBinary, startKubo } from '../../support/kubo.ts'
import { until } from '../../support/processes.ts'
import { texts } from './content.ts'
import { storageContract } from './contract.ts'

const skip =
  kuboBinary && clusterBinary
    ? false
    : 'BERTH_TEST_KUBO or BERTH_TEST_IPFS_CLUSTER is not set: see scripts/ci/kubo.sh and ipfs-cluster.sh'

storageContract(
  'cluster',
  async () => {
    const cluster = await startCluster(1)
    const [peer] = cluster.peers
    if (!peer) throw new Error('no peer')
    const storage = createClusterStorage({
      apiUrl: peer.kubo.apiUrl,
      clusterUrl: peer.url,
      replication: { min: 1, max: 1 },
      network: 'public',
    })
    await storage.start()
    return {
      storage,
      close: async () => {
        await storage.stop()
        await cluster.stop()
      },
    }
  },
  { skip },
)

describe('a pin that only one of Kubo and Cluster has', { skip }, () => {
  const { signal } = new AbortController()
  let cluster: TestCluster
  let database: TestDatabase
  let workspace: string
  let storage: Storage
  let kubo: Storage

  before(async () => {
    database = await startDatabase()
    workspace = await database.createWorkspace()
    cluster = await startCluster(1)
    const { url, kubo: node } = cluster.peers[0] as ClusterPeer
    const options = { apiUrl: node.apiUrl, network: 'public' } as const
    const replicasOf = replicasIn(database.pool, 'public')
    storage = createClusterStorage({
      ...{ ...options, clusterUrl: url, replicasOf },
      replication: { min: 1, max: 1 },
    })
    kubo = createKuboStorage(options)
    await Promise.all([storage.start(), kubo.start()])
  })
  after(async () => {
    await Promise.all([storage?.stop(), kubo?.stop()])
    await cluster?.stop()
    await database?.stop()
  })
  beforeEach(() => database.pool.query('TRUNCATE operation, repair, file CASCADE'))

  const addFile = (cid: CID) =>
    database.pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, pinned_at)
       VALUES ($1, $2, 'public', 'pinned', $3, $3, '{}', '{}', now())`,
      [uuidv7(), workspace, `${cid}`],
    )
  const reconcile = () => reconcilePins(database.pool, storage, signal)
  const isPinned = (cid: CID) => storage.isPinned(cid, { signal })
  const inCluster = async (cid: CID) => (await cluster.api('GET', `/allocations/${cid}`)).status === 200
  /** Does what the operation for a missing pin does. */
  const repair = (cid: CID) => storage.pin(cid, { offline: true, stallMs: 20_000, signal })

  test('in Kubo: an import that ended before Cluster had it is released', async () => {
    const { cid } = await kubo.add(texts({ file: 'killed in between' }), { signal })
    assert.equal(await isPinned(cid), false)
    assert.deepEqual(await reconcile(), { missing: 0, orphaned: 1 })
    assert.equal(await kubo.isPinned(cid, { signal }), false)
  })

  test('in Kubo: a file from before Cluster was set up is given to it', async () => {
    const { cid } = await kubo.add(texts({ file: 'older than the cluster' }), { signal })
    await addFile(cid)
    assert.deepEqual(await reconcile(), { missing: 1, orphaned: 0 })
    await repair(cid)
    assert.ok(await inCluster(cid))
    await database.pool.query('TRUNCATE operation')
    assert.deepEqual(await reconcile(), { missing: 0, orphaned: 0 })
    assert.equal(await storage.unpin(cid, { signal }), true)
  })

  test('in Cluster: a pin removed from Kubo by hand is made again under Berth’s name', async () => {
    const { cid } = await storage.add(texts({ file: 'removed by hand' }), { signal })
    await addFile(cid)
    await kubo.unpin(cid, { signal })
    assert.deepEqual(await reconcile(), { missing: 1, orphaned: 0 })
    // Cluster itself may be first, and pins without a name.
    await cluster.api('POST', `/pins/${cid}/recover`)
    await repair(cid)
    assert.equal(await kubo.isPinned(cid, { signal }), true)
    assert.equal(await storage.unpin(cid, { signal }), true)
    assert.equal(await kubo.isPinned(cid, { signal }), false)
  })

  test('in Cluster: a pin that no file needs is released', async () => {
    const { cid } = await storage.add(texts({ file: 'nobody needs it' }), { signal })
    await kubo.unpin(cid, { signal })
    assert.deepEqual(await reconcile(), { missing: 0, orphaned: 1 })
    assert.equal(await inCluster(cid), false)
  })

  test('in neither: a pin that Cluster lost comes back, from the blocks that Kubo still has', async () => {
    const { cid } = await storage.add(texts({ file: 'unpinned by another program' }), { signal })
    await addFile(cid)
    await cluster.api('DELETE', `/pins/${cid}`)
    await until('Cluster has removed it from Kubo', async () => !(await kubo.isPinned(cid, { signal })))
    assert.deepEqual(await reconcile(), { missing: 1, orphaned: 0 })
    await repair(cid)
    assert.equal(await isPinned(cid), true)
    await storage.unpin(cid, { signal })
  })

  test('a file whose plan wants more replicas than its pin has is given to Cluster again', async () => {
    const { cid } = await storage.add(texts({ file: 'of a larger plan' }), { signal })
    await addFile(cid)
    assert.deepEqual(await reconcile(), { missing: 0, orphaned: 0 })
    await database.pool.query('UPDATE plan SET replicas = 2')
    assert.deepEqual(await reconcile(), { missing: 1, orphaned: 0 })
    const [operation] = (await database.pool.query('SELECT kind FROM operation')).rows
    assert.deepEqual(operation, { kind: 'pin.repair' })
    await database.pool.query('UPDATE plan SET replicas = NULL')
    await storage.unpin(cid, { signal })
  })

  test('an upload enqueues a repair if its plan wants more replicas than all pins have', async () => {
    const { cid, size, files } = await storage.add(texts({ file: 'uploaded to a larger plan' }), { signal })
    const services = { keepPool: database.pool, storages: { public: storage, private: storage } }
    const upload = async (replicas: number | null) => {
      const other = await database.createWorkspace()
      const plan = { storageBytes: null, maxFileBytes: null, replicas } as Plan
      const details = {
        network: 'public',
        name: null,
        keyvalues: {},
        groupId: null,
        expiresAt: null,
      } as const
      const content = { cid, size, files, mimeType: 'text/plain' }
      const uploader = { workspaceId: other, userId: uuidv7(), plan }
      const { file } = await keepContent(services, uploader, details, content, { reservation: uuidv7() })
      return (await database.pool.query('SELECT kind FROM operation WHERE target_id = $1', [file.id])).rows
    }
    for (const replicas of [null, 1]) assert.deepEqual(await upload(replicas), [])
    assert.deepEqual(await upload(2), [{ kind: 'pin.repair' }])
    await storage.unpin(cid, { signal })
  })

  test('a Cluster next to another Kubo is refused', async () => {
    const { url, kubo: node } = cluster.peers[0] as ClusterPeer
    const other = await startKubo()
    const open = (apiUrl: string, otherApiUrl: string) =>
      createClusterStorage({
        ...{ apiUrl, otherApiUrl, clusterUrl: url, network: 'private' },
        replication: { min: 1, max: 1 },
      })
    const elsewhere = open(other.apiUrl, node.apiUrl)
    try {
      await assert.rejects(
        elsewhere.start(),
        /IPFS_PRIVATE_CLUSTER_API_URL leads to the peer of another Kubo/,
      )
      await assert.rejects(elsewhere.info({ signal }), { code: 'unavailable' })
    } finally {
      await elsewhere.stop()
      await other.stop()
    }
  })
})
