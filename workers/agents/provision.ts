import { messages } from '../../src/errors.ts'
import type { Handler } from '../../src/operations/runner.ts'
import { bringUp } from './bring-up.ts'
import { endTry, endUp, giveUp } from './outcome.ts'
import type { AgentWorkerServices } from './services.ts'
import { takeAgent } from './take.ts'

/** Brings a new agent up for the first time. */
export function agentProvision(services: AgentWorkerServices): Handler {
  return {
    async handle(run) {
      const agent = await takeAgent(services.pool, run, 'starting')
      if (!agent) return run.end(services.pool, { state: 'canceled' })
      const version = agent.engineVersion
      try {
        const up = await bringUp(services, run, agent, { version, scripts: 'build' })
        const { problems } = up
        const ending = { state: 'succeeded', ...(problems && { result: { problems } }) } as const
        await endUp(services, run, agent, { version, up, ending })
      } catch (error) {
        await endTry(services, run, agent, { error, message: messages.gatewayFailed })
      }
    },
    giveUp: giveUp(services, messages.gatewayFailed),
  }
}
