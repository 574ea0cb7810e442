/**
 * The storage driver for IPFS Cluster: Kubo's driver, whose pins also get replicas on the Kubos of other peers. Berth
 * retrieves, imports and reads with the Kubo next to a peer, so that Kubo has every block; Cluster places the replicas.
 */
import type { CID } from 'multiformats/cid'
import { within } from '../lib/signals.ts'
import { callsUntil } from './calls.ts'
import { ClusterAuthError, ClusterClient } from './cluster/client.ts'
import {
  ClusterPins,
  type KeepOptions,
  type PeerId,
  type ReplicasOf,
  type Replication,
} from './cluster/pins.ts'
import { KuboClient } from './kubo/client.ts'
import { KuboError } from './kubo/kubo-errors.ts'
import { createKuboStorage, type KuboOptions, PIN_NAME } from './kubo.ts'
import { type ClusterPeer, type Storage, StorageError } from './port.ts'

export interface ClusterOptions extends KuboOptions {
  /** Address of the REST API of the peer next to Kubo, for example `http://127.0.0.1:9094`. */
  clusterUrl: string
  replication: Replication
  replicasOf?: ReplicasOf | undefined
  /** How long a peer has to be gone until its replicas are made again on others. */
  lostMs?: number
}

/** Longer than a restart of a machine, which should cost no copies. */
const LOST_MS = 3_600_000
/** For imports: without progress of any peer for this long, the import fails. */
const IMPORT_STALL_MS = 60_000
const PEERS_MS = 3_000
const OTHER_MS = 10_000
const REPINS = 3

/** Creates the driver for IPFS Cluster; nothing is opened before `start`. */
export function createClusterStorage(options: ClusterOptions): Storage {
  const { clusterUrl, replication, network, pinName = PIN_NAME, lostMs = LOST_MS } = options
  const { replicasOf = async () => new Map() } = options
  const kubo = createKuboStorage({ ...options, isInCluster: true })
  const client = new ClusterClient(clusterUrl)
  const pins = new ClusterPins(client, { name: pinName, replication, replicasOf, lostMs })
  const stopped = new AbortController()
  const setting = network === 'public' ? 'IPFS_CLUSTER_API_URL' : 'IPFS_PRIVATE_CLUSTER_API_URL'
  let refusal: string | null = 'IPFS Cluster has not been checked'
  const { call, iterate } = callsUntil(stopped.signal, {
    assertFit() {
      if (refusal !== null) throw new StorageError('unavailable', refusal)
    },
    explain: (error) =>
      error instanceof ClusterAuthError
        ? new StorageError('unavailable', `${setting}: ${error.message}`)
        : error,
  })

  /** Makes a pin of Kubo's whole. */
  const replicate = async (cid: CID, limits: KeepOptions): Promise<void> => {
    for (let repins = 0; repins < REPINS; repins++) {
      await pins.keep(cid, limits)
      // Cluster may have removed the pin in the meantime: as the end of a release, or to move it to another peer.
      if (await kubo.isPinned(cid, limits)) return
      await kubo.pin(cid, { ...limits, offline: true })
    }
    throw new StorageError('unavailable', `IPFS Cluster removes the pin of ${cid} from Kubo`)
  }
  const replicateImport = (cid: CID, signal: AbortSignal) =>
    replicate(cid.toV1(), { stallMs: IMPORT_STALL_MS, signal })

  return {
    ...kubo,
    driver: 'cluster',

    async start() {
      try {
        await kubo.start()
        await checkPeer(client, pins, { ...options, setting }, stopped.signal)
        refusal = null
      } catch (error) {
        refusal = (error as Error).message
        throw error
      }
    },
    async stop() {
      stopped.abort()
      await Promise.all([kubo.stop(), client.close()])
    },

    pin: (cid, options) =>
      call(options.signal, async (signal) => {
        const { stallMs, onProgress } = options
        const pinned = await kubo.pin(cid, { ...options, signal })
        await replicate(cid.toV1(), {
          stallMs,
          signal,
          onReplicas: (replicas) =>
            onProgress?.({ phase: 'retrieving', ...pinned, totalBytes: pinned.bytes, replicas }),
        })
        return pinned
      }),
    unpin: (cid, { signal }) =>
      call(signal, async (combined) => {
        const limits = { signal: combined }
        const isKubos = await kubo.isPinned(cid, limits)
        // The other way round, Cluster would pin again what its state contains.
        const isClusters = await pins.release(cid.toV1(), combined)
        return (await kubo.unpin(cid, limits)) || isKubos || isClusters
      }),
    isPinned: (cid, { signal }) =>
      call(
        signal,
        async (combined) =>
          (await kubo.isPinned(cid, { signal: combined })) && (await pins.has(cid.toV1(), combined)),
      ),
    minReplicas: replication.min,
    replicas: (cid, { signal }) => call(signal, (combined) => pins.replicas(cid.toV1(), combined)),
    list: ({ signal }) =>
      iterate(signal, async function* (combined) {
        const whole = new Set<string>()
        for await (const { cid, isWhole } of pins.list(combined)) if (isWhole) whole.add(`${cid}`)
        for await (const cid of kubo.list({ signal: combined })) if (whole.has(`${cid.toV1()}`)) yield cid
      }),
    parts: [
      ({ signal }) => iterate(signal, (combined) => pins.list(combined)),
      ({ signal }) =>
        iterate(signal, async function* (combined) {
          for await (const cid of kubo.list({ signal: combined })) yield { cid, isWhole: true }
        }),
    ],

    add: (entries, options) =>
      call(options.signal, async (signal) => {
        const added = await kubo.add(entries, { ...options, signal })
        await replicateImport(added.cid, signal)
        return added
      }),
    importCar: (bytes, options) =>
      call(options.signal, async (signal) => {
        const imported = await kubo.importCar(bytes, { ...options, signal })
        await replicateImport(imported.cid, signal)
        return imported
      }),
    build: (make, { base, signal }) =>
      call(signal, async (combined) => {
        const root = await kubo.build(make, { base, signal: combined })
        await replicateImport(root, combined)
        return root
      }),

    info: ({ signal }) =>
      call(signal, async (combined) => {
        const [info, id] = await Promise.all([kubo.info({ signal: combined }), pins.id(combined)])
        const peers = await readPeers(client, combined)
        for (const [peer, since] of pins.absent())
          peers.push({ name: peer, error: `gone since ${new Date(since).toISOString()}` })
        const agent = `${info.agent} ipfs-cluster/${id.version}`
        return { ...info, driver: 'cluster' as const, agent, peers }
      }),
  }
}

/**
 * Checks that the peer is the one next to Kubo, and that no Kubo of the other network is in the same Cluster, which
 * would copy private content to public nodes.
 * @throws StorageError `unavailable`, or Error naming the setting to change.
 */
async function checkPeer(
  client: ClusterClient,
  pins: ClusterPins,
  options: { apiUrl: string; otherApiUrl?: string | undefined; network: string; setting: string },
  signal: AbortSignal,
): Promise<void> {
  const { apiUrl, otherApiUrl, network, setting } = options
  const id = await pins.id(signal).catch((error) => {
    throw error instanceof ClusterAuthError ? new Error(`${setting}: ${error.message}`) : error
  })
  if (!id.ipfs?.id)
    throw new StorageError('unavailable', `IPFS Cluster does not reach its Kubo: ${id.ipfs?.error}`)
  const kuboId = await nodeId(apiUrl, signal)
  if (id.ipfs.id !== kuboId) {
    const kuboSetting = network === 'public' ? 'IPFS_API_URL' : 'IPFS_PRIVATE_API_URL'
    throw new Error(`${setting} leads to the peer of another Kubo than ${kuboSetting}`)
  }
  if (otherApiUrl) {
    const other = await nodeId(otherApiUrl, signal).catch((error) => {
      // That network's own start checks it as well.
      if (error instanceof StorageError || error instanceof KuboError) return null
      throw error
    })
    for await (const peer of client.rows<PeerId>('/peers', { signal }))
      if (other !== null && peer.ipfs?.id === other)
        throw new Error(
          `${setting} has the other network's Kubo among its peers: give each network a Cluster`,
        )
  }
  pins.own = id.id
}

async function nodeId(apiUrl: string, signal: AbortSignal): Promise<string> {
  const limits = { signal, deadlineMs: OTHER_MS }
  return new KuboClient(apiUrl).call('id', limits, async (rpc, signal) => `${(await rpc.id({ signal })).id}`)
}

/** The peers that are present. Hanging ones are not waited for: their absence shows soon. */
async function readPeers(client: ClusterClient, signal: AbortSignal): Promise<ClusterPeer[]> {
  const peers: ClusterPeer[] = []
  try {
    const rows = client.rows<PeerId>('/peers', { signal: within(PEERS_MS, signal) })
    for await (const { id, peername, error, ipfs } of rows)
      peers.push({ name: peername || id, error: error || ipfs?.error || null })
  } catch (error) {
    if (signal.aborted) throw error
    peers.push({ name: 'others', error: (error as Error).message })
  }
  return peers
}
