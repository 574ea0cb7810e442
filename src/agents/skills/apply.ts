/** A change of an agent's skills, and the operation that brings it into the agent. */
import type { PoolClient } from 'pg'
import { transaction } from '../../db/pool.ts'
import { ApiError, messages, unavailable } from '../../errors.ts'
import type { Prefer } from '../../http/prefer.ts'
import type { Agent } from '../agent.ts'
import { insertOperation, isRepeat } from '../operate.ts'
import type { AgentServices } from '../services.ts'
import { lockAgent } from './attach.ts'
import { SKILL_CONFLICT } from './live.ts'
import type { Resolution } from './schema.ts'

interface Applied<T> {
  /** What `change` resolved to. */
  changed: T
  /** 202 where the wait ended before the operation did. */
  status: 200 | 202
  headers: Record<string, string>
  message: string
  operation?: { id: string; state: 'queued' | 'running' }
}

interface Change<T> {
  /** In a transaction, with the agent's row locked; where it throws, nothing is changed. */
  make(client: PoolClient): Promise<T>
  /** What a repeat under the same Idempotency-Key answers, which changes nothing. */
  current(client: PoolClient): Promise<T>
  /** By the name of a skill, for folders that the agent has changed. */
  resolutions?: ((changed: T) => Record<string, Resolution>) | undefined
  /** What tells a repeat from another request under the same key. */
  request: string
}

interface Options {
  idempotencyKey: string | undefined
  prefer: Prefer
  signal: AbortSignal
}

/**
 * Changes which skills an agent has, and waits until the agent has it so. An agent that is away is not waited for: it
 * gets its skills when it starts.
 * @throws ApiError 409 where a folder of the agent's stands in the way: the change stays, and an update resolves it;
 *   422 where the key named another request.
 */
export async function applyChange<T>(
  { pool, operations }: Pick<AgentServices, 'pool' | 'operations'>,
  agent: Agent,
  change: Change<T>,
  options: Options,
): Promise<Applied<T>> {
  const { idempotencyKey } = options
  const { changed, operationId } = await transaction(pool, async (client) => {
    await lockAgent(client, agent)
    const isKnown = await isRepeat(client, agent, idempotencyKey)
    const changed = isKnown ? await change.current(client) : await change.make(client)
    const resolutions = change.resolutions?.(changed)
    const operationId = await insertOperation(client, agent, 'agent.skills', {
      ...(resolutions && { input: { resolutions } }),
      idempotencyKey,
      request: `agent.skills ${agent.agentId} ${change.request}`,
    })
    return { changed, operationId }
  })
  const { state, finished, headers } = await operations.wait(agent.workspaceId, operationId, options)
  if (state === 'queued' || state === 'running') {
    const message = 'It is written to the agent; see the operation'
    return { changed, status: 202, headers, message, operation: { id: operationId, state } }
  }
  if (state === 'failed') throw await failure(pool, operationId, headers)
  const isThere = finished?.result?.applied === true
  const message = isThere ? 'The agent has it' : 'The agent has it when it starts'
  return { changed, status: 200, headers, message }
}

async function failure(
  pool: AgentServices['pool'],
  operationId: string,
  headers: Record<string, string>,
): Promise<ApiError> {
  const { rows } = await pool.query<{ error: string | null; code: string | null }>(
    'SELECT error, error_code AS code FROM operation WHERE id = $1',
    [operationId],
  )
  const { error, code } = rows[0] ?? { error: null, code: null }
  if (code === SKILL_CONFLICT) return new ApiError(409, code, error ?? 'Skill version conflict', { headers })
  if (code === 'outage') return unavailable(messages.ipfsUnreachable)
  return new ApiError(500, code ?? 'internal', error ?? 'The skills could not be written', { headers })
}
