/** How a run on an agent ends: the agent's row and the operation's in one transaction, the agent's first. */
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { crashPoint } from '../../src/crash-point.ts'
import { type Queryable, transaction } from '../../src/db/pool.ts'
import { type Ending, LeaseLost } from '../../src/operations/lease.ts'
import type { Run } from '../../src/operations/runner.ts'
import type { Up } from './bring-up.ts'
import { BringUpFailed, failureOf, isOutage, SandboxEnded } from './failure.ts'
import type { AgentWorkerServices } from './services.ts'

/** A part that is away is waited for this long; it may be back later, and then the reconciler goes on. */
const OUTAGE_MS = 600_000
/** A sandbox may end because Docker is restarted; one that ends at each try does so by itself. */
const MAX_ENDS = 5
const MAX_RETRY_MS = 10_000

/** Writes that the agent is up, with `ending`. */
export async function endUp(
  { pool }: AgentWorkerServices,
  run: Run,
  agent: Agent,
  { version, up, ending }: { version: string; up: Up; ending: Ending },
): Promise<void> {
  crashPoint('agent-before-final-write')
  await transaction(pool, async (client) => {
    const { rowCount } = await client.query(
      `UPDATE agent SET status = 'running', status_reason = NULL, address = $3, applied = $4, scripts = $5,
         engine_version = $6,
         updated_at = CASE WHEN engine_version = $6 THEN updated_at ELSE clock_timestamp() END
       WHERE id = $1 AND epoch = $2 AND deleted_at IS NULL`,
      [
        agent.id,
        agent.epoch,
        up.address,
        JSON.stringify(up.applied),
        JSON.stringify(up.status.scripts),
        version,
      ],
    )
    // Deleted meanwhile: the operation that removes it comes next.
    await run.end(client, rowCount ? ending : { state: 'canceled' })
  })
}

/**
 * Ends a try that met an error: for a later try where a part is away, else in failure with the agent not running.
 * @param message the contract's string for this operation.
 * @throws the error, where nobody foresaw it: it counts as a fault.
 */
export async function endTry(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  { error, message }: { error: unknown; message: string },
): Promise<void> {
  run.signal.throwIfAborted()
  if (error instanceof AgentdError && error.code === 'stale_epoch')
    throw new LeaseLost(`agent ${agent.agentId}, epoch ${agent.epoch}`)
  const { ageMs, attempts } = run.operation
  const hasEnded = error instanceof SandboxEnded
  if (!hasEnded && !isOutage(error)) {
    const failure = failureOf(error)
    if (!failure) throw error
    return failAgent(services, run, message, failure)
  }
  const { message: cause } = error as Error
  if (hasEnded ? attempts < MAX_ENDS : ageMs < OUTAGE_MS) {
    const delayMs = Math.min(500 * 2 ** Math.min(attempts - 1, 10), MAX_RETRY_MS)
    run.log.info({ err: error, delayMs }, 'what an agent needs is away')
    return run.end(services.pool, { state: 'queued', delayMs, code: 'outage', cause })
  }
  const code = hasEnded ? 'sandbox_ended' : 'outage'
  await failAgent(services, run, message, new BringUpFailed(code, cause, { cause: error }))
}

/** Ends a run in failure, and writes that its agent does not run, and why. */
async function failAgent(
  { pool }: AgentWorkerServices,
  run: Run,
  message: string,
  failure: BringUpFailed,
): Promise<void> {
  run.log.warn({ err: failure, lastLines: failure.lastLines }, message)
  await transaction(pool, async (client) => {
    await markNotRunning(client, run.operation.targetId, failure.message)
    await run.end(client, failed(message, failure))
  })
}

/** The ending for a failure: the contract's string for the client, the cause with the last lines for the operator. */
export function failed(error: string, failure: BringUpFailed, code: string = failure.code): Ending {
  const cause = [failure.message, ...failure.lastLines].join('\n')
  return { state: 'failed', error, code, cause, result: { detail: failure.message } }
}

/** Ends a run after its last fault. */
export function giveUp({ pool }: Pick<AgentWorkerServices, 'pool'>, message: string) {
  return (run: Run, ending: Ending): Promise<void> =>
    transaction(pool, async (client) => {
      await markNotRunning(client, run.operation.targetId, 'internal error')
      await run.end(client, ending.state === 'failed' ? { ...ending, error: message } : ending)
    })
}

const MAX_REASON = 1000

/** Writes that a live agent does not run. The caller holds the operation: nobody else writes its status. */
async function markNotRunning(db: Queryable, id: string, reason: string): Promise<void> {
  await db.query(
    `UPDATE agent SET status = 'not_running', status_reason = $2 WHERE id = $1 AND deleted_at IS NULL`,
    [id, reason.slice(0, MAX_REASON)],
  )
}
