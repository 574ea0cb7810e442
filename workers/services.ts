/** The services that handlers are built from, and how a file of `workers/handlers` declares them. */
import type { Destination } from '../src/agent-proxy/destination.ts'
import type { AgentdClient } from '../src/agents/agentd-client.ts'
import type { Base } from '../src/core.ts'
import type { Encryption } from '../src/lib/encryption.ts'
import type { KindsOf, OperationKind, QueueName } from '../src/operations/catalog.ts'
import type { Handler } from '../src/operations/handler.ts'
import type { SandboxRuntime } from '../src/sandboxes/port.ts'
import type { Boots } from './agents/boots.ts'

/** Queues whose handlers need the agents' runtime. */
export const AGENT_QUEUES = ['agents', 'workspaces'] as const satisfies QueueName[]

export interface StorageWorkerServices extends Pick<Base, 'pool' | 'prisma' | 'storages'> {
  stallMs: number
  /** Wait before the second attempt; it grows fourfold up to an hour. */
  retryMs: number
  /** Content that is not found within this time after the first attempt becomes `expired`. */
  expiryMs: number
  allowPrivateHostNodes: boolean
  webhooks: {
    encryption: Encryption
    /** Targets that may have private addresses. */
    allowed: readonly Destination[]
  }
}

/** The services that handlers of agents are built from. */
export interface AgentWorkerServices
  extends Pick<Base, 'config' | 'pool' | 'prisma' | 'storages' | 'encryption'> {
  runtime: SandboxRuntime
  agentd: AgentdClient
  /** The places for booting engines in this worker. */
  boots: Boots
}

export interface WorkerServices extends StorageWorkerServices {
  /** Undefined in a worker without agent queues. */
  agents: AgentWorkerServices | undefined
}

export type ServicesOf<K extends OperationKind> =
  K extends KindsOf<{ queue: (typeof AGENT_QUEUES)[number] }> ? AgentWorkerServices : StorageWorkerServices

/** A handler that has not received its services yet. */
export interface Definition<K extends OperationKind = OperationKind> {
  kind: K
  create(services: ServicesOf<K>): Handler<K>
}

/** Declares the handler of a kind; a file of `workers/handlers` exports it under any name. */
export const defineHandler = <K extends OperationKind>(
  kind: K,
  create: (services: ServicesOf<K>) => Handler<K>,
): Definition<K> => ({ kind, create })
