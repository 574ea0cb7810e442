/** Changes an agent's skills, and starts the operation that brings the change into the agent. */

import { inTransaction, type PrismaClient, type Transaction } from '../../db/prisma.ts'
import { messages, unavailable } from '../../errors.ts'
import type { ResultOf } from '../../operations/catalog.ts'
import { enqueue, isRepeat } from '../../operations/enqueue.ts'
import type { Unsuccessful } from '../../operations/operation-route.ts'
import { type Agent, lockAgent } from '../agent.ts'
import { SKILL_CONFLICT } from './skill-folders.ts'
import type { Resolution } from './skill-schema.ts'

interface Change<T, Body> {
  /** Runs with the agent's row locked; if it throws, nothing is changed. */
  make(tx: Transaction): Promise<T>
  /** The response to a repeat under the same Idempotency-Key, which changes nothing. */
  current(tx: Transaction): Promise<T>
  /** The names of the skills that the request changes. The response reports only their problems. */
  names(changed: T): string[]
  /** The response, in addition to `message`. */
  body(changed: T): Body
  /** For the folders of these skills, if the agent has changed them. */
  resolution?: Resolution | undefined
  /** Messages for clients: done, done at the agent's start, and waiting for the agent. */
  messages: Record<'done' | 'atStart' | 'waiting', string>
  /** Distinguishes a repeat from another request under the same key. */
  request: string
}

/**
 * Changes an agent's skills, and begins to bring the change into the agent. An unavailable agent gets its skills when it
 * starts.
 * @throws ApiError 422 if the key was used for another request.
 */
export async function applyChange<T, Body>(
  prisma: PrismaClient,
  agent: Agent,
  change: Change<T, Body>,
  idempotencyKey: string | undefined,
) {
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
  const said = (message: string) => ({ message, ...change.body(changed) })
  const { done, atStart, waiting } = change.messages
  return {
    operationId,
    pending: said(waiting),
    done: ({ applied }: ResultOf<'agent.skills'>) => said(applied ? done : atStart),
    failed(ended: Unsuccessful) {
      if (ended.state === 'canceled') return said(atStart)
      if (ended.error_code === 'outage') throw unavailable(messages.ipfsUnreachable)
      return undefined
    },
  }
}

/**
 * 409 if a folder of the agent blocks a skill that the request changes: the change stays, and an update resolves it.
 */
export const failure = { statuses: { [SKILL_CONFLICT]: 409 } }
