import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../config.ts'
import type { Pool } from '../db/pool.ts'
import { SharedLock } from '../db/shared-lock.ts'
import { readReplicas } from '../db/statements/files.ts'
import { readBucket } from '../lib/bucket-name.ts'
import type { Closers } from '../lib/closers.ts'
import { blocksFolder, reserveSetting } from '../lib/disk.ts'
import { DiskReserve } from '../lib/disk-reserve.ts'
import { within } from '../lib/signals.ts'
import { createLogger, type Logger } from '../log.ts'
import type { ReplicasOf } from './cluster/pins.ts'
import { type IpfsStatus, type Network, type Storage, StorageError } from './port.ts'

const RETRY_MS = 2000
const INFO_MS = 4000

/**
 * The storage of each network. They are two nodes, because bitswap gives every block of a node to anyone who asks for
 * it.
 */
export type Storages = Record<Network, Storage>

/**
 * Opens the storage of both networks. An unavailable node does not keep the process from starting: work that needs it
 * waits until it is back, or is rejected.
 * @param role only a worker connects the embedded public node to the network.
 * @param more `url` of the database without a pooler, if the settings do not name it. Without a `pool`, plans do not add
 *   replicas. `isCached` as in {@link NodeOptions}.
 * @throws Error naming what to fix, if a node responds but cannot be used.
 */
export async function openStorages(
  config: Config,
  role: 'web' | 'worker',
  log: Logger,
  parts: Closers,
  {
    url = config.DATABASE_DIRECT_URL ?? config.DATABASE_URL,
    pool,
    isCached,
  }: { url?: string; pool?: Pool; isCached?: boolean } = {},
): Promise<Storages> {
  const open = async (network: Network) => {
    const replicasOf = pool && replicasIn(pool, network)
    const options = { config, network, role, databaseUrl: url, log, replicasOf, isCached }
    return startStorage(await createStorage(options), log, parts)
  }
  const [publicStorage, privateStorage] = await Promise.all([open('public'), open('private')])
  return { public: publicStorage, private: privateStorage }
}

/** The replicas in IPFS Cluster that plans want for the files of a network. */
export function replicasIn(pool: Pool, network: Network): ReplicasOf {
  return async (cids) => {
    const { rows } = await readReplicas.run(pool, network, cids)
    return new Map(rows.map(({ cid, replicas }) => [cid, replicas]))
  }
}

async function startStorage(storage: Storage, log: Logger, parts: Closers): Promise<Storage> {
  const closing = new AbortController()
  parts.add(`${storage.network} storage`, () => {
    closing.abort()
    return storage.stop()
  })
  try {
    await storage.start()
  } catch (error) {
    if (!isAway(error)) throw error
    log.warn(
      { err: error, network: storage.network },
      'the IPFS node is unavailable; work that needs it waits',
    )
    void startLater(storage, log, closing.signal)
  }
  return storage
}

const LOCKS = { public: 'kuboPublic', private: 'kuboPrivate' } as const

const apiUrlsOf = (config: Config) => ({ public: config.IPFS_API_URL, private: config.IPFS_PRIVATE_API_URL })

/** True if a network's node is Berth's own, so that Berth collects its garbage. */
export const isOwn = (config: Config, network: Network): boolean =>
  !apiUrlsOf(config)[network] || config.BERTH_OWN_KUBO.includes(network)

/** The addresses and settings of a network's nodes. */
export function nodesOf(config: Config, network: Network) {
  const isPublic = network === 'public'
  return {
    apiUrl: apiUrlsOf(config)[network],
    clusterUrl: isPublic ? config.IPFS_CLUSTER_API_URL : config.IPFS_PRIVATE_CLUSTER_API_URL,
    previous: isPublic ? config.IPFS_API_URL_PREVIOUS : config.IPFS_PRIVATE_API_URL_PREVIOUS,
    setting: isPublic ? 'IPFS_API_URL' : 'IPFS_PRIVATE_API_URL',
    clusterSetting: isPublic ? 'IPFS_CLUSTER_API_URL' : 'IPFS_PRIVATE_CLUSTER_API_URL',
  } as const
}

/**
 * Creates the storage of a network: Kubo, or IPFS Cluster, if its address is set, otherwise the embedded node; during a
 * move, that one and the previous one. Nothing is opened before `start`. Loads only the drivers that are used.
 */
export async function createStorage(options: NodeOptions): Promise<Storage> {
  const { config, network } = options
  const next = await createNext(options)
  const { apiUrl, previous: address, setting } = nodesOf(config, network)
  if (!address) return next
  if (address === (apiUrl ?? config.BERTH_BLOCKS_S3_URL ?? 'embedded'))
    throw new Error(`${setting}_PREVIOUS is the present node; unset it unless the network moves`)
  const { createMovingStorage } = await import('./moving.ts')
  const bucket = readBucket(address) && address
  const isPreviousOwn = address === 'embedded' || bucket !== undefined
  const previous = isPreviousOwn
    ? await createEmbedded(options, bucket)
    : (await import('./kubo.ts')).createKuboStorage({ apiUrl: address, network })
  return createMovingStorage({ next, previous, isPreviousOwn })
}

interface NodeOptions {
  config: Config
  network: Network
  role: 'web' | 'worker'
  /** For the lock that keeps collections in a Kubo apart from imports, across all processes; without a pooler. */
  databaseUrl?: string | undefined
  log?: Logger
  /** The replicas in IPFS Cluster that plans want. */
  replicasOf?: ReplicasOf | undefined
  /** Whether blocks from S3 are cached on disk; not by commands, which read everything once, or verify what S3 has. */
  isCached?: boolean | undefined
}

/** The node that remains after a move: without a move, the only one. */
export async function createNext(options: NodeOptions): Promise<Storage> {
  const { config, network, databaseUrl, replicasOf } = options
  const { apiUrl, clusterUrl } = nodesOf(config, network)
  if (!apiUrl) return createEmbedded(options, config.BERTH_BLOCKS_S3_URL)
  const otherApiUrl = apiUrlsOf(config)[network === 'public' ? 'private' : 'public']
  const lock = isOwn(config, network) && databaseUrl ? new SharedLock(databaseUrl, LOCKS[network]) : undefined
  const kubo = { apiUrl, network, otherApiUrl, lock }
  if (clusterUrl) {
    const { createClusterStorage } = await import('./cluster.ts')
    return createClusterStorage({
      ...kubo,
      clusterUrl,
      replication: config.IPFS_CLUSTER_REPLICATION,
      replicasOf,
    })
  }
  const { createKuboStorage } = await import('./kubo.ts')
  return createKuboStorage(kubo)
}

/** The embedded node with its blocks in a folder, or in a bucket of S3. */
async function createEmbedded(
  { config, network, role, databaseUrl = '', log = createLogger('storage', 'silent'), isCached }: NodeOptions,
  bucket: string | undefined,
): Promise<Storage> {
  const { createEmbeddedStorage, markExpiryOf } = await import('./embedded.ts')
  const blocks = blocksFolder(config)
  const graceMs = config.BERTH_INTERVALS.gcGrace * 1000
  const openBucket = async (named: { bucket: string; prefix: string }) => {
    const { createBucketPlace } = await import('./embedded/bucket/place.ts')
    return createBucketPlace({
      network,
      bucket: named.bucket,
      prefix: `${named.prefix}${network}/`,
      pathStyle: config.BERTH_S3_PATH_STYLE,
      databaseUrl: config.DATABASE_URL ?? databaseUrl,
      directUrl: databaseUrl,
      graceMs,
      markExpiryMs: markExpiryOf(graceMs),
      cacheBytes: config.BERTH_BLOCKS_CACHE_MB.memory * 1_048_576,
      ...(isCached && {
        files: {
          folder: join(config.BERTH_DATA_DIR, 'blocks', network),
          maxBytes: config.BERTH_BLOCKS_CACHE_MB.disk * 1_048_576,
          reserveBytes: reserveSetting(config),
        },
      }),
      log,
    })
  }
  const named = bucket === undefined ? undefined : readBucket(bucket)
  const place = {
    dir: join(blocks, network),
    network,
    ...(named
      ? { place: await openBucket(named) }
      : {
          gcGraceMs: graceMs,
          reserve: new DiskReserve({ folders: { blocks }, reserveBytes: reserveSetting(config) }),
        }),
  }
  if (network === 'private' || role === 'web') return createEmbeddedStorage({ ...place, offline: true })
  return createEmbeddedStorage({
    ...place,
    listen: config.BERTH_IPFS_LISTEN,
    routingUrl: config.BERTH_IPFS_ROUTING_URL || null,
    allowPrivate: config.BERTH_ALLOW_PRIVATE_HOST_NODES,
  })
}

async function startLater(storage: Storage, log: Logger, signal: AbortSignal): Promise<void> {
  for (;;) {
    await delay(RETRY_MS, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    try {
      await storage.start()
      return log.info({ network: storage.network }, 'the IPFS node is there')
    } catch (error) {
      if (isAway(error)) continue
      log.error({ err: error, network: storage.network }, 'the IPFS node cannot be used')
    }
  }
}

const isAway = (error: unknown): boolean => error instanceof StorageError && error.isAway

/** The current state of the node, for the worker's status row. Never throws. */
export async function observeNode(storage: Storage, signal: AbortSignal): Promise<IpfsStatus> {
  try {
    const limits = { signal: within(INFO_MS, signal) }
    const info = await storage.info(limits)
    return { ...info, error: null, shortage: await storage.shortage(limits) }
  } catch (error) {
    const nobody = { agent: '', peerId: null, addresses: [], repoBytes: null }
    return { driver: storage.driver, ...nobody, error: (error as Error).message }
  }
}
