/** The handlers of operations on agents. */
import type { AgentOperation } from '../../src/agents/operate.ts'
import type { Handler } from '../../src/operations/runner.ts'
import { agentDelete } from './delete.ts'
import { agentProvision } from './provision.ts'
import { agentPush } from './push.ts'
import { agentReset } from './reset.ts'
import { agentRestart } from './restart.ts'
import { agentScripts } from './scripts.ts'
import type { AgentWorkerServices } from './services.ts'
import { agentSkills } from './skills.ts'
import { agentSync } from './sync.ts'

/** @param services undefined in a worker that serves no queue of agents: it never gets one of these. */
export function agentHandlers(services: AgentWorkerServices | undefined): Record<AgentOperation, Handler> {
  if (!services)
    return {
      'agent.provision': elsewhere,
      'agent.restart': elsewhere,
      'agent.scripts': elsewhere,
      'agent.sync': elsewhere,
      'agent.reset': elsewhere,
      'agent.push': elsewhere,
      'agent.skills': elsewhere,
      'agent.delete': elsewhere,
    }
  return {
    'agent.provision': agentProvision(services),
    'agent.restart': agentRestart(services),
    'agent.scripts': agentScripts(services),
    'agent.sync': agentSync(services),
    'agent.reset': agentReset(services),
    'agent.push': agentPush(services),
    'agent.skills': agentSkills(services),
    'agent.delete': agentDelete(services),
  }
}

const elsewhere: Handler = {
  async handle() {
    throw new Error('this worker serves no queue of agents')
  },
}
