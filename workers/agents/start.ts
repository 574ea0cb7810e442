/**
 * Starts an agent: the steps of `agent.provision` and `agent.restart`, from the agent's row to a gateway that responds.
 *
 * Before the first step `agentHandler` has raised the agent's epoch: agentd and the row refuse a run with a lower one.
 * A failing step does not undo earlier steps. Their results stay, and the next run begins at the top: each step checks
 * the current state before it acts, so a run may be killed anywhere. A restart on another version that fails repeats
 * the steps on the previous version. `agent.delete` removes everything except the engine.
 */
import type { AgentStatus } from '../../agentd/protocol.ts'
import type { Agent } from '../../src/agents/agent.ts'
import type { Transaction } from '../../src/db/prisma.ts'
import { isSpare } from '../../src/db/statements/pool.ts'
import { crashPoint } from '../../src/lib/crash-point.ts'
import { OperationCanceled, type OperationFailed, type Run } from '../../src/operations/handler.ts'
import type { AgentWorkerServices } from '../services.ts'
import { failureOf } from './failure.ts'
import { awaitParent, configOf, restoreTasks } from './fork.ts'
import { readSecretsAndChannels, startGateway } from './gateway.ts'
import { MAX_REASON } from './handler.ts'
import { applyFirstManifest } from './manifest/apply.ts'
import { type AgentdEndpoint, prepareEngine, startSandbox } from './sandbox.ts'
import { reachSpare, withSlowSteps, yieldingToOwners } from './spare.ts'
import { commitFirst, prepareSpare, prepareWorkspace } from './workspace.ts'

export interface StartedAgent {
  /** Address of agentd. */
  address: string
  status: AgentStatus
  /** The versions of the secrets that the gateway received. */
  secretVersions: Record<string, number>
  /** Parts of a restore and of the first manifest that failed, each with the reason; for the result. */
  problems: string[] | undefined
}

/**
 * Starts an agent on `version`. Clients see the names of the steps in the operation.
 * @param options.scripts what to run once the gateway is ready: `build` and then `start`, or only `start`.
 * @param options.rebuild recreates the container.
 * @throws StartFailed if the agent cannot start in its current state; any other error is worth another attempt.
 */
export async function startAgent(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  options: { version: string; scripts: 'build' | 'start'; rebuild?: boolean },
): Promise<StartedAgent> {
  try {
    const taken = await reachSpare(services, run, agent)
    if (!taken)
      return await services.boots.run(run.signal, async () =>
        startIn(services, run, agent, await makeSandbox(services, run, agent, options), options),
      )
    // A former spare has everything that the first steps make.
    await using quiet = withSlowSteps(run)
    return await startIn(services, quiet, agent, taken, options)
  } catch (error) {
    throw failureOf(error) ?? error
  }
}

/** The first steps: a sandbox with an agentd that responds. */
async function makeSandbox(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  { version, rebuild = false }: { version: string; rebuild?: boolean },
): Promise<AgentdEndpoint> {
  // `image`: builds the image of the engine's version, or installs the version, and fails if its Node is unfit. Needs
  // nothing. Repeated: an available version is left alone. Undone: by `tidyEngines`, when no agent has used it for some
  // time.
  await prepareEngine(services, run, version)

  // `volume`, `container`: creates the home and the sandbox, starts it, and waits until agentd responds in it. Needs
  // the image. Repeated: a home stays unchanged; a sandbox with another version, other limits or a fault is recreated;
  // a sandbox whose agentd is silent is restarted once. Undone: both by `agent.delete`.
  const target = await startSandbox(services, run, agent, { version, rebuild })

  // Not visible to clients: writes agentd's address into the row, so that status, log and files can be read from here
  // on, even if the gateway does not start. Repeated: the same write, with the newest address. Undone: by
  // `agent.delete`.
  await writeAddress(services, agent, target)
  return target
}

/** The other steps: the agent's workspace, and its gateway. */
async function startIn(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdEndpoint,
  { version, scripts }: { version: string; scripts: 'build' | 'start' },
): Promise<StartedAgent> {
  if (isSpare(agent)) return startSpare(services, run, agent, target, version)

  // Not visible to clients: a fork waits until the agent that it is a fork of is saved. Needs nothing.
  const fork = await awaitParent(services, run, agent)

  // `workspace`, `skills`: restores the newest snapshot if the volume was lost, writes the first files of a new agent,
  // and updates its skill folders to match its rows. Needs agentd. Repeated: existing files stay; a restore starts over
  // until the row says that it has ended. Undone: not while the agent exists, because the workspace belongs to its
  // owner.
  // `secrets`, at the same time: decrypts the agent's current secrets, reads its channels, and writes the hash of the
  // next run's virtual key. Needs nothing. Repeated: read again, with the same key. Undone: by the next start, and by
  // `agent.delete`.
  const [{ workspace, lost }, settings] = await Promise.all([
    prepareWorkspace(services, run, agent, target, fork !== undefined),
    readSecretsAndChannels(services, run, agent, version),
  ])

  // `gateway`: tells agentd to start OpenClaw with these, and waits until it is ready. Then agentd runs the scripts.
  // Needs agentd, the workspace and the settings. Repeated: a gateway that this operation has started with the same
  // settings is left alone, any other is restarted. Undone: with the sandbox. A restored or new workspace needs
  // `build`, because its results are neither in a snapshot nor in a template.
  const request = {
    ...settings.request,
    ...(fork && configOf(fork, settings.request)),
    scripts: workspace === 'there' ? scripts : 'build',
  }
  const status = await startGateway(services, run, agent, target, request)

  const problems = lost.map((what) => `not restored: ${what}`)
  // Not visible to clients: creates the tasks of a fork. Needs the gateway, which stores them. Repeated: existing tasks
  // stay. Undone: not while the agent exists, because they belong to its owner.
  if (fork) problems.push(...(await restoreTasks(services, run, { ...agent, ...target }, fork)))
  if (workspace === 'begun') {
    // Not visible to clients: has agentd make the first commit of a new agent, so that there is something to clone.
    // Needs the gateway: before it runs, agentd does not know the secrets that must stay out of commits. Repeated:
    // without changes no commit is made. Undone: as the workspace.
    await commitFirst(services, run, agent, target)

    // `manifest`: applies the manifest of a template, with the skills that it names. Needs the gateway, which stores
    // tasks and the model. Repeated: applied parts are skipped. Undone: not while the agent exists, because its owner
    // changes it.
    if (agent.templateId !== null)
      problems.push(...(await applyFirstManifest(services, run, agent, target)).problems)
  }

  // `scripts`: only reports their progress; they continue in the agent. Nothing is written.
  await run.report('scripts', { ...status.scripts })
  return {
    address: target.address,
    status,
    secretVersions: settings.secretVersions,
    problems: problems.length > 0 ? problems : undefined,
  }
}

/** The rest of the start of an agent without an owner: its gateway runs, and its workspace has no file of an owner. */
async function startSpare(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdEndpoint,
  version: string,
): Promise<StartedAgent> {
  await prepareSpare(services, run, agent, target)
  const { request } = await readSecretsAndChannels(services, run, agent, version)
  const status = await yieldingToOwners(services, run, (yielding) =>
    startGateway(services, yielding, agent, target, { ...request, scripts: 'none' }),
  )
  return { address: target.address, status, secretVersions: {}, problems: undefined }
}

async function writeAddress(
  { prisma }: AgentWorkerServices,
  { id, epoch }: Agent,
  { address }: { address: string },
): Promise<void> {
  await prisma.agent.updateMany({ where: { id, epoch }, data: { address } })
}

/**
 * The last step, in the transaction that ends the operation: the row says that the agent runs. A run that is killed
 * earlier is repeated as a whole.
 * @throws OperationCanceled if the agent was deleted: the operation that removes it comes next.
 */
export async function writeRunning(
  tx: Transaction,
  agent: Agent,
  { version, started }: { version: string; started: StartedAgent },
): Promise<void> {
  crashPoint('agent-before-final-write')
  const { address, secretVersions, status } = started
  const { scripts } = status
  const { count } = await tx.agent.updateMany({
    where: { id: agent.id, epoch: agent.epoch, deletedAt: null },
    data: {
      status: 'running',
      // A running agent may lack something, such as a model.
      statusReason: status.gateway.reason,
      address,
      appliedSecretVersions: secretVersions,
      engineVersion: version,
      scripts: { build: { ...scripts.build }, start: { ...scripts.start } },
      ...(version !== agent.engineVersion && { updatedAt: new Date() }),
    },
  })
  if (!count) throw new OperationCanceled('the agent was deleted')
  await tx.engineState.updateMany({
    where: { agentId: agent.id, pending: true, awaits: null },
    data: { pending: false },
  })
}

/**
 * The counterpart for a start that has failed for good: the row of a live agent says that it does not run, and why. The
 * run holds the operation, so nobody else writes the agent's status.
 */
export async function writeNotRunning(
  tx: Transaction,
  { operation }: Run,
  { code, message }: OperationFailed,
): Promise<void> {
  const reason = code === 'internal' ? 'internal error' : message
  await tx.agent.updateMany({
    where: { id: operation.targetId, deletedAt: null },
    data: { status: 'not_running', statusReason: reason.slice(0, MAX_REASON) },
  })
}
