/** The handlers of operations on agents. */
import type { AgentOperation } from '../../src/agents/operate.ts'
import type { Handler } from '../../src/operations/runner.ts'

export function agentHandlers(): Record<AgentOperation, Handler> {
  const missing: Handler = {
    async handle() {
      throw new Error('not there yet')
    },
  }
  return {
    'agent.provision': missing,
    'agent.restart': missing,
    'agent.scripts': missing,
    'agent.delete': missing,
  }
}
