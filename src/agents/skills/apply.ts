/** Changes an agent's skills, and starts the operation that brings the change into the agent. */

import { inTransaction, type Transaction } from '../../db/prisma.ts'
import { ApiError, messages, unavailable } from '../../errors.ts'
import type { OperationState } from '../../operations/catalog.ts'
import { enqueue, isRepeat } from '../../operations/enqueue.ts'
import type { Asked, Finished } from '../../operations/operations.ts'
import { type Agent, lockAgent } from '../agent.ts'
import type { AgentServices } from '../agent-route.ts'
import { SKILL_CONFLICT } from './skill-folders.ts'
import type { Resolution } from './skill-schema.ts'

interface Applied<T> {
  /** The result of `make`. */
  changed: T
  /** 202 if the wait ended before the operation did. */
  status: 200 | 202
  headers: Record<string, string>
  message: string
  operation?: { id: string; state: OperationState }
}

interface Change<T> {
  /** Runs with the agent's row locked; if it throws, nothing is changed. */
  make(tx: Transaction): Promise<T>
  /** The response to a repeat under the same Idempotency-Key, which changes nothing. */
  current(tx: Transaction): Promise<T>
  /** The names of the skills that the request changes. The response reports only their problems. */
  names(changed: T): string[]
  /** For the folders of these skills, if the agent has changed them. */
  resolution?: Resolution | undefined
  /** Messages for clients: done, done at the agent's start, and waiting for the agent. */
  messages: Record<'done' | 'atStart' | 'waiting', string>
  /** Distinguishes a repeat from another request under the same key. */
  request: string
}

type Options = Asked & { idempotencyKey: string | undefined }

/**
 * Changes an agent's skills, and waits until the agent has them. Does not wait for an unavailable agent, which gets its
 * skills when it starts.
 * @throws ApiError 409 if a folder of the agent blocks a skill that the request changes: the change stays, and an
 *   update resolves it; 422 if the key was used for another request.
 */
export async function applyChange<T>(
  { prisma, operations }: Pick<AgentServices, 'prisma' | 'operations'>,
  agent: Agent,
  change: Change<T>,
  options: Options,
): Promise<Applied<T>> {
  const { idempotencyKey } = options
  const { changed, operationId } = await inTransaction(prisma, async (tx) => {
    await lockAgent(tx, agent)
    const isKnown = await isRepeat(tx, agent, idempotencyKey)
    const changed = isKnown ? await change.current(tx) : await change.make(tx)
    const names = change.names(changed)
    const { resolution } = change
    const resolutions = resolution && Object.fromEntries(names.map((name) => [name, resolution]))
    const operationId = await enqueue(tx, 'agent.skills', agent, {
      input: { names, ...(resolutions && { resolutions }) },
      idempotencyKey,
      request: `agent.skills ${agent.agentId} ${change.request}`,
    })
    return { changed, operationId }
  })
  const { state, finished, headers } = await operations.started('agent.skills', operationId, options)
  if (!finished) {
    const message = change.messages.waiting
    return { changed, status: 202, headers, message, operation: { id: operationId, state } }
  }
  if (finished.state === 'failed') throw failure(finished, headers)
  const isThere = finished.state === 'succeeded' && finished.result.applied
  const message = isThere ? change.messages.done : change.messages.atStart
  return { changed, status: 200, headers, message }
}

function failure(
  { error, error_code: code }: Extract<Finished<'agent.skills'>, { state: 'failed' }>,
  headers: Record<string, string>,
): ApiError {
  if (code === SKILL_CONFLICT) return new ApiError(409, code, error, { headers })
  if (code === 'outage') return unavailable(messages.ipfsUnreachable)
  return new ApiError(500, code ?? 'internal', error, { headers })
}
