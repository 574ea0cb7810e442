import { Registry } from 'prom-client'
import { uuidv7 } from 'uuidv7'
import packageJson from '../../package.json' with { type: 'json' }
import { startAgentLoop } from '../../workers/reconcile/agents.ts'
import { BACKUP_POLL_MS, ScheduledBackups } from '../../workers/reconcile/backups.ts'
import { removeExpiredFiles, tidyEngines } from '../../workers/reconcile/cleanup.ts'
import { collectInTurn, collectReleased, POLL_MS } from '../../workers/reconcile/collect.ts'
import { reconcilePins } from '../../workers/reconcile/pins.ts'
import { startSnapshotLoop } from '../../workers/reconcile/snapshots.ts'
import { loadHandlers } from '../../workers/registry.ts'
import type { AgentWorkerServices } from '../../workers/services.ts'
import { readDestinations } from '../agent-proxy/destination.ts'
import { loadAgentProxy } from '../agent-proxy/tunnel-client.ts'
import { AgentdClient } from '../agents/agentd-client.ts'
import type { Config } from '../config.ts'
import { makeIndexes } from '../db/late-indexes.ts'
import { dropPartitions, makePartitions } from '../db/partitions.ts'
import { createPool, type Pool } from '../db/pool.ts'
import { createPrisma, type PrismaClient } from '../db/prisma.ts'
import { sumKeptContent, sumStoredContent } from '../db/statements/files.ts'
import { Ownership } from '../domains/ownership.ts'
import { verifyPendingDomains } from '../domains/verification.ts'
import { ConfigError, SandboxError } from '../errors.ts'
import { addPartitions, dropOldPartitions } from '../events/partitions.ts'
import { forgetOldCounts } from '../files/analytics/request-counts.ts'
import { startDiskWatch } from '../health/disk-events.ts'
import {
  addBackupMetrics,
  addDiskMetrics,
  addPartMetrics,
  addPoolMetrics,
} from '../health/process-metrics.ts'
import { Closers } from '../lib/closers.ts'
import { blocksFolder, disksOf } from '../lib/disk.ts'
import { loadEncryption } from '../lib/encryption.ts'
import { startLoop } from '../lib/loop.ts'
import type { Logger } from '../log.ts'
import { QUEUES, type QueueName } from '../operations/catalog.ts'
import { OperationMetrics } from '../operations/metrics.ts'
import { forgetOldOperations } from '../operations/operation-store.ts'
import { createQueueBackend } from '../operations/queue.ts'
import { createRedis } from '../operations/redis.ts'
import { Runner } from '../operations/runner.ts'
import { type QueueConcurrency, WorkerStatus } from '../operations/worker-status.ts'
import { openRuntime } from '../sandboxes/open.ts'
import { readOwner } from '../sandboxes/owner.ts'
import type { SandboxRuntime } from '../sandboxes/port.ts'
import { postgresFolder } from '../standalone/postgres.ts'
import { isOwn, observeNode, openStorages, type Storages } from '../storage/open.ts'
import type { IpfsStatus } from '../storage/port.ts'
import { enqueueDueRounds, forgetOldDeliveries } from '../webhooks/deliveries.ts'
import { workerReadiness } from './checks.ts'
import { openDatabase } from './database.ts'
import { openOperatorPorts } from './operator-ports.ts'
import { counted, type RunningRole } from './running-role.ts'

const HEARTBEAT_MS = 5000
/** Interval for adding changes to the sum; there is one change for each file kept or removed in between. */
const KEPT_CONTENT_MS = 10_000
const RETENTION_MS = 3_600_000
/** A comparison reads all pins and all files: with many of them, it takes a twentieth of the time at most. */
const PINS_REST = 19
/** Below the minimum of BERTH_ENGINE_GRACE_SECONDS: each run also marks the needed engines as used. */
const ENGINES_MS = 3_600_000
/** Interval of the check for missing late indexes: an operator may have added the extension that one needs. */
const INDEXES_MS = 3_600_000
/** Concurrent rounds of deliveries: they spend almost all of their time waiting for targets. */
const WEBHOOKS = 64
/** Interval of the check for deliveries that are due for a retry. */
const WEBHOOKS_MS = 1000
/** Interval of the query for due domains. Each domain is looked up at most once a minute. */
const DOMAINS_MS = 10_000
/** Within the time that the supervisor gives a worker. */
const AGENT_GRACE_MS = 6000

/**
 * Leases and heartbeats have separate connections: while the IPFS node hangs, transactions that wait for it may hold
 * all others, and no operation may lose its lease because of that.
 */
const LEASE_CONNECTIONS = 2

/** The worker role: runs operations, and the loops that compare PostgreSQL with the outside world. */
export async function openWorker(config: Config, log: Logger): Promise<RunningRole> {
  const parts = new Closers(log)
  const concurrency = queueConcurrency(config)
  const leaving: Leaving = { agents: 0, graceMs: AGENT_GRACE_MS }
  const { databaseUrl, pool } = await openDatabase(config, log, parts)
  const prisma = createPrisma(pool)
  const storages = await openStorages(config, 'worker', log, parts)
  const leases = createPool(databaseUrl, LEASE_CONNECTIONS, log)
  parts.add('leases', () => leases.end())

  const agents =
    'agents' in concurrency || 'workspaces' in concurrency
      ? await openAgents(config, { pool, prisma, storages, log, parts, leaving })
      : undefined

  const redis = config.REDIS_URL ? createRedis(config.REDIS_URL, log) : undefined
  if (redis) parts.add('redis', () => redis.disconnect())
  let written = performance.now()
  const nodes: { ipfs?: IpfsStatus; ipfsPrivate?: IpfsStatus } = {}
  const disks = disksOf(config, 'worker', await postgresFolder(config.BERTH_DATA_DIR, databaseUrl))
  const readiness = workerReadiness({
    config,
    disks,
    // Operations may keep all connections of the other pool busy while the database is healthy.
    pool: leases,
    pingQueue: redis && (() => redis.ping()),
    concurrency,
    nodes,
    heartbeatAgeMs: () => performance.now() - written,
    runtime: agents?.runtime,
    log,
  })
  const registry = new Registry()
  addPoolMetrics(registry, pool)
  addPartMetrics(registry, readiness)
  addDiskMetrics(registry, disks)
  const backups = config.BERTH_BACKUP_DIR && new ScheduledBackups(config, config.BERTH_BACKUP_DIR)
  addBackupMetrics(registry, backups ? () => backups.newest() : undefined)

  const id = uuidv7()
  const runner = new Runner({
    pool,
    prisma,
    leases,
    workerId: id,
    log,
    metrics: new OperationMetrics(registry),
    handlers: await loadHandlers({
      pool,
      prisma,
      agents,
      storages,
      stallMs: config.BERTH_PINS.stallSeconds * 1000,
      retryMs: config.BERTH_PINS.retrySeconds * 1000,
      expiryMs: config.BERTH_PINS.expirySeconds * 1000,
      allowPrivateHostNodes: config.BERTH_ALLOW_PRIVATE_HOST_NODES,
      webhooks: {
        encryption: loadEncryption(config),
        allowed: readDestinations(config.BERTH_WEBHOOK_ALLOW, 'BERTH_WEBHOOK_ALLOW'),
      },
    }),
  })
  const ownership = new Ownership(config)
  const status = new WorkerStatus(leases)
  const loops = [
    startLoop('heartbeat', HEARTBEAT_MS, log, async (signal) => {
      const [ipfs, ipfsPrivate] = await Promise.all([
        observeNode(storages.public, signal),
        observeNode(storages.private, signal),
      ])
      Object.assign(nodes, { ipfs, ipfsPrivate })
      const report = await readiness.read()
      await status.write({
        id,
        concurrency,
        ipfs,
        ipfsPrivate,
        parts: report.parts,
        version: packageJson.version,
      })
      written = performance.now()
    }),
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
    startLoop('domains', DOMAINS_MS, log, (signal) => verifyPendingDomains({ pool, ownership }, log, signal)),
  ]
  for (const storage of Object.values(storages)) {
    loops.push(
      startLoop(
        `${storage.network} pins`,
        config.BERTH_INTERVALS.reconcile * 1000,
        log,
        (signal) => reconcilePins(pool, storage, signal),
        { rest: PINS_REST },
      ),
    )
    // The garbage of a Kubo that others also use is its operator's responsibility.
    if (!isOwn(config, storage.network)) continue
    const collecting = { pool, intervalMs: config.BERTH_INTERVALS.gc * 1000, log }
    const collect =
      storage.driver === 'kubo'
        ? collectReleased(collecting, storage)
        : collectInTurn(collecting, storage, { folder: blocksFolder(config), ...disks })
    loops.push(
      startLoop(`${storage.network} gc`, Math.min(config.BERTH_INTERVALS.gc * 1000, POLL_MS), log, collect),
    )
  }
  if (agents) {
    loops.push(startAgentLoop(agents, log), startSnapshotLoop(agents, log))
    if (backups)
      loops.push(
        startLoop('backup', BACKUP_POLL_MS, log, (signal) => backups.makeInTurn({ pool, log }, signal)),
      )
    loops.push(startLoop('engines', ENGINES_MS, log, (signal) => tidyEngines(agents, log, signal)))
  }
  parts.add('loops', async () => {
    await Promise.all(loops.map((loop) => loop.stop()))
    await status.remove(id)
  })

  const backend = createQueueBackend({ redisUrl: config.REDIS_URL, databaseUrl }, log)
  for (const [queue, limit] of Object.entries(concurrency)) {
    backend.consume(queue as QueueName, limit, (operationId) => runner.run(operationId))
  }
  parts.add('queues', () => {
    runner.shutdown()
    return backend.close()
  })
  await openOperatorPorts(config, { log, parts, registry, readiness })
  return {
    stop: () => parts.close(),
    waitsFor: () => [...counted(runner.running, 'operation'), ...counted(leaving.agents, 'agent')],
    hurry: () => {
      leaving.graceMs = 0
    },
  }
}

/** The shutdown of agents together with their worker. */
interface Leaving {
  /** The number of agents that have not ended yet. */
  agents: number
  /** How long each agent may take to end. */
  graceMs: number
}

/** The services of a worker that runs agents: their sandboxes, the agent proxy, and their secrets. */
async function openAgents(
  config: Config,
  {
    pool,
    prisma,
    storages,
    log,
    parts,
    leaving,
  }: { pool: Pool; prisma: PrismaClient; storages: Storages; log: Logger; parts: Closers; leaving: Leaving },
): Promise<AgentWorkerServices> {
  const runtime = await openRuntime(config, log, await readOwner(pool)).catch((error) => {
    // The message tells the operator what to do.
    throw error instanceof SandboxError ? new ConfigError(error.message) : error
  })
  parts.add('containers', () => runtime.close())
  const obstacle = await runtime.findObstacle?.().catch((error) => {
    log.warn(
      { err: error },
      'cannot check whether agents are isolated here; each agent start checks it again',
    )
    return null
  })
  if (obstacle) throw new ConfigError(obstacle)
  if (config.BERTH_STOP_AGENTS) parts.add('agents', () => stopAgents(runtime, leaving))
  const agentd = new AgentdClient(loadAgentProxy(config))
  parts.add('tunnels to agents', () => agentd.close())
  return { pool, prisma, runtime, agentd, encryption: loadEncryption(config), config, storages }
}

/** Agents' rows stay unchanged: the next worker finds the agents ended, and starts them again. */
async function stopAgents(runtime: SandboxRuntime, leaving: Leaving): Promise<void> {
  const sandboxes = (await runtime.list()).sandboxes.filter(({ state }) => state === 'running')
  leaving.agents = sandboxes.length
  await Promise.all(
    sandboxes.map(async ({ agentId }) => {
      await runtime.stop(agentId, { graceMs: leaving.graceMs })
      leaving.agents--
    }),
  )
}

/**
 * Repairs and removals are rare, and must not take the place of pins. How long it takes to transfer an agent's content
 * depends on the agent: a few slow ones must not keep others from starting.
 */
function queueConcurrency(config: Config): QueueConcurrency {
  const chosen = config.BERTH_QUEUES ?? []
  const unknown = chosen.filter((name) => !(QUEUES as readonly string[]).includes(name))
  if (unknown.length > 0) throw new ConfigError(`BERTH_QUEUES: no queue is named ${unknown.join(', ')}`)
  const pins = config.BERTH_CONCURRENCY.pins
  const concurrency: QueueConcurrency = {
    pins,
    repairs: Math.ceil(pins / 4),
    storage: Math.ceil(pins / 4),
    agents: config.BERTH_CONCURRENCY.agents,
    workspaces: Math.ceil(config.BERTH_CONCURRENCY.agents / 2),
    webhooks: WEBHOOKS,
  }
  return Object.fromEntries(
    Object.entries(concurrency).filter(([name]) => chosen.length === 0 || chosen.includes(name)),
  )
}
