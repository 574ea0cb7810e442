/** Provisions, restarts and removes agents, and runs their scripts again. */
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { fetchLiveStatus } from '../../src/agents/agentd-status.ts'
import { messages, PartError } from '../../src/errors.ts'
import { crashPoint } from '../../src/lib/crash-point.ts'
import { OperationFailed, RetryLater, type Run } from '../../src/operations/handler.ts'
import { explainStart, failedBy, StartFailed } from '../agents/failure.ts'
import { acquireAgent, agentHandler } from '../agents/handler.ts'
import { launchBuild } from '../agents/launch.ts'
import { type StartedAgent, startAgent, writeNotRunning, writeRunning } from '../agents/start.ts'
import { type AgentWorkerServices, defineHandler } from '../services.ts'

/** Allows a busy machine some seconds to respond, because the caller of a restart is told the previous process. */
const LIVE_MS = 5000

/** Starts a new agent for the first time. */
export const provision = agentHandler('agent.provision', 'starting', (services) => ({
  async handle(run, agent) {
    const version = agent.engineVersion
    const started = await startAgent(services, run, agent, { version, scripts: 'build' })
    return run.succeed(async (tx) => {
      await writeRunning(tx, agent, { version, started })
      return { problems: started.problems }
    })
  },
  explain: explainStart,
  failed: writeNotRunning,
}))

/** Restarts an agent, on another version of its engine and with `build` if the operation says so. */
export const restart = agentHandler('agent.restart', 'starting', (services) => ({
  async handle(run, agent) {
    const previousVersion = agent.engineVersion
    const { version = previousVersion } = run.input
    const live = await fetchLiveStatus(services.agentd, agent, run.signal, LIVE_MS)
    // An agentd whose gateway has never been ready knows nothing of scripts, and reports none.
    const knows = live !== undefined && live.scripts.build.state !== 'not_configured'
    const scripts = run.input.scripts ?? scriptsToRun(knows ? live.scripts : agent.scripts)
    const previousProcessId = live?.gateway.pid ?? null
    // An owner's restart recreates the container, whatever is wrong with the agent. A repair keeps what it can, and so
    // does a further attempt of this operation after one that reached the gateway.
    const rebuild = run.input.rebuild === true && !live?.gateway.run?.startsWith(run.operation.id)
    const started = await startAgent(services, run, agent, { version, scripts, rebuild }).catch((error) => {
      if (!(error instanceof StartFailed) || version === previousVersion) throw error
      return revertVersion(services, run, agent, { scripts, refusal: error })
    })
    return run.succeed(async (tx) => {
      await writeRunning(tx, agent, { version, started })
      return { previousProcessId, previousVersion, version, problems: started.problems }
    })
  },
  explain: explainStart,
  failed: (tx, run, failure) =>
    failure instanceof VersionReverted
      ? writeRunning(tx, failure.agent, failure)
      : writeNotRunning(tx, run, failure),
}))

/** The restart has failed, and the agent runs on its previous version. */
class VersionReverted extends OperationFailed {
  readonly agent: Agent
  readonly version: string
  readonly started: StartedAgent

  constructor(refusal: StartFailed, agent: Agent, started: StartedAgent) {
    const { code, message, lastLines, result } = refusal
    const isVersionsFault = code === 'engine_refused' || code === 'no_image'
    super(isVersionsFault ? 'invalid_version' : code, message, {
      ...(isVersionsFault && { publicMessage: messages.invalidVersion }),
      lastLines,
      result,
      cause: refusal,
    })
    this.agent = agent
    this.version = agent.engineVersion
    this.started = started
  }
}

/**
 * Starts the agent on its previous version, after it did not start on another one.
 * @throws VersionReverted once it runs, or the error of that start.
 */
async function revertVersion(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  { scripts, refusal }: { scripts: 'build' | 'start'; refusal: StartFailed },
): Promise<never> {
  const version = agent.engineVersion
  run.log.info({ err: refusal, version }, 'going back to the previous version')
  throw new VersionReverted(refusal, agent, await startAgent(services, run, agent, { version, scripts }))
}

/** Runs `build` if it has never ended; otherwise only `start`, as after every boot. */
function scriptsToRun({ build }: { build?: { state?: string } }): 'build' | 'start' {
  const hasEnded = ['success', 'failed', 'not_configured'].includes(build?.state ?? '')
  return hasEnded ? 'start' : 'build'
}

/** Runs an agent's scripts again. Ends when they are launched: the agent's status shows how they end. */
export const scripts = agentHandler('agent.scripts', 'as it is', ({ agentd }) => ({
  async handle(run, agent) {
    await run.report('scripts')
    await launchBuild({ agentd }, agent, run.signal)
    return run.succeed({})
  },
  /** The operation fails if the agent is unavailable: the caller can ask again, and the reconciler restarts agents. */
  explain: (error) =>
    error instanceof AgentdError ? failedBy(error, { code: 'script_launch_failed' }) : undefined,
}))

/** Removes the container, the network and the volume of a deleted agent. Never gives up. */
export const remove = defineHandler('agent.delete', ({ pool, runtime }) => ({
  async handle(run) {
    const agent = await acquireAgent(pool, run, 'deleted')
    // The agent has already been removed.
    if (!agent) return run.succeed({})
    await run.report('container')
    await runtime.remove(agent.agentId, { volume: true, signal: run.signal }).catch((error) => {
      const isAway = error instanceof PartError && error.isAway
      throw isAway ? new RetryLater('outage', error.message, { cause: error }) : error
    })
    crashPoint('agent-after-remove')
    return run.succeed(async (tx) => {
      await tx.agent.updateMany({ where: { id: agent.id }, data: { purgedAt: new Date(), address: null } })
      return {}
    })
  },
}))
