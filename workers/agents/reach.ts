/** From a started sandbox to an agentd that answers, and back to what a sandbox that ended died of. */
import { setTimeout as delay } from 'node:timers/promises'
import { AgentdError, type AgentdTarget } from '../../src/agents/agentd-client.ts'
import { readStatus } from '../../src/agents/live.ts'
import { BringUpFailed, isSilent, SandboxEnded } from './failure.ts'
import type { AgentWorkerServices } from './services.ts'

/** agentd answers within a second of its start; a busy machine takes longer. */
const REACH_MS = 30_000
const TRY_MS = 3000
const PAUSE_MS = 100

export type Reached = AgentdTarget & { address: string }

/**
 * Waits until agentd of a started sandbox answers. One that runs and does not answer is ended and started once:
 * an agent may stop or starve its own agentd.
 * @throws AgentdError when it cannot be reached after that either; SandboxEnded or BringUpFailed when it ends.
 */
export async function reachAgentd(
  services: AgentWorkerServices,
  agentId: string,
  signal: AbortSignal,
): Promise<Reached> {
  const { containers } = services
  try {
    return await waitForAgentd(services, agentId, signal)
  } catch (error) {
    if (!isSilent(error)) throw error
    await containers.stop(agentId, { graceMs: 1000, signal })
    await containers.start(agentId, { signal })
    return await waitForAgentd(services, agentId, signal)
  }
}

async function waitForAgentd(
  services: AgentWorkerServices,
  agentId: string,
  signal: AbortSignal,
): Promise<Reached> {
  const deadline = performance.now() + REACH_MS
  for (;;) {
    // Read anew each time: its address may be another one after each start.
    const address = await runningAddress(services, agentId, signal)
    try {
      if (!address) throw new AgentdError('unreachable', 'the sandbox has no address yet')
      await readStatus(services.agentd, { agentId, address }, { timeoutMs: TRY_MS, signal })
      return { agentId, address }
    } catch (error) {
      // The way to agents is away: that may take long, and waits better in the line of operations.
      if (address && !isSilent(error)) throw error
      if (performance.now() > deadline) throw error
      await delay(PAUSE_MS, undefined, { signal })
    }
  }
}

/**
 * Where agentd of a sandbox answers; null when that is not known yet.
 * @throws SandboxEnded when it does not run; BringUpFailed when it ran out of memory.
 */
export async function runningAddress(
  { containers }: AgentWorkerServices,
  agentId: string,
  signal: AbortSignal,
): Promise<string | null> {
  const sandbox = await containers.inspect(agentId, { signal })
  if (sandbox?.state === 'running') return sandbox.address
  if (sandbox?.oomKilled) throw new BringUpFailed('out_of_memory', 'the agent ran out of memory')
  throw new SandboxEnded(sandbox)
}
