import { checkAgentProxy } from '../agent-proxy/checks.ts'
import { loadAgentProxy } from '../agent-proxy/tunnel-client.ts'
import type { Core } from '../core.ts'
import { makePartitions } from '../db/partitions.ts'
import { checkDispatcher, checkRoom } from '../health/checks.ts'
import { addDatabaseMetrics } from '../health/database-metrics.ts'
import { startDiskWatch } from '../health/disk-events.ts'
import { addBoundMetrics, addDiskMetrics, addPartMetrics } from '../health/process-metrics.ts'
import { observeWorkers } from '../health/workers.ts'
import { checkDisk } from '../lib/disk.ts'
import { type Check, Readiness } from '../lib/readiness.ts'
import type { Dispatcher } from '../operations/dispatcher.ts'
import { addDispatcherMetrics } from '../operations/metrics.ts'
import { commonChecks } from './checks.ts'

const PARTITIONS_MS = 600_000

/** The health of `web`, with its metrics and the watch on its disks. */
export function openWebHealth(core: Core, dispatcher: Dispatcher): Readiness {
  const { config, disks, pool, parts, registry, bounds, workers, storages, log } = core
  const checks: Record<string, Check> = {
    ...commonChecks(core),
    disk: { find: () => checkDisk(disks) },
    host: { find: () => checkAgentProxy(loadAgentProxy(config)) },
    dispatcher: { find: () => checkDispatcher(dispatcher.passAgeMs) },
  }
  /** The nodes as workers see them, unless an upload to this process met a full node. */
  const observe = async () => {
    const [seen, ipfs, ipfs_private] = await Promise.all([
      observeWorkers(workers),
      checkRoom(storages.public),
      checkRoom(storages.private),
    ])
    return { ...seen, ...(ipfs && { ipfs }), ...(ipfs_private && { ipfs_private }) }
  }
  const readiness = new Readiness({ checks, observe, log })
  parts.addLoop('partitions', PARTITIONS_MS, () => makePartitions(pool))
  const diskWatch = startDiskWatch(pool, disks, log)
  parts.add('look at disks', () => diskWatch.stop())
  addDatabaseMetrics(registry, pool)
  addPartMetrics(registry, readiness)
  addDiskMetrics(registry, disks)
  addBoundMetrics(registry, bounds)
  addDispatcherMetrics(registry, dispatcher)
  return readiness
}
