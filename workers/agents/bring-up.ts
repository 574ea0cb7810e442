/**
 * From a row to an agent that answers: image, volume, container, workspace, secrets, gateway, scripts. Every step
 * looks before it acts and may run twice; a run that is interrupted anywhere is done again from the start.
 */
import { createHash } from 'node:crypto'
import type { Agent } from '../../src/agents/agent.ts'
import type { SandboxSpec } from '../../src/containers/port.ts'
import { crashPoint } from '../../src/crash-point.ts'
import type { Run } from '../../src/operations/runner.ts'
import { failureOf } from './failure.ts'
import { type GatewayUp, startGateway } from './gateway.ts'
import { applyFirstManifest } from './manifest.ts'
import { type Reached, reachAgentd } from './reach.ts'
import type { AgentWorkerServices } from './services.ts'
import { beginHistory, prepareWorkspace } from './workspace.ts'

/** A line of a build is shown at most this often. */
const LINE_MS = 1000

export interface Up extends GatewayUp {
  /** Where agentd answers. */
  address: string
  /** Parts of the manifest that it began with which could not be applied; for the result. */
  problems: string[] | undefined
}

/**
 * Brings an agent up on `version`.
 * @throws BringUpFailed when it cannot come up as it is; any other error is worth another try.
 */
export async function bringUp(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  options: { version: string; scripts: 'build' | 'start' },
): Promise<Up> {
  try {
    await prepareImage(services, run, options.version)
    const target = await startSandbox(services, run, agent, options.version)
    await showAddress(services, agent, target)
    const workspace = await prepareWorkspace(services, run, agent, target)
    // What was built is neither in a snapshot nor in a template.
    const scripts = workspace === 'there' ? options.scripts : 'build'
    const up = await startGateway(services, run, agent, target, { ...options, scripts })
    let problems: string[] | undefined
    if (workspace === 'begun') {
      await beginHistory(services, run, agent, target)
      problems = (await applyFirstManifest(services, run, agent, target)).problems
    }
    await run.report('scripts', { ...up.status.scripts })
    return { ...up, address: target.address, problems: problems?.length ? problems : undefined }
  } catch (error) {
    throw failureOf(error) ?? error
  }
}

/** Makes the engine version available where it is not: builds its image, or installs it. */
async function prepareImage({ containers }: AgentWorkerServices, run: Run, version: string): Promise<void> {
  await run.report('image')
  const { signal } = run
  if ((await containers.engineVersions({ signal })).includes(version)) return
  let shown = 0
  await containers.prepareEngine(version, {
    signal,
    onLine(line) {
      if (performance.now() - shown < LINE_MS) return
      shown = performance.now()
      // A line that is not shown, or a lease that is lost, shows itself elsewhere.
      run.report('image', { version, line: line.slice(0, 500) }).catch(() => {})
    },
  })
}

/** From here on its status, its log and its files can be read, also where its gateway does not come up. */
async function showAddress({ pool }: AgentWorkerServices, agent: Agent, target: Reached): Promise<void> {
  await pool.query('UPDATE agent SET address = $3 WHERE id = $1 AND epoch = $2', [
    agent.id,
    agent.epoch,
    target.address,
  ])
}

async function startSandbox(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  version: string,
): Promise<Reached> {
  const { containers } = services
  const { signal } = run
  await run.report('volume')
  await containers.ensureVolume(agent.agentId, { signal })
  await run.report('container')
  crashPoint('agent-before-create')
  await containers.create(sandboxSpec(services, agent, version), { signal })
  crashPoint('agent-after-create')
  await containers.start(agent.agentId, { signal })
  crashPoint('agent-after-start')
  return reachAgentd(services, agent.agentId, signal)
}

function sandboxSpec({ agentd, config }: AgentWorkerServices, agent: Agent, version: string): SandboxSpec {
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
      diskBytes: config.BERTH_AGENT_DISK_MB * 1_048_576,
    },
    limits: {
      memoryBytes: config.BERTH_AGENT_MEMORY_MB * 1_048_576,
      cpus: config.BERTH_AGENT_CPUS,
      pids: config.BERTH_AGENT_PIDS,
    },
  }
}
