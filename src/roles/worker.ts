import { uuidv7 } from 'uuidv7'
import packageJson from '../../package.json' with { type: 'json' }
import { type Leaving, openAgents } from '../../workers/agents/open.ts'
import { ScheduledBackups } from '../../workers/reconcile/backups.ts'
import { startLoops } from '../../workers/reconcile/loops.ts'
import { loadHandlers } from '../../workers/registry.ts'
import { readDestinations } from '../agent-proxy/destination.ts'
import type { Config } from '../config.ts'
import { createPool } from '../db/pool.ts'
import { ConfigError } from '../errors.ts'
import {
  addBackupMetrics,
  addDiskMetrics,
  addPartMetrics,
  addSpareMetrics,
} from '../health/process-metrics.ts'
import { startLoop } from '../lib/loop.ts'
import type { Logger } from '../log.ts'
import { QUEUES, type QueueName } from '../operations/catalog.ts'
import { OperationMetrics } from '../operations/metrics.ts'
import { createQueueBackend } from '../operations/queue.ts'
import { Runner } from '../operations/runner.ts'
import { type QueueConcurrency, WorkerStatus } from '../operations/worker-status.ts'
import { observeNode } from '../storage/open.ts'
import type { IpfsStatus } from '../storage/port.ts'
import { openBase } from './base.ts'
import { workerReadiness } from './checks.ts'
import { openOperatorPorts } from './operator-ports.ts'
import { counted, type RunningRole } from './running-role.ts'

const HEARTBEAT_MS = 5000
/** Concurrent rounds of deliveries: they spend almost all of their time waiting for targets. */
const WEBHOOKS = 64
/** Within the time that the supervisor gives a worker. */
const AGENT_GRACE_MS = 6000

/**
 * Leases and heartbeats have separate connections: while the IPFS node hangs, transactions that wait for it may hold
 * all others, and no operation may lose its lease because of that.
 */
const LEASE_CONNECTIONS = 2

/** The worker role: runs operations, and the loops that compare PostgreSQL with the outside world. */
export async function openWorker(config: Config, log: Logger): Promise<RunningRole> {
  const concurrency = queueConcurrency(config)
  const leaving: Leaving = { agents: 0, graceMs: AGENT_GRACE_MS }
  const base = await openBase(config, log, 'worker')
  const { databaseUrl, storages, disks, registry, parts } = base
  const leases = createPool(databaseUrl, LEASE_CONNECTIONS, log)
  parts.add('leases', () => leases.end())
  const agents =
    'agents' in concurrency || 'workspaces' in concurrency ? await openAgents(base, leaving) : undefined

  let written = performance.now()
  const nodes: { ipfs?: IpfsStatus; ipfsPrivate?: IpfsStatus } = {}
  const readiness = workerReadiness({
    ...base,
    // Operations may keep all connections of the other pool busy while the database is healthy.
    pool: leases,
    concurrency,
    nodes,
    heartbeatAgeMs: () => performance.now() - written,
    runtime: agents?.runtime,
  })
  addPartMetrics(registry, readiness)
  addDiskMetrics(registry, disks)
  if (agents) addSpareMetrics(registry, config.BERTH_POOL)
  const { BERTH_BACKUP_DIR } = config
  const backups = BERTH_BACKUP_DIR ? new ScheduledBackups(config, BERTH_BACKUP_DIR) : undefined
  addBackupMetrics(registry, backups && (() => backups.newest()))

  const id = uuidv7()
  const runner = new Runner({
    ...base,
    leases,
    workerId: id,
    metrics: new OperationMetrics(registry),
    handlers: await loadHandlers({
      ...base,
      agents,
      stallMs: config.BERTH_PINS.stallSeconds * 1000,
      retryMs: config.BERTH_PINS.retrySeconds * 1000,
      expiryMs: config.BERTH_PINS.expirySeconds * 1000,
      allowPrivateHostNodes: config.BERTH_ALLOW_PRIVATE_HOST_NODES,
      webhooks: {
        encryption: base.encryption,
        allowed: readDestinations(config.BERTH_WEBHOOK_ALLOW, 'BERTH_WEBHOOK_ALLOW'),
      },
    }),
  })
  const status = new WorkerStatus(leases)
  const heartbeat = startLoop('heartbeat', HEARTBEAT_MS, log, async (signal) => {
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
  })
  const loops = [heartbeat, ...startLoops(base, { agents, backups })]
  parts.add('loops', async () => {
    await Promise.all(loops.map((loop) => loop.stop()))
    await status.remove(id)
  })

  const backend = createQueueBackend({ redisUrl: config.REDIS_URL, databaseUrl: base.pool.directUrl }, log)
  for (const [queue, limit] of Object.entries(concurrency)) {
    backend.consume(queue as QueueName, limit, (operationId) => runner.run(operationId))
  }
  parts.add('queues', () => {
    runner.shutdown()
    return backend.close()
  })
  await openOperatorPorts({ ...base, readiness })
  return {
    stop: () => parts.close(),
    waitsFor: () => [...counted(runner.running, 'operation'), ...counted(leaving.agents, 'agent')],
    hurry: () => {
      leaving.graceMs = 0
    },
  }
}

/** Operations on agents for each engine that may boot: takeovers of spares, removals and others boot none. */
const PER_BOOT = 2

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
    agents: config.BERTH_CONCURRENCY.agents * PER_BOOT,
    workspaces: Math.ceil(config.BERTH_CONCURRENCY.agents / 2),
    webhooks: WEBHOOKS,
  }
  return Object.fromEntries(
    Object.entries(concurrency).filter(([name]) => chosen.length === 0 || chosen.includes(name)),
  )
}
