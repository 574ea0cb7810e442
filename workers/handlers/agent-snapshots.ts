/** Saves an agent's workspace as a snapshot, and resets it to one. */
import { CID } from 'multiformats/cid'
import { type Agent, findAgentById } from '../../src/agents/agent.ts'
import { handOver, saveEngineState } from '../../src/agents/forks/index.ts'
import {
  findSnapshot,
  latestSnapshot,
  noteExtras,
  resetTo,
  restoreExtras,
  type StoredSnapshot,
} from '../../src/agents/snapshots/index.ts'
import { inTransaction } from '../../src/db/prisma.ts'
import { ignoring, messages } from '../../src/errors.ts'
import { crashPoint } from '../../src/lib/crash-point.ts'
import { enqueue } from '../../src/operations/enqueue.ts'
import { type Ended, OperationFailed, type Run } from '../../src/operations/handler.ts'
import { withMoreDisk } from '../agents/disk.ts'
import { askEngine } from '../agents/fork.ts'
import { agentHandler } from '../agents/handler.ts'
import { launchBuildIfUp } from '../agents/launch.ts'
import { applySkills } from '../agents/skills.ts'
import { importTree } from '../agents/snapshots/import-tree.ts'
import {
  compareCommits,
  explainUnsaved,
  listFiles,
  pruneHistory,
  requireNetwork,
  saveWorkspace,
  writeSaved,
} from '../agents/snapshots/save.ts'
import type { AgentWorkerServices } from '../services.ts'

/** Saves an agent's workspace as its newest snapshot, and the state of its engine; forks of it may be waiting for both. */
export const sync = agentHandler('agent.sync', 'as it is', (services) => ({
  async handle(run, agent) {
    const { config, encryption } = services
    const [saved, engine] = await Promise.all([
      saveWorkspace(services, run, agent, agent, requireNetwork(config)),
      askEngine(services, run, agent),
    ])
    const { content, difference, leftOut } = saved
    crashPoint('snapshot-before-final-write')
    return run.succeed(async (tx) => {
      const { lastSync } = await writeSaved(tx, services, agent, saved)
      if (!difference) await noteExtras(tx, agent, content)
      await pruneHistory(tx, config, agent)
      await saveEngineState(tx, encryption, agent, engine)
      await handOver(tx, encryption, agent, run.operation.id)
      return {
        lastSync,
        snapshotCid: content.cid,
        commitSha: content.commitSha,
        changeSummary: difference?.changeSummary ?? null,
        isNew: difference !== undefined,
        leftOut,
      }
    })
  },
  explain: explainUnsaved,
  async failed(tx, { operation }) {
    const agent = await findAgentById(tx, operation.targetId)
    if (agent) await handOver(tx, services.encryption, agent, operation.id)
  },
}))

/**
 * Saves an agent's workspace, then resets it to a snapshot of its history, which becomes the newest one.
 *
 * The gateway keeps running: its state and its configuration are outside the repository, it reads the files of the
 * workspace again in every session, and watches the folders of skills.
 */
export const reset = agentHandler('agent.reset', 'as it is', (services) => ({
  async handle(run, agent) {
    const { prisma, config } = services
    const network = requireNetwork(config)
    // The snapshot may have been pruned from the history while this operation waited in line.
    const snapshot = await findSnapshot(prisma, agent, run.input.snapshotCid)
    if (!snapshot) throw notFound()
    // Saves the workspace to the history first, without pruning, which could remove the requested snapshot. A workspace
    // that was never saved is the remainder of an interrupted restore, and already in the history.
    const { commitSha, lost, problems } = await withMoreDisk(services, agent, run.signal, async () => {
      if (agent.lastSync !== null) {
        const saved = await saveWorkspace(services, run, agent, agent, network)
        await inTransaction(prisma, async (tx) => {
          await writeSaved(tx, services, agent, saved)
          if (!saved.difference) await noteExtras(tx, agent, saved.content)
        })
      }
      await run.report('reset')
      const commitSha = await goTo(services, run, agent, snapshot)
      crashPoint('reset-after-reset')
      // Branches and tags still exist.
      const access = { agentd: services.agentd, target: agent, epoch: agent.epoch, signal: run.signal }
      const { extras } = snapshot
      const lost = extras ? await restoreExtras(access, { ...extras, refs: [] }) : []
      return { commitSha, lost, problems: await applySkills(services, run, agent, agent) }
    })
    if (problems.length > 0) run.log.warn({ problems }, 'a reset agent does not have all of its skills')
    await run.report('scripts')
    const isUp = await launchBuildIfUp(services, agent, run.signal)
    return finish(services, run, agent, { snapshot, commitSha, isUp, lost })
  },
  explain: explainUnsaved,
}))

const notFound = () =>
  new OperationFailed('snapshot_not_found', 'it is no longer in the history', {
    publicMessage: messages.snapshotNotFound,
  })

/** Resets the working tree to the snapshot. @returns the commit. */
async function goTo(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  snapshot: StoredSnapshot,
): Promise<string> {
  const { signal } = run
  const { commitSha, network, cid, executables, commitObject: object } = snapshot
  const access = { agentd: services.agentd, target: agent, epoch: agent.epoch, signal }
  const isThere = await resetTo(access, commitSha).then(() => true, ignoring('not_found'))
  if (isThere) return commitSha
  const message = `sync: ${cid}`
  const source = { network, cid: CID.parse(cid), executables, message, object }
  return importTree(services, run, agent, agent, source)
}

/** Writes the snapshot as the agent's newest one. On a repeat, the initial save has already added that row. */
async function finish(
  services: AgentWorkerServices,
  run: Run<'agent.reset'>,
  agent: Agent,
  {
    snapshot,
    commitSha,
    isUp,
    lost,
  }: { snapshot: StoredSnapshot; commitSha: string; isUp: boolean; lost: string[] },
): Promise<Ended> {
  const { prisma, agentd, config } = services
  const access = { agentd, target: agent, epoch: agent.epoch, signal: run.signal }
  const newest = await latestSnapshot(prisma, agent)
  // An imported tree has another commit than the snapshot: the next sync makes a snapshot of it.
  const isNew = newest?.commitSha !== commitSha && snapshot.commitSha === commitSha
  const from = newest?.commitSha
  const difference = isNew ? await compareCommits(access, { from, to: commitSha }) : undefined
  const fileManifest = await listFiles(access, commitSha)
  return run.succeed(async (tx) => {
    await writeSaved(tx, services, agent, { content: snapshot, difference, fileManifest })
    await pruneHistory(tx, config, agent)
    // The workspace may have kept the gateway from running.
    if (!isUp) await enqueue(tx, 'agent.restart', agent, { input: { scripts: 'build' } })
    return { snapshotCid: snapshot.cid, commitSha, ...(lost.length > 0 && { lost }) }
  })
}
