import type { ScriptsRequest } from '../../agentd/protocol.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { ignoring } from '../../src/errors.ts'
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
  const launched = launchBuild(...request).then(() => true)
  return (await launched.catch(ignoring('not_ready'))) ?? false
}
