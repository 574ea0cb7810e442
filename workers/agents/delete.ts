import { crashPoint } from '../../src/crash-point.ts'
import { transaction } from '../../src/db/pool.ts'
import type { Handler } from '../../src/operations/runner.ts'
import { isOutage } from './failure.ts'
import type { AgentWorkerServices } from './services.ts'
import { takeAgent } from './take.ts'

const MAX_RETRY_MS = 30_000

/** Removes the container, the network and the volume of a deleted agent. Never given up. */
export function agentDelete({ pool, containers }: AgentWorkerServices): Handler {
  return {
    async handle(run) {
      const agent = await takeAgent(pool, run, 'deleted')
      // It was removed already.
      if (!agent) return run.end(pool, { state: 'succeeded' })
      try {
        await run.report('container')
        await containers.remove(agent.agentId, { volume: true, signal: run.signal })
        crashPoint('agent-after-remove')
      } catch (error) {
        run.signal.throwIfAborted()
        if (!isOutage(error)) throw error
        const delayMs = Math.min(500 * 2 ** Math.min(run.operation.attempts - 1, 10), MAX_RETRY_MS)
        const cause = (error as Error).message
        return run.end(pool, { state: 'queued', delayMs, code: 'outage', cause })
      }
      await transaction(pool, async (client) => {
        await client.query('UPDATE agent SET removed_at = now(), address = NULL WHERE id = $1', [agent.id])
        await run.end(client, { state: 'succeeded' })
      })
    },
  }
}
