import { CID } from 'multiformats/cid'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { insertOperation } from '../../src/agents/operate.ts'
import { resetTo } from '../../src/agents/snapshots/repository.ts'
import { findSnapshot, latestSnapshot, type StoredSnapshot } from '../../src/agents/snapshots/store.ts'
import { crashPoint } from '../../src/crash-point.ts'
import { transaction } from '../../src/db/pool.ts'
import { messages } from '../../src/errors.ts'
import type { Handler, Run } from '../../src/operations/runner.ts'
import type { Network } from '../../src/storage/port.ts'
import { importTree } from './import-tree.ts'
import { launchBuildIfUp } from './launch.ts'
import { compareCommits, listFiles, saveWorkspace, writeSaved } from './save.ts'
import type { AgentWorkerServices } from './services.ts'
import { applySkills } from './skills.ts'
import { endUnsaved, notConfigured, pruneHistory, SAVE_MS } from './sync.ts'
import { takeAgent } from './take.ts'

/**
 * Saves an agent's workspace, then puts a snapshot of its history in its place, which becomes the newest one.
 *
 * The gateway goes on: its state and its configuration are outside of the repository, it reads the files of the
 * workspace anew in every session, and watches the folders of skills.
 */
export function agentReset(services: AgentWorkerServices): Handler {
  const { pool, config } = services
  return {
    async handle(run) {
      const agent = await takeAgent(pool, run, 'as it is')
      if (!agent) return run.end(pool, { state: 'canceled' })
      const network = config.BERTH_SNAPSHOT_NETWORK
      if (network === 'none') return run.end(pool, notConfigured)
      // It may have fallen out of the history while this waited in line.
      const snapshot = await findSnapshot(pool, agent, String(run.operation.input?.snapshotCid))
      if (!snapshot) return run.end(pool, notFound)
      const late = AbortSignal.timeout(SAVE_MS)
      const signal = AbortSignal.any([run.signal, late])
      try {
        // One whose restore was cut off is in the history already.
        if (agent.lastSync !== null && !(await saveFirst(services, run, agent, { network, signal })))
          return await run.end(pool, { state: 'canceled' })
        await run.report('reset')
        const commitSha = await goTo(services, run, agent, { snapshot, signal })
        crashPoint('reset-after-reset')
        const problems = await applySkills(services, run, agent, agent)
        if (problems.length > 0) run.log.warn({ problems }, 'a reset agent does not have all of its skills')
        await run.report('scripts')
        const isUp = await launchBuildIfUp(services, agent, signal)
        await finish(services, run, agent, { snapshot, commitSha, isUp, signal })
      } catch (error) {
        await endUnsaved(services, run, agent, { error, late, message: messages.resetFailed })
      }
    },
    giveUp: (run, ending) =>
      run.end(pool, ending.state === 'failed' ? { ...ending, error: messages.resetFailed } : ending),
  }
}

const notFound = {
  state: 'failed',
  error: messages.snapshotNotFound,
  code: 'snapshot_not_found',
  cause: 'it is not in the history any more',
} as const

/**
 * What would be lost is in the history. Nothing falls out of that meanwhile: it could be where we want to go.
 * @returns false where the agent was deleted meanwhile, or another run has it.
 */
async function saveFirst(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  place: { network: Network; signal: AbortSignal },
): Promise<boolean> {
  const saved = await saveWorkspace(services, run, agent, agent, place)
  const written = await transaction(services.pool, (client) => writeSaved(client, services, agent, saved))
  return written !== undefined
}

/** Makes the working tree the snapshot's. @returns the commit. */
async function goTo(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  { snapshot, signal }: { snapshot: StoredSnapshot; signal: AbortSignal },
): Promise<string> {
  const { commitSha, network, cid, executables, commitObject: object } = snapshot
  try {
    await resetTo({ agentd: services.agentd, target: agent, epoch: agent.epoch, signal }, commitSha)
    return commitSha
  } catch (error) {
    if (!(error instanceof AgentdError) || error.code !== 'not_found') throw error
  }
  const message = `sync: ${cid}`
  const source = { network, cid: CID.parse(cid), executables, message, object }
  return importTree(services, run, agent, agent, source)
}

/** Writes where the workspace is now. A repeat finds that row, which its own save has added then. */
async function finish(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  {
    snapshot,
    commitSha,
    isUp,
    signal,
  }: { snapshot: StoredSnapshot; commitSha: string; isUp: boolean; signal: AbortSignal },
): Promise<void> {
  const { pool, agentd, config } = services
  const access = { agentd, target: agent, epoch: agent.epoch, signal }
  const newest = await latestSnapshot(pool, agent)
  // Of a commit that is another one than the snapshot's, the next sync makes a snapshot.
  const isNew = newest?.commitSha !== commitSha && snapshot.commitSha === commitSha
  const from = newest?.commitSha
  const difference = isNew ? await compareCommits(access, { from, to: commitSha }) : undefined
  const fileManifest = await listFiles(access, commitSha)
  await transaction(pool, async (client) => {
    const written = await writeSaved(client, services, agent, { content: snapshot, difference, fileManifest })
    if (!written) return run.end(client, { state: 'canceled' })
    await pruneHistory(client, config, agent)
    // The workspace may have been what kept the gateway from running.
    if (!isUp) await insertOperation(client, agent, 'agent.restart', { input: { scripts: 'build' } })
    const result = { snapshotCid: snapshot.cid, commitSha }
    await run.end(client, { state: 'succeeded', result })
  })
}
