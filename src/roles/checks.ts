/** The components of a role, and which of them are essential. */
import { checkAgentProxy } from '../agent-proxy/checks.ts'
import { loadAgentProxy } from '../agent-proxy/tunnel-client.ts'
import type { Base } from '../core.ts'
import {
  checkAgentDisks,
  checkDatabase,
  checkNode,
  checkPool,
  checkQueue,
  checkRuntime,
  checkSchema,
  runtimePart,
} from '../health/checks.ts'
import { checkDisk, reserveSetting } from '../lib/disk.ts'
import { type Check, Readiness } from '../lib/readiness.ts'
import type { QueueConcurrency } from '../operations/worker-status.ts'
import type { SandboxRuntime } from '../sandboxes/port.ts'
import type { IpfsStatus } from '../storage/port.ts'

/** The checks of every role with a database. */
export const commonChecks = ({ pool, redis }: Pick<Base, 'pool' | 'redis'>): Record<string, Check> => ({
  database: { find: () => checkDatabase(pool), essential: true },
  queue: { find: () => checkQueue(redis), essential: true },
  schema: { find: () => checkSchema(pool), essential: true },
})

export interface WorkerParts extends Pick<Base, 'config' | 'disks' | 'pool' | 'redis' | 'log'> {
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
    ...commonChecks(services),
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
    const { BERTH_DISKS_SOCKET: socket, BERTH_POOL: size } = config
    if (size > 0) checks.pool = { find: () => checkPool(services.pool, size) }
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
