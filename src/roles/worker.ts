import { Registry } from 'prom-client'
import { uuidv7 } from 'uuidv7'
import type { AgentWorkerServices } from '../../workers/agents/services.ts'
import { createHandlers } from '../../workers/index.ts'
import { startAgentLoop } from '../../workers/reconcile/agents.ts'
import { removeExpiredFiles } from '../../workers/reconcile/expiry.ts'
import { startLoop } from '../../workers/reconcile/loop.ts'
import { reconcilePins } from '../../workers/reconcile/pins.ts'
import { startSnapshotLoop } from '../../workers/reconcile/snapshots.ts'
import { AgentdClient } from '../agents/agentd-client.ts'
import { Ownership } from '../agents/domains/ownership.ts'
import { recheckDomains } from '../agents/domains/service.ts'
import { type Config, ConfigError, hostUrl, loadHostKey } from '../config.ts'
import { openContainers } from '../containers/open.ts'
import { ContainerError, type Containers } from '../containers/port.ts'
import { createPool, type Pool } from '../db/pool.ts'
import type { Logger } from '../log.ts'
import { QUEUES, type QueueName } from '../operations/catalog.ts'
import { createQueueBackend } from '../operations/queue.ts'
import { Runner } from '../operations/runner.ts'
import { forgetOldOperations } from '../operations/store.ts'
import { type Slots, WorkerStatus } from '../operations/workers.ts'
import { loadSealer } from '../sealer.ts'
import { observeNode, openStorages, type Storages } from '../storage/open.ts'
import { openDatabase } from './database.ts'
import { openHealthPort } from './health-port.ts'
import { Parts, type RunningRole } from './parts.ts'

const HEARTBEAT_MS = 5000
/** A worker that could not write its row for this long is of no use: its claims fail as well. */
const HEARTBEAT_LIMIT_MS = 30_000
const RETENTION_MS = 3_600_000
/** One look for which are due: each of them is, at most once a minute. */
const DOMAINS_MS = 10_000
/** Within the time that the supervisor gives a worker. */
const AGENT_GRACE_MS = 6000

/**
 * Leases and heartbeats have connections of their own: while the IPFS node hangs, transactions that wait
 * for it may hold all the others, and no operation may lose its lease by that.
 */
const LEASE_CONNECTIONS = 2

/** The worker role: runs operations, and the loops that compare PostgreSQL with the world. */
export async function openWorker(config: Config, log: Logger): Promise<RunningRole> {
  const parts = new Parts(log)
  const slots = chosenSlots(config)
  const { databaseUrl, pool } = await openDatabase(config, log, parts)
  const storages = await openStorages(config, 'worker', log, parts)
  const leases = createPool(databaseUrl, LEASE_CONNECTIONS, log)
  parts.add('leases', () => leases.end())

  const agents =
    'agents' in slots || 'workspaces' in slots
      ? await openAgents(config, { pool, storages, log, parts })
      : undefined

  const id = uuidv7()
  const runner = new Runner({
    pool,
    leases,
    workerId: id,
    log,
    handlers: createHandlers({
      pool,
      agents,
      storages,
      stallMs: config.BERTH_PIN_STALL_SECONDS,
      retryMs: config.BERTH_PIN_RETRY_SECONDS,
      expiryMs: config.BERTH_PIN_EXPIRY_SECONDS,
      allowPrivateHostNodes: config.BERTH_ALLOW_PRIVATE_HOST_NODES,
    }),
  })
  const ownership = new Ownership(config)
  const status = new WorkerStatus(leases)
  let written = performance.now()
  const loops = [
    startLoop('heartbeat', HEARTBEAT_MS, log, async (signal) => {
      const [ipfs, ipfsPrivate] = await Promise.all([
        observeNode(storages.public, signal),
        observeNode(storages.private, signal),
      ])
      await status.write({ id, slots, ipfs, ipfsPrivate })
      written = performance.now()
    }),
    startLoop('expiry', config.BERTH_RECONCILE_SECONDS, log, (signal) => removeExpiredFiles(pool, signal)),
    startLoop('retention', RETENTION_MS, log, (signal) =>
      forgetOldOperations(pool, config.BERTH_OPERATION_RETENTION_DAYS, signal),
    ),
    startLoop('domains', DOMAINS_MS, log, (signal) => recheckDomains({ pool, ownership }, log, signal)),
  ]
  for (const storage of Object.values(storages)) {
    loops.push(
      startLoop(`${storage.network} pins`, config.BERTH_RECONCILE_SECONDS, log, (signal) =>
        reconcilePins(pool, storage, signal),
      ),
    )
    // Kubo collects its own garbage, when and how its operator says.
    if (storage.driver === 'kubo') continue
    loops.push(
      startLoop(`${storage.network} gc`, config.BERTH_GC_SECONDS, log, (signal) => storage.gc({ signal })),
    )
  }
  if (agents) loops.push(startAgentLoop(agents, log), startSnapshotLoop(agents, log))
  parts.add('loops', async () => {
    await Promise.all(loops.map((loop) => loop.stop()))
    await status.remove(id)
  })

  const backend = createQueueBackend({ redisUrl: config.REDIS_URL, databaseUrl }, log)
  for (const [queue, concurrency] of Object.entries(slots)) {
    backend.consume(queue as QueueName, concurrency, (operationId) => runner.run(operationId))
  }
  parts.add('queues', () => {
    runner.shutdown()
    return backend.close()
  })
  await openHealthPort(config, {
    log,
    parts,
    registry: new Registry(),
    findProblem: () =>
      performance.now() - written > HEARTBEAT_LIMIT_MS ? 'cannot write its heartbeat' : undefined,
  })
  return { stop: () => parts.close() }
}

/** What a worker needs that brings agents up: where they run, the way to them, and their secrets. */
async function openAgents(
  config: Config,
  { pool, storages, log, parts }: { pool: Pool; storages: Storages; log: Logger; parts: Parts },
): Promise<AgentWorkerServices> {
  const containers = await openContainers(config, log).catch((error) => {
    // It says what the operator has to do.
    throw error instanceof ContainerError ? new ConfigError(error.message) : error
  })
  parts.add('containers', () => containers.close())
  if (config.BERTH_STOP_AGENTS) parts.add('agents', () => stopAgents(containers))
  const agentd = new AgentdClient({ hostUrl: hostUrl(config), hostKey: loadHostKey(config) })
  parts.add('ways to agents', () => agentd.close())
  return { pool, containers, agentd, sealer: loadSealer(config), config, storages }
}

/** Their rows stay as they are: the next worker finds them ended, and starts them again. */
async function stopAgents(containers: Containers): Promise<void> {
  const { sandboxes } = await containers.list()
  await Promise.all(sandboxes.map(({ agentId }) => containers.stop(agentId, { graceMs: AGENT_GRACE_MS })))
}

/**
 * Repairs and removals are rare, and must not take the place of pins. How long it takes to move what is in an agent is up
 * to that agent: a few that are slow must not keep others from coming up.
 */
function chosenSlots(config: Config): Slots {
  const chosen = config.BERTH_QUEUES ?? []
  const unknown = chosen.filter((name) => !(QUEUES as readonly string[]).includes(name))
  if (unknown.length > 0) throw new ConfigError(`BERTH_QUEUES: no queue is named ${unknown.join(', ')}`)
  const pins = config.BERTH_PIN_CONCURRENCY
  const slots: Slots = {
    pins,
    repairs: Math.ceil(pins / 4),
    storage: Math.ceil(pins / 4),
    agents: config.BERTH_AGENT_CONCURRENCY,
    workspaces: Math.ceil(config.BERTH_AGENT_CONCURRENCY / 2),
  }
  return Object.fromEntries(
    Object.entries(slots).filter(([name]) => chosen.length === 0 || chosen.includes(name)),
  )
}
