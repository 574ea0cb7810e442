import type { Agent } from '../../src/agents/agent.ts'
import { readLive } from '../../src/agents/lifecycle/read.ts'
import { messages } from '../../src/errors.ts'
import type { Handler, Run } from '../../src/operations/runner.ts'
import { bringUp } from './bring-up.ts'
import { BringUpFailed } from './failure.ts'
import { endTry, endUp, failed, giveUp } from './outcome.ts'
import type { AgentWorkerServices } from './services.ts'
import { takeAgent } from './take.ts'

/** Starts an agent again, on another version of its engine and with `build` where the operation says so. */
export function agentRestart(services: AgentWorkerServices): Handler {
  return {
    async handle(run) {
      const agent = await takeAgent(services.pool, run, 'starting')
      if (!agent) return run.end(services.pool, { state: 'canceled' })
      const version = String(run.operation.input?.version ?? agent.engineVersion)
      const live = await readLive(services.agentd, agent, run.signal)
      // An agentd that was started anew knows nothing of scripts.
      const isNew = live?.gateway.state === 'stopped'
      const isToBuild = run.operation.input?.scripts === 'build'
      const scripts = isToBuild ? 'build' : scriptsToRun(live && !isNew ? live.scripts : agent.scripts)
      try {
        const previousProcessId = live?.gateway.pid ?? null
        const up = await bringUp(services, run, agent, { version, scripts })
        const { problems } = up
        const result = { previousProcessId, previousVersion: agent.engineVersion, version, problems }
        const ending = { state: 'succeeded', result } as const
        await endUp(services, run, agent, { version, up, ending })
      } catch (error) {
        const isRefused = error instanceof BringUpFailed && version !== agent.engineVersion
        const last = isRefused ? await goBack(services, run, agent, { scripts, refusal: error }) : error
        if (last) await endTry(services, run, agent, { error: last, message: messages.restartFailed })
      }
    },
    giveUp: giveUp(services, messages.restartFailed),
  }
}

/**
 * Brings the agent up on the version that it had, after another one did not come up.
 * @returns what went wrong there; undefined when the run has ended with the agent up.
 */
async function goBack(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  { scripts, refusal }: { scripts: 'build' | 'start'; refusal: BringUpFailed },
): Promise<unknown> {
  const version = agent.engineVersion
  run.log.info({ err: refusal, version }, 'going back to the version before')
  const isVersionsFault = refusal.code === 'engine_refused' || refusal.code === 'no_image'
  const ending = isVersionsFault
    ? failed(messages.invalidVersion, refusal, 'invalid_version')
    : failed(messages.restartFailed, refusal)
  try {
    const up = await bringUp(services, run, agent, { version, scripts })
    await endUp(services, run, agent, { version, up, ending })
    return undefined
  } catch (error) {
    return error
  }
}

/** An agent whose `build` has never ended is built; else its `start` runs, as after every boot. */
function scriptsToRun({ build }: { build?: { state?: string } }): 'build' | 'start' {
  const hasEnded = ['success', 'failed', 'not_configured'].includes(build?.state ?? '')
  return hasEnded ? 'start' : 'build'
}
