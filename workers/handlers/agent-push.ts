import { MANIFEST_BYTES } from '../../agentd/manifest-check.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { readRepository } from '../../src/agents/snapshots/index.ts'
import { ignoring } from '../../src/errors.ts'
import { crashPoint } from '../../src/lib/crash-point.ts'
import { type ResultOf, readResult } from '../../src/operations/catalog.ts'
import { enqueue } from '../../src/operations/enqueue.ts'
import type { Run } from '../../src/operations/handler.ts'
import { failedBy } from '../agents/failure.ts'
import { agentHandler } from '../agents/handler.ts'
import { launchBuildIfUp } from '../agents/launch.ts'
import { applyManifestText } from '../agents/manifest/apply.ts'
import type { AgentWorkerServices } from '../services.ts'

const FILE_MS = 20_000

/**
 * Applies a push to an agent's repository: its manifest, then `build` and `start`. agentd keeps the push's marker until
 * everything is done, so that an interrupted run starts over; a run that finds no marker has nothing to do.
 */
export const push = agentHandler('agent.push', 'as it is', (services) => ({
  async handle(run, agent) {
    const { agentd, config } = services
    const { pushed } = await readRepository({ agentd, target: agent }, run.signal)
    const result = pushed ? await takeOver(services, run, agent, pushed) : doneBefore(run)
    return run.succeed(async (tx) => {
      if (result.commitSha !== null && config.BERTH_SNAPSHOT_NETWORK !== 'none')
        await enqueue(tx, 'agent.sync', agent)
      return result
    })
  },
  /** The reconciler restarts an unavailable agent, and the marker is found then. */
  explain: (error) => (error instanceof AgentdError ? failedBy(error) : undefined),
}))

/** Does everything that a push requires. @returns the operation's result. */
async function takeOver(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  commitSha: string,
): Promise<ResultOf<'agent.push'>> {
  const text = await readManifest(services, run, agent, commitSha)
  const applied = await applyManifestText(services, run, agent, agent, text, false)
  await run.report('scripts')
  // Scripts need a running gateway; otherwise they run when it starts. If a restart interrupts them, they start over.
  const isLaunched = await launchBuildIfUp(services, agent, run.signal)
  crashPoint('push-after-scripts')
  const { pool } = services
  if (!isLaunched) await enqueue(pool, 'agent.restart', agent, { input: { scripts: 'build' } })
  const result = { commitSha, ...applied }
  // Without the marker, another attempt would not know the result.
  await run.report('taken over', result)
  await acknowledge(services, run, agent, commitSha)
  return result
}

/**
 * The result of an attempt that was interrupted after the marker had been removed; otherwise there was nothing to do.
 */
function doneBefore({ operation: { progress } }: Run): ResultOf<'agent.push'> {
  return readResult('agent.push', progress) ?? { commitSha: null }
}

/** Undefined if the commit has none, or does not exist. */
async function readManifest(
  { agentd }: AgentWorkerServices,
  { signal }: Run,
  agent: Agent,
  commit: string,
): Promise<string | undefined> {
  const query = new URLSearchParams({ commit, path: 'manifest.json', max: `${MANIFEST_BYTES}` })
  const request = {
    path: `/v1/repository/file?${query}`,
    timeoutMs: FILE_MS,
    maxBytes: MANIFEST_BYTES,
    signal,
  }
  return (await agentd.bytes(agent, request).catch(ignoring('not_found')))?.body.toString('utf8')
}

/** A newer push keeps its own marker. */
async function acknowledge(
  { agentd }: AgentWorkerServices,
  { signal }: Run,
  agent: Agent,
  commit: string,
): Promise<void> {
  const path = `/v1/repository/pushed?${new URLSearchParams({ commit })}`
  await agentd.json(agent, { method: 'DELETE', path, epoch: agent.epoch, signal })
}
