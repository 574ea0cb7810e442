import { loadAgentProxy } from '../../src/agent-proxy/tunnel-client.ts'
import { AgentdClient } from '../../src/agents/agentd-client.ts'
import type { Base } from '../../src/core.ts'
import { ConfigError, SandboxError } from '../../src/errors.ts'
import { openRuntime } from '../../src/sandboxes/open.ts'
import { readOwner } from '../../src/sandboxes/owner.ts'
import type { SandboxRuntime } from '../../src/sandboxes/port.ts'
import type { AgentWorkerServices } from '../services.ts'
import { Boots } from './boots.ts'

/** The shutdown of agents together with their worker. */
export interface Leaving {
  /** The number of agents that have not ended yet. */
  agents: number
  /** How long each agent may take to end. */
  graceMs: number
}

/** The services of a worker that runs agents: their sandboxes, and the agent proxy. */
export async function openAgents(base: Base, leaving: Leaving): Promise<AgentWorkerServices> {
  const { config, pool, log, parts } = base
  const runtime = await openRuntime(config, log, await readOwner(pool)).catch((error) => {
    // The message tells the operator what to do.
    throw error instanceof SandboxError ? new ConfigError(error.message) : error
  })
  parts.add('containers', () => runtime.close())
  const obstacle = await runtime.findObstacle?.().catch((error) => {
    log.warn(
      { err: error },
      'cannot check whether agents are isolated here; each agent start checks it again',
    )
    return null
  })
  if (obstacle) throw new ConfigError(obstacle)
  if (config.BERTH_STOP_AGENTS) parts.add('agents', () => stopAgents(runtime, leaving))
  const agentd = new AgentdClient(loadAgentProxy(config))
  parts.add('tunnels to agents', () => agentd.close())
  return { ...base, runtime, agentd, boots: new Boots(config.BERTH_CONCURRENCY.agents) }
}

/** Agents' rows stay unchanged: the next worker finds the agents ended, and starts them again. */
async function stopAgents(runtime: SandboxRuntime, leaving: Leaving): Promise<void> {
  const sandboxes = (await runtime.list()).sandboxes.filter(({ state }) => state === 'running')
  leaving.agents = sandboxes.length
  await Promise.all(
    sandboxes.map(async ({ agentId }) => {
      await runtime.stop(agentId, { graceMs: leaving.graceMs })
      leaving.agents--
    }),
  )
}
