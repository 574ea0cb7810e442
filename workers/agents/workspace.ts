/** The workspace of an agent that comes up: seeded, or restored from its newest snapshot where its volume was lost. */
import { CID } from 'multiformats/cid'
import type { SeedRequest } from '../../agentd/protocol.ts'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError } from '../../src/agents/agentd-client.ts'
import { commitAll, readRepository } from '../../src/agents/snapshots/repository.ts'
import { latestSnapshot, type StoredSnapshot } from '../../src/agents/snapshots/store.ts'
import { seedFiles } from '../../src/engine/seed.ts'
import type { Run } from '../../src/operations/runner.ts'
import { BringUpFailed, failureOf } from './failure.ts'
import { importTree } from './import-tree.ts'
import type { Reached } from './reach.ts'
import type { AgentWorkerServices } from './services.ts'
import { applySkills } from './skills.ts'
import { writeTemplate } from './template.ts'

const SEED_MS = 60_000

/**
 * Sees to it that the agent has its workspace.
 * @returns `restored` where its volume was empty and it has a history; `begun` where nothing is committed yet.
 * @throws BringUpFailed where its snapshot is lost: an empty workspace in its place would look like its own.
 */
export async function prepareWorkspace(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: Reached,
): Promise<'restored' | 'begun' | 'there'> {
  await run.report('workspace')
  const { agentd, pool } = services
  const { head } = await readRepository({ agentd, target }, run.signal)
  const snapshot = await latestSnapshot(pool, agent)
  // A restore that was interrupted has taken the mark that the workspace was the snapshot's, see `restore`.
  const isLost = snapshot !== undefined && (head === null || agent.lastSync === null)
  // Later the agent may have removed some of these files for good.
  const isNew = !snapshot && (head === null || !wasUp(agent))
  if (isLost) await restore(services, run, agent, target, snapshot)
  if (isNew) {
    await writeTemplate(services, run, agent, target)
    await writeFiles(services, run, agent, target, seedFiles(agent))
  }
  const problems = await applySkills(services, run, agent, target)
  if (problems.length > 0)
    run.log.warn({ agentId: agent.agentId, problems }, 'an agent comes up without skills')
  return isLost ? 'restored' : isNew ? 'begun' : 'there'
}

/** Whether the agent has been up before: then a worker has written down how its scripts were. */
const wasUp = ({ scripts }: Agent): boolean => Object.keys(scripts).length > 0

/** Makes the workspace that of a snapshot. Killed anywhere, it is done again: the row says so until the end. */
async function restore(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: Reached,
  { network, cid, executables, commitObject: object }: StoredSnapshot,
): Promise<void> {
  const { pool } = services
  const { agentId, id, epoch } = agent
  run.log.warn({ agentId, cid }, "an agent's volume was empty; restoring its newest snapshot")
  await run.report('workspace', { snapshotCid: cid })
  await pool.query('UPDATE agent SET synced_at = NULL WHERE id = $1 AND epoch = $2', [id, epoch])
  // Makes the root, and a repository in it.
  await writeFiles(services, run, agent, target, [])
  const source = { network, cid: CID.parse(cid), executables, message: `sync: ${cid}`, object }
  await importTree(services, run, agent, target, source).catch((error) => {
    const failure = failureOf(error)
    if (failure?.code !== 'content_lost') throw error
    const reason = `its newest snapshot ${cid} cannot be restored: ${failure.message}`
    throw new BringUpFailed('content_lost', reason, { cause: error })
  })
  await pool.query('UPDATE agent SET synced_at = clock_timestamp() WHERE id = $1 AND epoch = $2', [id, epoch])
}

async function writeFiles(
  { agentd }: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: Reached,
  files: SeedRequest['files'],
): Promise<void> {
  await agentd.json(target, {
    method: 'PUT',
    path: '/v1/workspace',
    json: { files },
    epoch: agent.epoch,
    timeoutMs: SEED_MS,
    signal: run.signal,
  })
}

/**
 * Makes the first commit, so that there is something to clone. Only once the gateway runs: before that agentd does not
 * know the secrets that must not get into a commit.
 */
export async function beginHistory(
  { agentd }: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: Reached,
): Promise<void> {
  const access = { agentd, target, epoch: agent.epoch, signal: run.signal }
  try {
    await commitAll(access, { message: 'feat: begin workspace' })
  } catch (error) {
    // The next sync makes it.
    if (!(error instanceof AgentdError) || error.code === 'stale_epoch') throw error
    run.log.warn({ err: error, agentId: agent.agentId }, 'cannot make the first commit of an agent')
  }
}
