/** The components of each role, and which of them are essential. */
import { checkAgentProxy } from '../agent-proxy/checks.ts'
import { loadAgentProxy } from '../agent-proxy/tunnel-client.ts'
import type { Config } from '../config.ts'
import type { Pool } from '../db/pool.ts'
import {
  checkAgentDisks,
  checkDatabase,
  checkDispatcher,
  checkNode,
  checkQueue,
  checkRoom,
  checkRuntime,
  checkSchema,
  runtimePart,
} from '../health/checks.ts'
import { observeWorkers } from '../health/workers.ts'
import { checkDisk, type Disks, reserveSetting } from '../lib/disk.ts'
import { type Check, Readiness } from '../lib/readiness.ts'
import type { Logger } from '../log.ts'
import type { Dispatcher } from '../operations/dispatcher.ts'
import type { QueueConcurrency, WorkerStatus } from '../operations/worker-status.ts'
import type { SandboxRuntime } from '../sandboxes/port.ts'
import type { Storages } from '../storage/open.ts'
import type { IpfsStatus } from '../storage/port.ts'

interface Shared {
  config: Config
  disks: Disks
  pool: Pool
  /** Pings Redis; undefined if the queue is in PostgreSQL. */
  pingQueue: (() => Promise<unknown>) | undefined
  log: Logger
}

const common = ({ pool, pingQueue }: Shared): Record<string, Check> => ({
  database: { find: () => checkDatabase(pool), essential: true },
  queue: { find: () => checkQueue(pingQueue), essential: true },
  schema: { find: () => checkSchema(pool), essential: true },
})

export function webReadiness(
  services: Shared & { workers: WorkerStatus; dispatcher: Dispatcher; storages: Storages },
): Readiness {
  const { config, disks, workers, dispatcher, storages, log } = services
  const checks: Record<string, Check> = {
    ...common(services),
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
  return new Readiness({ checks, observe, log })
}

export interface WorkerParts extends Shared {
  concurrency: QueueConcurrency
  /** The nodes as last seen by its heartbeat. */
  nodes: { ipfs?: IpfsStatus; ipfsPrivate?: IpfsStatus }
  /** Milliseconds since the worker wrote its row. */
  heartbeatAgeMs(): number
  /** The runtime, if the worker serves agents. */
  runtime: SandboxRuntime | undefined
}

/** A worker that serves only agents cannot work without their runtime; any other worker still has pins. */
export function workerReadiness(services: WorkerParts): Readiness {
  const { config, disks, concurrency, nodes, heartbeatAgeMs, runtime, log } = services
  const checks: Record<string, Check> = {
    ...common(services),
    heartbeat: { find: () => checkHeartbeat(heartbeatAgeMs()), essential: true },
    disk: { find: () => checkDisk(disks) },
    ipfs: { find: () => checkNode(nodes.ipfs) },
    ipfs_private: { find: () => checkNode(nodes.ipfsPrivate) },
  }
  if (runtime) {
    const essential = Object.keys(concurrency).every((queue) => queue === 'agents' || queue === 'workspaces')
    checks.host = { find: () => checkAgentProxy(loadAgentProxy(config)) }
    checks[runtimePart(runtime.driver)] = {
      find: () => checkRuntime(runtime, config.DOCKER_HOST),
      essential,
    }
    const { BERTH_DISKS_SOCKET: socket } = config
    if (socket && runtime.driver === 'docker')
      checks.agent_disks = { find: () => checkAgentDisks(socket, reserveSetting(config)) }
  }
  return new Readiness({ checks, log })
}

/** A worker that could not write its row for this long is useless: its claims fail as well. */
const HEARTBEAT_LIMIT_MS = 30_000

function checkHeartbeat(ageMs: number) {
  if (ageMs <= HEARTBEAT_LIMIT_MS) return { status: 'ok' } as const
  return { status: 'down', detail: `not written for ${Math.round(ageMs / 1000)} s` } as const
}
