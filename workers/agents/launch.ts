import type { ScriptsRequest } from '../../agentd/protocol.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import type { AgentWorkerServices } from '../services.ts'

const LAUNCH_MS = 15_000

/** Has an agent's `build` run, then `start`; how they end is in the agent's status. @throws AgentdError */
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

/** Launches the scripts where a gateway runs, whose environment they have. @returns false where none does. */
export async function launchBuildIfUp(...request: Parameters<typeof launchBuild>): Promise<boolean> {
  try {
    await launchBuild(...request)
    return true
  } catch (error) {
    if (error instanceof AgentdError && error.code === 'not_ready') return false
    throw error
  }
}
