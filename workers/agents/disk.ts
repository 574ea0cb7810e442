/** How much an agent may keep on its disk. */
import type { Agent } from '../../src/agents/agent.ts'
import type { AgentWorkerServices } from '../services.ts'

/** In bytes: the plan's limit, or else BERTH_AGENT_LIMITS. */
export async function diskBytesOf(
  { prisma, config }: Pick<AgentWorkerServices, 'prisma' | 'config'>,
  { workspaceId }: Pick<Agent, 'workspaceId'>,
): Promise<number> {
  const workspace = await prisma.workspace.findUnique({
    where: { id: workspaceId },
    select: { plan: { select: { agentDiskMb: true } } },
  })
  // A spare has no workspace.
  return (workspace?.plan.agentDiskMb ?? config.BERTH_AGENT_LIMITS.diskMb) * 1_048_576
}

/**
 * Runs `work` with twice the agent's hard limit, because changing the state of an agent with a full disk first needs to
 * write. If the worker dies during the work, the repeat of the operation or the next start resets the limit.
 */
export async function withMoreDisk<T>(
  services: AgentWorkerServices,
  agent: Agent,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const { runtime } = services
  const diskBytes = await diskBytesOf(services, agent)
  await runtime.ensureVolume(agent.agentId, { diskBytes: 2 * diskBytes, signal })
  try {
    return await work()
  } finally {
    await runtime.ensureVolume(agent.agentId, { diskBytes, signal })
  }
}
