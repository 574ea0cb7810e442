/** Starting an operation on an agent, and the bounded wait for its end (design, "The way of a request"). */
import { uuidv7 } from 'uuidv7'
import { z } from 'zod'
import { crashPoint } from '../crash-point.ts'
import type { Pool, Queryable } from '../db/pool.ts'
import { messages, notFound } from '../errors.ts'
import type { Prefer } from '../http/prefer.ts'
import {
  catalog,
  isFinished,
  OPERATION_STATES,
  type OperationKind,
  type OperationState,
} from '../operations/catalog.ts'
import { operationHeaders } from '../operations/headers.ts'
import { findRepeated, fingerprintOf } from '../operations/idempotency.ts'
import type { Versioned } from '../operations/store.ts'
import type { Waiter } from '../operations/wait.ts'
import type { Agent } from './agent.ts'

export type AgentOperation = Extract<OperationKind, `agent.${string}`>

/** What a request that starts an operation on an agent waits for, where `Prefer` says nothing. */
const WAIT_MS = 25_000

/** In the body of a 202: the wait ended before the operation did. */
export const startedOperation = z.object({ id: z.string(), state: z.enum(OPERATION_STATES) })

export interface Started {
  operationId: string
  /** Of the operation when the wait ended. */
  state: OperationState
  /** The finished operation; undefined when the wait ended first. */
  finished: (Versioned & { result: Record<string, unknown> | null }) | undefined
  /** `Operation-Id` and `Location`. */
  headers: Record<string, string>
}

export class AgentOperations {
  readonly #pool: Pool
  readonly #waiter: Waiter
  readonly #wakeDispatcher: () => void

  constructor(options: { pool: Pool; waiter: Waiter; wakeDispatcher: () => void }) {
    this.#pool = options.pool
    this.#waiter = options.waiter
    this.#wakeDispatcher = options.wakeDispatcher
  }

  /**
   * Starts an operation on a live agent and waits for its end, as long as `Prefer` says.
   * @param options.request as for {@link insertOperation}.
   * @throws ApiError 404 when the agent was deleted meanwhile, 422 when `idempotencyKey` named another request.
   */
  async run(
    agent: Agent,
    kind: AgentOperation,
    options: {
      input?: Record<string, unknown>
      idempotencyKey?: string | undefined
      request?: string
      prefer: Prefer
      signal: AbortSignal
    },
  ): Promise<Started> {
    const operationId = await insertOperation(this.#pool, agent, kind, options)
    crashPoint('after-commit')
    return this.wait(agent.workspaceId, operationId, options)
  }

  /** Hands a committed operation over and waits for its end, at most `waitMs` where `Prefer` says nothing. */
  async wait(
    workspaceId: string,
    operationId: string,
    { prefer, signal, waitMs = WAIT_MS }: { prefer: Prefer; signal: AbortSignal; waitMs?: number },
  ): Promise<Started> {
    this.#wakeDispatcher()
    const headers = operationHeaders(operationId)
    const ms = prefer.waitMs ?? waitMs
    const latest = ms > 0 ? await this.#waiter.finished(workspaceId, operationId, ms, signal) : undefined
    const state = latest?.state ?? 'queued'
    if (!latest || !isFinished(state)) return { operationId, state, finished: undefined, headers }
    const { rows } = await this.#pool.query('SELECT result FROM operation WHERE id = $1', [operationId])
    return { operationId, state, finished: { ...latest, result: rows[0]?.result ?? null }, headers }
  }
}

/**
 * Writes the row of an operation on an agent. One that waits in line with the same kind and input, and was not
 * begun, is taken instead: it will do the same.
 * @param options.request what tells a repeat under the same Idempotency-Key from another request; not given, it is
 *   the kind, the agent and the input.
 * @returns its id.
 * @throws ApiError 404 when the agent is not there (any more), 422 when `idempotencyKey` named another request.
 */
export async function insertOperation(
  db: Queryable,
  agent: Pick<Agent, 'id' | 'agentId' | 'workspaceId'>,
  kind: AgentOperation,
  options: { input?: Record<string, unknown>; idempotencyKey?: string | undefined; request?: string } = {},
): Promise<string> {
  const input = options.input ? JSON.stringify(options.input) : null
  const fingerprint = fingerprintOf(options.request ?? `${kind} ${agent.agentId} ${input}`)
  const { rows } = await db.query(
    `WITH same AS (
       SELECT id FROM operation
       WHERE exclusive_key = $6 AND state = 'queued' AND attempts = 0 AND kind = $3 AND $8::text IS NULL
         AND input IS NOT DISTINCT FROM $7::jsonb
         -- Nothing of another kind is behind it: it would undo what that one does.
         AND NOT EXISTS (SELECT FROM operation later WHERE later.exclusive_key = $6 AND later.id > operation.id
                         AND later.state IN ('queued', 'running'))
       LIMIT 1
       -- Locked, no worker begins it before the caller's commit, and so without what the caller changes.
       FOR UPDATE SKIP LOCKED
     ), inserted AS (
       INSERT INTO operation (id, workspace_id, kind, queue, target_id, agent_id, exclusive_key, input,
         idempotency_key, fingerprint)
       SELECT $1, $2, $3, $4, agent.id, agent.agent_id, $6, $7, $8, $9
       FROM agent WHERE agent.id = $5 AND agent.deleted_at IS NULL AND NOT EXISTS (SELECT FROM same)
       ON CONFLICT (workspace_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
       RETURNING id)
     SELECT id FROM same UNION ALL SELECT id FROM inserted`,
    [
      uuidv7(),
      agent.workspaceId,
      kind,
      catalog[kind].queue,
      agent.id,
      `agent:${agent.id}`,
      input,
      options.idempotencyKey ?? null,
      fingerprint,
    ],
  )
  if (rows[0]) return rows[0].id
  const { workspaceId } = agent
  const key = options.idempotencyKey
  const repeated = key && (await findRepeated(db, { workspaceId, key, fingerprint }))
  if (!repeated) throw notFound(messages.noAgent)
  return repeated.operationId
}

/**
 * Whether a request under this key was accepted before: then what it changed must not be changed again. To be asked
 * while the agent's row is locked, so that a repeat sees what the first one has written.
 */
export async function isRepeat(
  db: Queryable,
  { workspaceId }: Pick<Agent, 'workspaceId'>,
  idempotencyKey: string | undefined,
): Promise<boolean> {
  const { rowCount } = await db.query(
    'SELECT FROM operation WHERE workspace_id = $1 AND idempotency_key = $2',
    [workspaceId, idempotencyKey ?? null],
  )
  return rowCount !== 0
}
