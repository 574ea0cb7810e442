/** A change of an agent's skills, and the operation that brings it into the agent. */
import type { PoolClient } from 'pg'
import { transaction } from '../../db/pool.ts'
import { ApiError, messages, unavailable } from '../../errors.ts'
import type { Prefer } from '../../http/prefer.ts'
import type { Agent } from '../agent.ts'
import { insertOperation } from '../operate.ts'
import type { AgentServices } from '../services.ts'
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

/**
 * Changes which skills an agent has, and waits until the agent has it so. An agent that is away is not waited for: it
 * gets its skills when it starts.
 * @param change in a transaction; what it throws, nothing is changed by.
 * @param options.resolutions by the name of a skill, for folders that the agent has changed.
 * @throws ApiError 409 where a folder of the agent's stands in the way: the change stays, and an update resolves it.
 */
export async function applyChange<T>(
  { pool, operations }: Pick<AgentServices, 'pool' | 'operations'>,
  agent: Agent,
  change: (client: PoolClient) => Promise<T>,
  options: {
    resolutions?: ((changed: T) => Record<string, Resolution>) | undefined
    prefer: Prefer
    signal: AbortSignal
  },
): Promise<Applied<T>> {
  const { changed, operationId } = await transaction(pool, async (client) => {
    const changed = await change(client)
    const resolutions = options.resolutions?.(changed)
    const input = resolutions && { input: { resolutions } }
    return { changed, operationId: await insertOperation(client, agent, 'agent.skills', input) }
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
