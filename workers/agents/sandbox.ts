/** Starts an agent's sandbox: prepares its engine, its volume and its container, until agentd responds in it. */
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError, type AgentdTarget } from '../../src/agents/agentd-client.ts'
import { readStatus } from '../../src/agents/agentd-status.ts'
import { crashPoint } from '../../src/lib/crash-point.ts'
import type { Run } from '../../src/operations/handler.ts'
import type { SandboxSpec } from '../../src/sandboxes/port.ts'
import type { AgentWorkerServices } from '../services.ts'
import { diskBytesOf } from './disk.ts'
import { describeEnd, isSilent, SandboxEnded, StartFailed } from './failure.ts'

/** Minimum interval between shown lines of a build. */
const LINE_MS = 1000
/** agentd responds within a second of its start; a busy machine takes longer. */
const REACH_MS = 30_000
const TRY_MS = 3000
const PAUSE_MS = 100

export type AgentdEndpoint = AgentdTarget & { address: string }

/**
 * Makes the engine version available: builds its image, or installs it, unless that is done. Fails if no agent can run
 * it.
 */
export async function prepareEngine(
  { runtime }: AgentWorkerServices,
  run: Run,
  version: string,
): Promise<void> {
  await run.report('image')
  const { signal } = run
  let shown = 0
  await runtime.prepareEngine(version, {
    signal,
    onLine(line) {
      if (performance.now() - shown < LINE_MS) return
      shown = performance.now()
      // An unreported line is harmless, and a lost lease shows elsewhere.
      run.report('image', { version, line: line.slice(0, 500) }).catch(() => {})
    },
  })
}

/**
 * Creates the agent's volume and its container if they do not exist, starts the container, and waits for its agentd.
 * `rebuild` recreates the container, whatever is wrong with the existing one.
 * @throws AgentdError if agentd cannot be reached; SandboxEnded or StartFailed if the container ends.
 */
export async function startSandbox(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  { version, rebuild }: { version: string; rebuild: boolean },
): Promise<AgentdEndpoint> {
  const { runtime } = services
  const { signal } = run
  await run.report('volume')
  const diskBytes = await diskBytesOf(services, agent)
  await runtime.ensureVolume(agent.agentId, { diskBytes, signal })
  await run.report('container')
  if (rebuild) {
    // Without the agent proxy the new container could not be reached, and the running one would have ended for nothing.
    if (!(await services.agentd.isProxyThere()))
      throw new AgentdError('unreachable', 'the agent proxy does not answer')
    await runtime.stop(agent.agentId, { signal })
    await runtime.remove(agent.agentId, { volume: false, signal })
  }
  crashPoint('agent-before-create')
  await runtime.create(sandboxSpec(services, agent, { version, diskBytes }), { signal })
  crashPoint('agent-after-create')
  await runtime.start(agent.agentId, { signal })
  crashPoint('agent-after-start')
  return ensureAgentd(services, agent.agentId, signal)
}

function sandboxSpec(
  { agentd, config }: AgentWorkerServices,
  agent: Agent,
  { version, diskBytes }: { version: string; diskBytes: number },
): SandboxSpec {
  const { agentId, engine } = agent
  return {
    agentId,
    engine,
    engineVersion: version,
    hostname: `${agentId}-0`,
    env: {},
    agentd: {
      agentId,
      tokenHash: createHash('sha256').update(agentd.token(agentId)).digest('hex'),
      diskBytes,
    },
    limits: {
      memoryBytes: config.BERTH_AGENT_LIMITS.memoryMb * 1_048_576,
      cpus: config.BERTH_AGENT_LIMITS.cpus,
      pids: config.BERTH_AGENT_LIMITS.pids,
    },
  }
}

/**
 * Waits until agentd of a started sandbox responds. A running sandbox that does not respond is restarted once: an agent
 * may stop or starve its own agentd.
 * @throws AgentdError if it cannot be reached after that either; SandboxEnded or StartFailed if it ends.
 */
async function ensureAgentd(
  services: AgentWorkerServices,
  agentId: string,
  signal: AbortSignal,
): Promise<AgentdEndpoint> {
  const { runtime } = services
  try {
    return await waitForAgentd(services, agentId, signal)
  } catch (error) {
    if (!(await isSilent(error, services.agentd))) throw error
    await runtime.stop(agentId, { graceMs: 1000, signal })
    await runtime.start(agentId, { signal })
    return await waitForAgentd(services, agentId, signal)
  }
}

async function waitForAgentd(
  services: AgentWorkerServices,
  agentId: string,
  signal: AbortSignal,
): Promise<AgentdEndpoint> {
  const deadline = performance.now() + REACH_MS
  for (;;) {
    // The address is read each time, because it may change with each start.
    const address = await runningAddress(services, agentId, signal)
    try {
      await readStatus(services.agentd, { agentId, address }, { timeoutMs: TRY_MS, signal })
      return { agentId, address }
    } catch (error) {
      // The agent proxy is away, possibly for long. Waiting in the operation queue is better.
      if (!(await isSilent(error, services.agentd))) throw error
      if (performance.now() > deadline) throw error
      await delay(PAUSE_MS, undefined, { signal })
    }
  }
}

/**
 * The address of a sandbox's agentd.
 * @throws SandboxEnded if the sandbox does not run, or nobody can reach it; StartFailed if it ran out of memory.
 */
export async function runningAddress(
  { runtime, config }: AgentWorkerServices,
  agentId: string,
  signal: AbortSignal,
): Promise<string> {
  const sandbox = await runtime.inspect(agentId, { signal })
  if (sandbox?.state === 'running' && sandbox.address && !sandbox.fault) return sandbox.address
  if (sandbox?.oomKilled) throw new StartFailed('out_of_memory', describeEnd(sandbox, config))
  throw new SandboxEnded(sandbox, config)
}
