import type { Response } from 'express'
import { z } from 'zod'
import type { Pool } from '../db/pool.ts'
import { ApiError, notFound } from '../errors.ts'
import { requireScope } from '../http/admission.ts'
import { eventStream } from '../http/docs/example.ts'
import { openEventStream } from '../http/event-stream.ts'
import { like, timestamp, uuid, withExample } from '../http/fields.ts'
import { pageOf, paging, readPage, toPage } from '../http/pages.ts'
import type { Principal } from '../http/principal.ts'
import { type Route, routesOf } from '../http/route.ts'
import { order, pathId } from '../http/shapes.ts'
import { AGENT_ID } from '../lib/agent-id.ts'
import { cancel } from './cancel.ts'
import { catalog, isFinished, OPERATION_KINDS, OPERATION_STATES, readableKinds, scopeOf } from './catalog.ts'
import { listOperations, watchKindIndexes } from './operation-list.ts'
import { findOperation, type Versioned, view } from './operation-store.ts'
import type { Operations } from './operations.ts'

const operationView = z.object({
  id: uuid,
  kind: z.enum(OPERATION_KINDS),
  target: uuid.describe('The id of its subject: a file or an agent.'),
  target_name: z
    .string()
    .nullable()
    .describe(
      'The name of that file or agent; for a file without a name, its CID. Null if it no longer exists.',
    ),
  state: withExample(z.enum(OPERATION_STATES), 'running'),
  step: like('retrieving').nullable().describe('Its current step, or its last step if it has ended.'),
  progress: z.record(z.string(), z.unknown()).nullable(),
  attempts: like(1),
  error: z.string().nullable(),
  error_code: z.string().nullable().describe('Why it or its last attempt failed.'),
  created_at: timestamp,
  started_at: timestamp.nullable(),
  next_attempt_at: z.string().nullable().describe('When a queued operation is due.'),
  finished_at: z.string().nullable(),
})
const one = z.object({ data: operationView })

export interface OperationRouteServices {
  pool: Pool
  operations: Operations
  /** Withdraws what a cancelled operation was supposed to create. */
  withdraw(operation: Versioned, workspaceId: string): Promise<void>
}

const route = routesOf('Operations')
const params = z.object({ id: pathId })
const MAX_WAIT_S = 300

export function operationRoutes({ pool, operations, withdraw }: OperationRouteServices): Route[] {
  const hasKindIndexes = watchKindIndexes(pool)
  /**
   * @throws ApiError 404, also for an agent's own token if the operation is about another agent; 403 without the scope
   *   for its subject.
   */
  const find = async (principal: Principal, id: string, access: 'read' | 'write') => {
    const { workspaceId, agent } = principal
    const operation = await findOperation(pool, workspaceId, id)
    const scope = operation && scopeOf(operation.kind, access)
    if (!scope || (agent && !agent.isWide && operation.target !== agent.agentId))
      throw notFound('There is no such operation')
    requireScope(principal, [scope])
    return operation
  }
  return [
    route({
      method: 'get',
      path: '/v0/operations',
      id: 'listOperations',
      summary: 'List operations',
      description:
        'The operations that the key may read: on files with `org:files:read`, on agents with `org:agents:read`.',
      scope: ['org:files:read', 'org:agents:read'],
      callers: ['workspace'],
      query: z.object({
        state: z.enum(OPERATION_STATES).optional(),
        kind: z.enum(OPERATION_KINDS).optional(),
        target: z
          .union([z.string().regex(AGENT_ID), pathId])
          .optional()
          .describe('Only operations on this file or agent.'),
        order: order.default('DESC'),
        ...paging(10, 250),
      }),
      success: { description: 'A page of operations.', body: pageOf('operations', operationView) },
      async handle({ principal, query }) {
        const readable = readableKinds(principal.scopes)
        const isIndexed = await hasKindIndexes()
        const page = await readPage(query, (cursor) =>
          listOperations(pool, principal.workspaceId, { ...query, readable, ...cursor }, isIndexed),
        )
        return { body: toPage('operations', page) }
      },
    }),
    route({
      method: 'get',
      path: '/v0/operations/:id',
      id: 'getOperation',
      callers: ['gateway', 'platform', 'workspace'],
      summary: 'Get an operation, or wait for its end',
      scope: ['org:files:read', 'org:agents:read'],
      params,
      query: z.object({
        wait: z
          .string()
          .regex(/^\d{1,6}$/, 'must be a whole number of seconds')
          .transform((seconds) => Math.min(Number(seconds), MAX_WAIT_S))
          .optional()
          .describe(
            `Waits until the operation has ended, at most this many seconds (at most ${MAX_WAIT_S}).`,
          ),
      }),
      success: { description: 'The operation.', body: one },
      errors: [404],
      async handle({ principal, params, query, signal }) {
        const operation = await find(principal, params.id, 'read')
        if (!query.wait || isFinished(operation.state)) return { body: { data: view(operation) } }
        const latest = await operations.latest(principal, params.id, query.wait * 1000, signal)
        return { body: { data: view(latest ?? operation) } }
      },
    }),
    route({
      method: 'get',
      path: '/v0/operations/:id/events',
      id: 'streamOperation',
      callers: ['gateway', 'platform', 'workspace'],
      bound: 'eventStreams',
      summary: 'Stream an operation as server-sent events',
      description:
        'Sends an `operation` event now and after each change; the stream ends with the operation. The event id is a ' +
        'version: a client that reconnects with `Last-Event-ID` receives only newer ones.',
      scope: ['org:files:read', 'org:agents:read'],
      params,
      success: {
        description: 'Events, each with an operation as its data.',
        ...eventStream(['operation', operationView]),
      },
      errors: [404],
      async handle({ principal, params, req, res, signal }) {
        await find(principal, params.id, 'read')
        await streamEvents(
          operations.changes(principal.workspaceId, params.id, signal),
          req.get('last-event-id'),
          res,
        )
        return undefined
      },
    }),
    route({
      method: 'delete',
      path: '/v0/operations/:id',
      id: 'cancelOperation',
      summary: 'Cancel an operation',
      description:
        'What it was supposed to create is withdrawn. A running operation ends within about a second. Requires the scope ' +
        'to change its subject.',
      scope: ['org:files:write', 'org:agents:write'],
      params,
      success: { description: 'The operation, which is cancelled or about to be.', body: one },
      errors: [404, 409],
      async handle({ principal, params }) {
        const operation = await find(principal, params.id, 'write')
        refuseWhenFinished(operation)
        if (operation.state === 'canceled') return { body: { data: view(operation) } }
        if (!catalog[operation.kind].cancelable) {
          throw new ApiError(409, 'not_cancelable', `A ${operation.kind} operation cannot be cancelled`)
        }
        const { workspaceId } = principal
        await withdraw(operation, workspaceId)
        await cancel(pool, { workspaceId, id: params.id })
        // The operation's worker may have been faster.
        const latest = await find(principal, params.id, 'write')
        refuseWhenFinished(latest)
        return { body: { data: view(latest) } }
      },
    }),
  ]
}

/** @throws ApiError 409 if the operation ended in another way than by cancellation. */
function refuseWhenFinished({ state }: Versioned): void {
  if (isFinished(state) && state !== 'canceled') {
    throw new ApiError(409, 'finished', `The operation has ${state} already`)
  }
}

/**
 * Writes each change as a server-sent event until the operation ends or the client disconnects. For a slow client,
 * intermediate versions are skipped, not queued.
 */
async function streamEvents(
  changes: AsyncGenerator<Versioned>,
  lastEventId: string | undefined,
  res: Response,
): Promise<void> {
  const events = openEventStream(res)
  try {
    for await (const operation of changes) {
      if (lastEventId !== undefined && operation.version <= Number(lastEventId)) continue
      await events.send('operation', view(operation), operation.version)
    }
  } finally {
    events.end()
  }
}
