/** The handlers of agents' operations: each acquires its agent first. */
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import type { Pool } from '../../src/db/pool.ts'
import { AGENT_COLUMNS } from '../../src/db/statements/agents.ts'
import type { AgentOperation } from '../../src/operations/catalog.ts'
import {
  type Ended,
  type Handler,
  OperationCanceled,
  type OperationFailed,
  RetryLater,
  type Run,
} from '../../src/operations/handler.ts'
import { LeaseLost } from '../../src/operations/lease.ts'
import { type AgentWorkerServices, type Definition, defineHandler } from '../services.ts'

/** Maximum length of an agent's `statusReason`. */
export const MAX_REASON = 1000

interface AgentHandler<K extends AgentOperation> extends Pick<Handler<K>, 'failed'> {
  handle(run: Run<K>, agent: Agent): Promise<Ended>
  /** Explains an error of agentd, the sandbox or the storage; undefined for an unexpected one. */
  explain?(error: unknown, run: Run<K>, agent: Agent): OperationFailed | undefined
}

/**
 * Declares the handler of a kind that works on a live agent, which it acquires first.
 * @param state see {@link acquireAgent}.
 */
export const agentHandler = <K extends AgentOperation>(
  kind: K,
  state: 'starting' | 'as it is',
  create: (services: AgentWorkerServices) => AgentHandler<K>,
): Definition<K> =>
  defineHandler(kind, (given) => {
    const services = given as AgentWorkerServices
    const { handle, explain, failed } = create(services)
    return {
      async handle(run) {
        const agent = await acquireAgent(services.pool, run, state)
        if (!agent) throw new OperationCanceled('the agent is gone')
        try {
          return await handle(run, agent)
        } catch (error) {
          if (error instanceof AgentdError && error.code === 'stale_epoch')
            throw new LeaseLost(`agent ${agent.agentId}, epoch ${agent.epoch}`)
          const explained = explain?.(error, run, agent)
          // Shows why an agent has to wait.
          if (state === 'starting' && explained instanceof RetryLater)
            await services.prisma.agent.updateMany({
              where: { id: agent.id, epoch: agent.epoch, deletedAt: null },
              data: { statusReason: explained.message.slice(0, MAX_REASON) },
            })
          throw explained ?? error
        }
      },
      ...(failed && { failed }),
    }
  })

/**
 * Acquires the agent of a run: raises its epoch, so that agentd and the row refuse previous holders.
 * @param state `starting` if the run starts the agent, `deleted` if it removes an agent that is gone for readers.
 * @returns undefined if the agent does not exist (any longer), or this run has lost its lease.
 */
export async function acquireAgent(
  pool: Pool,
  { operation }: Run,
  state: 'starting' | 'deleted' | 'as it is',
): Promise<Agent | undefined> {
  const { rows } = await pool.query<Agent>(
    `UPDATE agent SET epoch = agent.epoch + 1,
       status = CASE WHEN $4 = 'starting' THEN 'starting' ELSE status END,
       -- A trigger writes agent.starting if this is another operation than the last one.
       start_operation_id = CASE WHEN $4 = 'starting' THEN $2 ELSE start_operation_id END,
       -- Why it has to be started stays until it runs.
       status_reason = CASE WHEN $4 = 'starting' AND status <> 'starting' THEN NULL ELSE status_reason END
     WHERE id = $1 AND purged_at IS NULL AND (deleted_at IS NOT NULL) = ($4 = 'deleted')
       AND EXISTS (SELECT FROM operation WHERE id = $2 AND epoch = $3 AND state = 'running')
     RETURNING ${AGENT_COLUMNS}`,
    [operation.targetId, operation.id, operation.epoch, state],
  )
  return rows[0]
}
