/** The loops of a worker, except its heartbeat. */
import type { Base } from '../../src/core.ts'
import { makeIndexes } from '../../src/db/late-indexes.ts'
import { dropPartitions, makePartitions } from '../../src/db/partitions.ts'
import { sumKeptContent, sumStoredContent } from '../../src/db/statements/files.ts'
import { verifyPendingDomains } from '../../src/domains/verification.ts'
import { addPartitions, dropOldPartitions } from '../../src/events/partitions.ts'
import { forgetOldCounts } from '../../src/files/analytics/request-counts.ts'
import { startDiskWatch } from '../../src/health/disk-events.ts'
import { blocksFolder } from '../../src/lib/disk.ts'
import { type Loop, startLoop } from '../../src/lib/loop.ts'
import { chargeLost } from '../../src/models/lost.ts'
import { forgetOldOperations } from '../../src/operations/operation-store.ts'
import { isOwn } from '../../src/storage/open.ts'
import type { Storage } from '../../src/storage/port.ts'
import { enqueueDueRounds, forgetOldDeliveries } from '../../src/webhooks/deliveries.ts'
import type { AgentWorkerServices } from '../services.ts'
import { startAgentLoop } from './agents.ts'
import { BACKUP_POLL_MS, type ScheduledBackups } from './backups.ts'
import { removeExpiredFiles, tidyEngines } from './cleanup.ts'
import { collectInTurn, collectReleased, POLL_MS } from './collect.ts'
import { reconcilePins } from './pins.ts'
import { fillPool } from './pool.ts'
import { startSnapshotLoop } from './snapshots.ts'

/** Interval for adding changes to the sum; there is one change for each file kept or removed in between. */
const KEPT_CONTENT_MS = 10_000
const RETENTION_MS = 3_600_000
/** A comparison reads all pins and all files: with many of them, it takes a twentieth of the time at most. */
const PINS_REST = 19
/** Below the minimum of BERTH_ENGINE_GRACE_SECONDS: each run also marks the needed engines as used. */
const ENGINES_MS = 3_600_000
/** Interval of the check for missing late indexes: an operator may have added the extension that one needs. */
const INDEXES_MS = 3_600_000
/** Interval of the check for deliveries that are due for a retry. */
const WEBHOOKS_MS = 1000
/** Interval of the search for calls of models that a killed agent proxy has not reported. */
const LOST_CALLS_MS = 15_000
/** Interval of the comparison of the pool with BERTH_POOL: a spare may have been taken. */
const POOL_MS = 1000
/** Interval of the query for due domains. Each domain is looked up at most once a minute. */
const DOMAINS_MS = 10_000

/** Starts the loops that compare PostgreSQL with the outside world, and those that forget old rows. */
export function startLoops(
  base: Base,
  { agents, backups }: { agents: AgentWorkerServices | undefined; backups: ScheduledBackups | undefined },
): Loop[] {
  const { config, pool, ownership, disks, storages, log } = base
  const loops = [
    startLoop('expiry', config.BERTH_INTERVALS.reconcile * 1000, log, (signal) =>
      removeExpiredFiles(pool, signal),
    ),
    startLoop('kept content', KEPT_CONTENT_MS, log, async () => {
      await sumKeptContent.run(pool)
      await sumStoredContent.run(pool)
    }),
    startLoop('retention', RETENTION_MS, log, async (signal) => {
      await forgetOldOperations(pool, config.BERTH_RETENTION.operations, signal)
      await forgetOldCounts(pool, config.BERTH_RETENTION.analytics, signal)
      await forgetOldDeliveries(pool, config.BERTH_RETENTION.deliveries, signal)
      await addPartitions(pool)
      await dropOldPartitions(pool, config.BERTH_RETENTION.events, signal)
      await makePartitions(pool)
      await dropPartitions(pool, 'audit', config.BERTH_RETENTION.audit)
    }),
    startLoop('indexes', INDEXES_MS, log, async (signal) => {
      const reason = await makeIndexes(pool, signal)
      if (reason)
        log.info({ reason }, 'lists filtered by a part of a name are slow: PostgreSQL has no pg_trgm')
    }),
    startDiskWatch(pool, disks, log),
    startLoop('webhooks', WEBHOOKS_MS, log, () => enqueueDueRounds(pool)),
    startLoop('lost model calls', LOST_CALLS_MS, log, (signal) => chargeLost(pool, signal)),
    startLoop('domains', DOMAINS_MS, log, (signal) => verifyPendingDomains({ pool, ownership }, log, signal)),
    ...Object.values(storages).flatMap((storage) => startStorageLoops(base, storage)),
  ]
  if (agents) {
    loops.push(
      startAgentLoop(agents, log),
      startSnapshotLoop(agents, log),
      startLoop('pool', POOL_MS, log, () => fillPool(agents)),
    )
    if (backups)
      loops.push(
        startLoop('backup', BACKUP_POLL_MS, log, (signal) => backups.makeInTurn({ pool, log }, signal)),
      )
    loops.push(startLoop('engines', ENGINES_MS, log, (signal) => tidyEngines(agents, log, signal)))
  }
  return loops
}

/** Compares the pins of a network, and collects the garbage of Berth's own node. */
function startStorageLoops({ config, pool, disks, log }: Base, storage: Storage): Loop[] {
  const { network } = storage
  const reconcileMs = config.BERTH_INTERVALS.reconcile * 1000
  const loops = [
    startLoop(`${network} pins`, reconcileMs, log, (signal) => reconcilePins(pool, storage, signal), {
      rest: PINS_REST,
    }),
  ]
  // The garbage of a Kubo that others also use is its operator's responsibility.
  if (!isOwn(config, network)) return loops
  const intervalMs = config.BERTH_INTERVALS.gc * 1000
  const collecting = { pool, intervalMs, log }
  const collect =
    storage.driver === 'embedded' && !config.BERTH_BLOCKS_S3_URL
      ? collectInTurn(collecting, storage, { folder: blocksFolder(config), ...disks })
      : collectReleased(collecting, storage)
  return [...loops, startLoop(`${network} gc`, Math.min(intervalMs, POLL_MS), log, collect)]
}
