import type { ScriptsRequest } from '../../agentd/protocol.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import type { AgentWorkerServices } from '../services.ts'

const LAUNCH_MS = 15_000

/** Runs an agent's `build`, then `start`; the agent's status shows how they end. @throws AgentdError */
export async function launchBuild(
  { agentd }: Pick<AgentWorkerServices, 'agentd'>,
  agent: Agent,
  signal: AbortSignal,
): Promise<void> {
  await agentd.json(agent, {
    method: 'POST',
    path: '/v1/scripts',
    json: { run: 'build' } satisfies ScriptsRequest,
    epoch: agent.epoch,
    timeoutMs: LAUNCH_MS,
    signal,
  })
}

/** Launches the scripts if a gateway runs, because they use its environment. @returns false if none runs. */
export async function launchBuildIfUp(...request: Parameters<typeof launchBuild>): Promise<boolean> {
  try {
    await launchBuild(...request)
    return true
  } catch (error) {
    if (error instanceof AgentdError && error.code === 'not_ready') return false
    throw error
  }
}
