import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../config.ts'
import type { Logger } from '../log.ts'
import type { IpfsStatus } from '../operations/workers.ts'
import type { Parts } from '../roles/parts.ts'
import { type Network, type Storage, StorageError } from './port.ts'

const RETRY_MS = 2000
const INFO_MS = 4000

/**
 * Opens the storage of a network: Kubo where its address is set, else the embedded node. A node that
 * is away does not keep the worker from starting: operations wait until it is back.
 * @throws Error naming what to fix, when the node answers but cannot be used.
 */
export async function openStorage(
  config: Config,
  network: Network,
  log: Logger,
  parts: Parts,
): Promise<Storage> {
  const storage = await createStorage(config, network)
  const closing = new AbortController()
  parts.add('storage', () => {
    closing.abort()
    return storage.stop()
  })
  try {
    await storage.start()
  } catch (error) {
    if (!isAway(error)) throw error
    log.warn({ err: error }, 'the IPFS node is away; pins wait for it')
    void startLater(storage, log, closing.signal)
  }
  return storage
}

/** Loads only the driver that is used. */
async function createStorage(config: Config, network: Network): Promise<Storage> {
  if (config.IPFS_API_URL) {
    const { createKuboStorage } = await import('./kubo.ts')
    return createKuboStorage({ apiUrl: config.IPFS_API_URL, network })
  }
  const { createEmbeddedStorage } = await import('./embedded.ts')
  return createEmbeddedStorage({
    dir: join(config.BERTH_DATA_DIR, 'ipfs', network),
    network,
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
      return log.info('the IPFS node is there')
    } catch (error) {
      if (!isAway(error)) log.error({ err: error }, 'the IPFS node cannot be used')
    }
  }
}

function isAway(error: unknown): boolean {
  return error instanceof StorageError && error.code === 'unavailable'
}

/** The node as it is now, for the worker's status row. Never throws. */
export async function observeNode(storage: Storage, signal: AbortSignal): Promise<IpfsStatus> {
  try {
    const info = await storage.info({ signal: AbortSignal.any([signal, AbortSignal.timeout(INFO_MS)]) })
    return { ...info, error: null }
  } catch (error) {
    const nobody = { agent: '', peerId: null, addresses: [], repoBytes: null }
    return { driver: storage.driver, ...nobody, error: (error as Error).message }
  }
}
