import { AgentdError } from '../../src/agents/agentd-client.ts'
import { messages } from '../../src/errors.ts'
import { LeaseLost } from '../../src/operations/lease.ts'
import type { Handler } from '../../src/operations/runner.ts'
import { BringUpFailed } from './failure.ts'
import { launchBuild } from './launch.ts'
import { failed } from './outcome.ts'
import type { AgentWorkerServices } from './services.ts'
import { takeAgent } from './take.ts'

/** Has an agent's scripts run again. It ends when they are launched: how they end is in the agent's status. */
export function agentScripts({ pool, agentd }: AgentWorkerServices): Handler {
  return {
    async handle(run) {
      const agent = await takeAgent(pool, run, 'as it is')
      if (!agent) return run.end(pool, { state: 'canceled' })
      try {
        await run.report('scripts')
        await launchBuild({ agentd }, agent, run.signal)
      } catch (error) {
        run.signal.throwIfAborted()
        if (!(error instanceof AgentdError)) throw error
        if (error.code === 'stale_epoch') throw new LeaseLost(`agent ${agent.agentId}, epoch ${agent.epoch}`)
        // Whoever asked is waiting, and may ask again: an agent that is away is started again by others.
        const failure = new BringUpFailed('gateway_failed', error.message, { cause: error })
        return run.end(pool, failed(messages.scriptLaunchFailed, failure, 'script_launch_failed'))
      }
      await run.end(pool, { state: 'succeeded' })
    },
  }
}
