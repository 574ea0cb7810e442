/** Starting an agent's gateway through its agentd, and waiting until it is ready. */
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentStatus, StartRequest } from '../../agentd/protocol.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { agentChannels } from '../../src/agents/channels/runtime.ts'
import { readStatus } from '../../src/agents/live.ts'
import { agentEnvironment } from '../../src/agents/secrets/environment.ts'
import { crashPoint } from '../../src/crash-point.ts'
import { defaultConfig, modelEnvironment, ownedConfig } from '../../src/engine/config.ts'
import type { Run } from '../../src/operations/runner.ts'
import { BringUpFailed } from './failure.ts'
import { type Reached, runningAddress } from './reach.ts'
import type { AgentWorkerServices } from './services.ts'

/** One long poll of agentd's status, and how much later than agentd we give up. */
const POLL_MS = 10_000
const MARGIN_MS = 15_000
const PAUSE_MS = 500
/** Between two polls that are answered: agentd may have news all the time, or say so. */
const NEWS_MS = 100
/** The engine's exit code for a state or a configuration that it will not start with. */
const REFUSED = 78

export interface GatewayUp {
  status: AgentStatus
  /** The version of each secret that the gateway was given. */
  applied: Record<string, number>
}

/**
 * Starts the gateway with the agent's secrets, channels and settings as they are now; one that was started with the
 * same by this operation is left alone.
 * @throws BringUpFailed when it ends, or is not ready in time.
 */
export async function startGateway(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: Reached,
  { version, scripts }: { version: string; scripts: 'build' | 'start' },
): Promise<GatewayUp> {
  const { pool, sealer, config, agentd, containers } = services
  await run.report('secrets')
  const [environment, channels] = await Promise.all([
    agentEnvironment(pool, sealer, agent, config),
    agentChannels(pool, sealer, { ...agent, engineVersion: version }),
  ])
  const request: Omit<StartRequest, 'run'> = {
    env: { ...environment.env, ...modelEnvironment(config) },
    gatewayToken: agent.gatewayToken,
    ownedConfig: ownedConfig({
      config,
      runtime: containers.runtime,
      agent,
      channels: { ...channels.config },
    }),
    defaultConfig: defaultConfig({ config }),
    plugins: channels.plugins,
    readyMs: config.BERTH_AGENT_READY_SECONDS,
    scripts,
  }
  crashPoint('agent-before-gateway')
  const name = `${run.operation.id}.${digest(request)}`
  await run.report('gateway')
  await agentd.json(target, {
    method: 'PUT',
    path: '/v1/gateway',
    json: { ...request, run: name },
    epoch: agent.epoch,
    signal: run.signal,
  })
  crashPoint('agent-after-gateway')
  const status = await waitUntilReady(services, run, target, name)
  return { status, applied: environment.applied }
}

/** What was started is named after all that it was started with. The token among it makes it no help in guessing. */
const digest = (request: Omit<StartRequest, 'run'>): string =>
  createHash('sha256').update(JSON.stringify(request)).digest('hex').slice(0, 16)

async function waitUntilReady(
  services: AgentWorkerServices,
  { signal }: Run,
  target: Reached,
  name: string,
): Promise<AgentStatus> {
  const { agentd, config } = services
  const deadline = performance.now() + config.BERTH_AGENT_READY_SECONDS + MARGIN_MS
  let seen = 0
  while (performance.now() < deadline) {
    const status = await readStatus(agentd, target, {
      after: { version: seen, waitMs: POLL_MS },
      timeoutMs: POLL_MS + 5000,
      signal,
    }).catch((error) => restAfter(services, target, error, signal))
    if (!status) continue
    seen = status.version
    const { state, run, reason, exitCode, lastLines } = status.gateway
    // agentd was started anew, and knows nothing of it.
    if (run !== name) throw new AgentdError('unreachable', 'agentd was started anew')
    if (state === 'ready') return status
    if (state !== 'failed') {
      await delay(NEWS_MS, undefined, { signal })
      continue
    }
    const code = exitCode === REFUSED ? 'engine_refused' : 'gateway_failed'
    throw new BringUpFailed(code, reason ?? `the gateway ended with exit code ${exitCode}`, { lastLines })
  }
  throw new BringUpFailed('gateway_failed', 'the gateway was not ready in time')
}

/** agentd did not answer: the next poll may do better, unless it has ended. @throws SandboxEnded, BringUpFailed */
async function restAfter(
  services: AgentWorkerServices,
  { agentId, address }: Reached,
  error: unknown,
  signal: AbortSignal,
): Promise<undefined> {
  signal.throwIfAborted()
  // What agentd itself refuses, it refuses again.
  if (!(error instanceof AgentdError) || error.status !== 0) throw error
  if ((await runningAddress(services, agentId, signal)) !== address) throw error
  await delay(PAUSE_MS, undefined, { signal })
}
