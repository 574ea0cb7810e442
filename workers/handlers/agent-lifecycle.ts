/** An agent is provisioned, restarted, has its scripts run again, and is removed. */
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { fetchLiveStatus } from '../../src/agents/lifecycle/read.ts'
import { messages } from '../../src/errors.ts'
import { crashPoint } from '../../src/lib/crash-point.ts'
import { OperationFailed, RetryLater, type Run } from '../../src/operations/handler.ts'
import { explainStart, isOutage, StartFailed } from '../agents/failure.ts'
import { acquireAgent, agentHandler } from '../agents/handler.ts'
import { launchBuild } from '../agents/launch.ts'
import { type StartedAgent, startAgent, writeNotRunning, writeRunning } from '../agents/start.ts'
import { type AgentWorkerServices, defineHandler } from '../services.ts'

/** A busy machine may take seconds to answer, and who restarts an agent is told which process it had. */
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

/** Starts an agent again, on another version of its engine and with `build` where the operation says so. */
export const restart = agentHandler('agent.restart', 'starting', (services) => ({
  async handle(run, agent) {
    const previousVersion = agent.engineVersion
    const { version = previousVersion } = run.input
    const live = await fetchLiveStatus(services.agentd, agent, run.signal, LIVE_MS)
    // An agentd whose gateway has not been ready yet knows nothing of scripts: as if there were none.
    const knows = live !== undefined && live.scripts.build.state !== 'not_configured'
    const scripts = run.input.scripts ?? scriptsToRun(knows ? live.scripts : agent.scripts)
    const previousProcessId = live?.gateway.pid ?? null
    // An owner's restart fixes an agent, whatever is wrong. A repair keeps what it can; so does an attempt of this operation
    // after an attempt that came as far as the gateway.
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

/** The restart has failed, and the agent runs on the version that it had. */
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
 * Starts the agent on the version that it had, after it did not start on another one.
 * @throws VersionReverted once it runs, or what went wrong there.
 */
async function revertVersion(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  { scripts, refusal }: { scripts: 'build' | 'start'; refusal: StartFailed },
): Promise<never> {
  const version = agent.engineVersion
  run.log.info({ err: refusal, version }, 'going back to the version before')
  throw new VersionReverted(refusal, agent, await startAgent(services, run, agent, { version, scripts }))
}

/** An agent whose `build` has never ended is built; else its `start` runs, as after every boot. */
function scriptsToRun({ build }: { build?: { state?: string } }): 'build' | 'start' {
  const hasEnded = ['success', 'failed', 'not_configured'].includes(build?.state ?? '')
  return hasEnded ? 'start' : 'build'
}

/** Has an agent's scripts run again. It ends when they are launched: how they end is in the agent's status. */
export const scripts = agentHandler('agent.scripts', 'as it is', ({ agentd }) => ({
  async handle(run, agent) {
    await run.report('scripts')
    await launchBuild({ agentd }, agent, run.signal)
    return run.succeed({})
  },
  /** An agent that is away fails the operation: the caller waits and may ask again, and the reconciler restarts agents. */
  explain(error) {
    if (!(error instanceof AgentdError)) return undefined
    const { message } = error
    return new OperationFailed('script_launch_failed', message, { result: { detail: message }, cause: error })
  },
}))

/** Removes the container, the network and the volume of a deleted agent. Never given up. */
export const remove = defineHandler('agent.delete', ({ pool, runtime }) => ({
  async handle(run) {
    const agent = await acquireAgent(pool, run, 'deleted')
    // The agent was removed already.
    if (!agent) return run.succeed({})
    await run.report('container')
    await runtime.remove(agent.agentId, { volume: true, signal: run.signal }).catch((error) => {
      throw isOutage(error) ? new RetryLater('outage', error.message, { cause: error }) : error
    })
    crashPoint('agent-after-remove')
    return run.succeed(async (tx) => {
      await tx.agent.updateMany({ where: { id: agent.id }, data: { purgedAt: new Date(), address: null } })
      return {}
    })
  },
}))
