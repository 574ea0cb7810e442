/** Routes of agents: their services, their declaration, and the common responses of routes that start an operation. */
import { z } from 'zod'
import type { Config } from '../config.ts'
import type { Notifications } from '../db/notifications.ts'
import type { Pool } from '../db/pool.ts'
import type { PrismaClient } from '../db/prisma.ts'
import { contractError, messages, notFound } from '../errors.ts'
import type { Declared, Route, Schema } from '../http/route.ts'
import type { Bounds } from '../lib/bounds.ts'
import type { Encryption } from '../lib/encryption.ts'
import { OPERATION_STATES, type OperationKind } from '../operations/catalog.ts'
import type { Finished, Operations, Started } from '../operations/operations.ts'
import type { WorkerStatus } from '../operations/worker-status.ts'
import type { Storages } from '../storage/open.ts'
import type { AgentAccess } from './access.ts'
import type { Agent } from './agent.ts'
import type { AgentdClient } from './agentd-client.ts'
import type { AgentConnections } from './connections.ts'

/** The services that routes of agents are built from. */
export interface AgentServices {
  pool: Pool
  prisma: PrismaClient
  config: Config
  access: AgentAccess
  bounds: Bounds
  agentd: AgentdClient
  connections: AgentConnections
  operations: Operations
  workers: WorkerStatus
  encryption: Encryption
  notifications: Notifications
  storages: Storages
}

/**
 * Declares a route of one agent, with `:agentId` in its path. Calls its handler only for a live agent that the caller
 * may reach: 404 if it does not exist, 401 if it belongs to another workspace (contract 5.3).
 */
export function agentRoute<
  P extends Schema | undefined = undefined,
  Q extends Schema | undefined = undefined,
  B extends Schema | undefined = undefined,
>(declared: Declared<P, Q, B, { agent: Agent }>): Route {
  return declared as unknown as Route
}

/** Part of a 202 response: the wait ended before the operation did. */
export const startedOperation = z.object({ id: z.string(), state: z.enum(OPERATION_STATES) })

export const pending = ({ operationId: id, state }: Pick<Started, 'operationId' | 'state'>) => ({
  operation: { id, state },
})

type Succeeded<K extends OperationKind> = Extract<Finished<K>, { state: 'succeeded' }>

/**
 * The operation, if it has succeeded; undefined if it has not ended.
 * @param options.statuses statuses other than 500 for failures, by the operation's code; `message` replaces the
 *   operation's own.
 * @throws ApiError for a failed operation: the contract's message, and the reason in `Error-Detail`. 404 if it was
 *   cancelled, because the agent was deleted.
 */
export function requireSuccess<K extends OperationKind>(
  { finished, headers }: Started<K>,
  { statuses = {}, message }: { statuses?: Record<string, number>; message?: string } = {},
): Succeeded<K> | undefined {
  if (finished?.state === 'canceled') throw notFound(messages.noAgent)
  if (finished?.state !== 'failed') return finished as Succeeded<K> | undefined
  const { error_code: code, error, result } = finished
  const detail = typeof result.detail === 'string' ? result.detail : undefined
  const status = statuses[code ?? ''] ?? 500
  throw contractError(status, code ?? 'internal', message ?? error, detail, {
    headers: { ...headers, ...(status === 503 && { 'retry-after': '5' }) },
  })
}
