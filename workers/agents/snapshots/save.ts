/** Saves an agent's workspace as content on IPFS, and as a row of its history. */

import { CID } from 'multiformats/cid'
import type { Agent } from '../../../src/agents/agent.ts'
import { AgentdError, type AgentdTarget } from '../../../src/agents/agentd-client.ts'
import { attachedSecrets } from '../../../src/agents/secrets/attachments.ts'
import { attachedSkills } from '../../../src/agents/skills/index.ts'
import {
  buildSnapshot,
  type CheckedCommit,
  type Content,
  commitAll,
  type Difference,
  insertSnapshot,
  latestSnapshot,
  pruneSnapshots,
  type RepositoryAccess,
  readChanges,
  readDiff,
  readFiles,
  type StoredSnapshot,
} from '../../../src/agents/snapshots/index.ts'
import type { Config } from '../../../src/config.ts'
import type { Queryable } from '../../../src/db/pool.ts'
import type { Transaction } from '../../../src/db/prisma.ts'
import { ignoring, messages, PartError } from '../../../src/errors.ts'
import { canonicalCid } from '../../../src/files/cid.ts'
import { ensurePinned } from '../../../src/files/held-content.ts'
import { crashPoint } from '../../../src/lib/crash-point.ts'
import { OperationCanceled, OperationFailed, type Run } from '../../../src/operations/handler.ts'
import { type Network, type Storage, StorageError } from '../../../src/storage/port.ts'
import type { AgentWorkerServices } from '../../services.ts'
import { diskBytesOf } from '../disk.ts'
import { failedBy } from '../failure.ts'
import { readBlobs } from './blobs.ts'
import { Changes } from './changes.ts'

/** Maximum number of files that change between snapshots: an agent's disk bounds their bytes, but not their names. */
const MAX_CHANGES = 250_000
/** Maximum bytes of a snapshot's diff, and of an agent's list of files. */
const TEXT_BYTES = 65_536

/** The current workspace: a new snapshot, or the existing newest one. */
export interface Saved {
  content: Content
  /** Undefined if the newest snapshot is the same. */
  difference: Difference | undefined
  /** See `readFileManifest`. */
  fileManifest: string
  /** Files that were left out: `<path>: <reason>`. */
  leftOut: string[]
}

/**
 * Saves an agent's workspace on IPFS, in two steps. {@link writeSaved} is the third, in the transaction that ends the
 * operation; nothing is written into the database before it:
 *
 * 1. `commit`: agentd commits the changes. Repeated: without changes it is the same commit. Undone: never.
 * 2. `store`: the tree of the commit becomes blocks; only changed blocks are written. Repeated: the same blocks are
 *    written again. Undone: unreferenced blocks are collected as garbage.
 * @param network of the new snapshot.
 * @throws AgentdError, StorageError
 */
export async function saveWorkspace(
  { pool, prisma, agentd, storages, config }: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdTarget,
  network: Network,
): Promise<Saved> {
  const access = { agentd, target, epoch: agent.epoch, signal: run.signal }
  await run.report('commit')
  const [skills, secrets, newest] = await Promise.all([
    attachedSkills(pool, agent),
    attachedSecrets(prisma, agent),
    latestSnapshot(prisma, agent),
  ])
  // The current files are at most a part of the workspace, and would pass for all of it.
  if (newest && agent.lastSync === null)
    throw new AgentdError('unreachable', 'the workspace is still to be restored')
  const commit = await commitAll(access, {
    message: `sync: ${new Date().toISOString().replace(/\.\d+Z$/, '+00:00')}`,
    manifest: {
      skills: skills.map(({ name, skillCid: cid }) => ({ name, cid })),
      secrets: secrets.map(({ name }) => ({ name })),
    },
  })
  crashPoint('snapshot-after-commit')
  const { leftOut, extras = null } = commit
  const listed = listFiles(access, commit.commit)
  listed.catch(() => {}) // It is awaited below, unless the save fails first.
  if (newest?.commitSha === commit.commit)
    return { content: { ...newest, extras }, difference: undefined, fileManifest: await listed, leftOut }
  await run.report('store')
  const maxBytes = await diskBytesOf({ prisma, config }, agent)
  const stored = await store(access, storages[network], { commit, newest, maxBytes })
  crashPoint('snapshot-after-build')
  return { ...stored, fileManifest: await listed, leftOut }
}

const UNKNOWN: Difference = { changeSummary: null, contentDiff: null }

interface Job {
  commit: CheckedCommit
  newest: StoredSnapshot | undefined
  maxBytes: number
}

/** Stores the changes since the newest snapshot, or everything if that snapshot is unusable. */
async function store(
  access: RepositoryAccess,
  storage: Storage,
  job: Job,
): Promise<{ content: Content; difference: Difference }> {
  const { newest } = job
  if (newest?.network === storage.network) {
    try {
      return await storeSince(access, storage, { ...job, base: newest })
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }
  return storeSince(access, storage, { ...job, base: undefined })
}

/** The agent has rewritten its history, or the node has lost the snapshot's content. */
const isGone = (error: unknown): boolean => error instanceof PartError && error.code === 'not_found'

async function storeSince(
  access: RepositoryAccess,
  storage: Storage,
  { commit, newest, base, maxBytes }: Job & { base: StoredSnapshot | undefined },
): Promise<{ content: Content; difference: Difference }> {
  const { commit: to, tree, object, extras = null } = commit
  const changes = new Changes(base?.executables ?? [], { files: MAX_CHANGES, bytes: maxBytes })
  // Without the previous commit there is nothing to compare with, so the changes are unknown.
  const isKnown = !newest || base !== undefined
  const compared = isKnown ? diffCommits(access, { from: base?.commitSha, to }) : null
  compared?.catch(() => {}) // It is awaited below, unless the save fails first.
  const { cid } = await buildSnapshot(storage, {
    base: base ? CID.parse(base.cid) : null,
    changes: changes.count(readChanges(access, { from: base?.commitSha, to })),
    read: (blobs) => readBlobs(access, blobs, (blob) => changes.sizeOf(blob)),
    signal: access.signal,
  })
  const { network } = storage
  const { executables } = changes
  const content = {
    network,
    cid: canonicalCid(cid),
    commitSha: to,
    commitObject: object,
    treeSha: tree,
    executables,
    extras,
  }
  if (!compared) return { content, difference: UNKNOWN }
  return { content, difference: { changeSummary: changes.summary, contentDiff: await compared } }
}

/** The difference between two commits in words; unknown if one is missing. @throws AgentdError */
export async function compareCommits(
  access: RepositoryAccess,
  commits: { from: string | undefined; to: string },
): Promise<Difference> {
  const changes = new Changes([], { files: MAX_CHANGES, bytes: Number.POSITIVE_INFINITY })
  try {
    for await (const _ of changes.count(readChanges(access, commits)));
    return { changeSummary: changes.summary, contentDiff: await diffCommits(access, commits) }
  } catch (error) {
    if (isGone(error)) return UNKNOWN
    throw error
  }
}

async function diffCommits(
  access: RepositoryAccess,
  commits: { from: string | undefined; to: string },
): Promise<string | null> {
  // Comparing large files takes long, and a missing diff loses nothing.
  const diff = await readDiff(access, { ...commits, max: TEXT_BYTES }).catch(ignoring('timeout'))
  if (!diff) return null
  return diff.truncated ? `${diff.text}… cut after ${TEXT_BYTES / 1024} KiB\n` : diff.text
}

/** The files of a commit, in the format of the agent's record. @throws AgentdError */
export async function listFiles(access: RepositoryAccess, commit: string): Promise<string> {
  const { text, truncated } = await readFiles(access, { commit, max: TEXT_BYTES })
  return truncated ? `${text}… and more\n` : text
}

/**
 * Writes a saved workspace: the row of its snapshot if it is new, and the time of the sync.
 * @returns that time.
 * @throws OperationCanceled if the agent was deleted, or another run has it; StorageError if its content is not
 *   available (any longer).
 */
export async function writeSaved(
  tx: Transaction,
  { storages }: Pick<AgentWorkerServices, 'storages'>,
  agent: Agent,
  { content, difference, fileManifest }: Omit<Saved, 'leftOut'>,
): Promise<{ lastSync: string }> {
  if (difference) await ensurePinned(tx, storages[content.network], CID.parse(content.cid))
  const syncedAt = new Date()
  const { count } = await tx.agent.updateMany({
    where: { id: agent.id, epoch: agent.epoch, deletedAt: null },
    data: { syncedAt, fileManifest },
  })
  if (!count) throw new OperationCanceled('the agent is gone')
  if (difference) await insertSnapshot(tx, agent, content, difference)
  return { lastSync: syncedAt.toISOString() }
}

export const pruneHistory = (db: Queryable, config: Config, agent: Pick<Agent, 'id'>): Promise<void> =>
  pruneSnapshots(db, agent, {
    keep: config.BERTH_SNAPSHOT_KEEP.newest,
    keepDays: config.BERTH_SNAPSHOT_KEEP.days,
  })

/** The network that keeps snapshots. @throws OperationFailed if the settings disable snapshots. */
export function requireNetwork({ BERTH_SNAPSHOT_NETWORK: network }: Config): Network {
  if (network !== 'none') return network
  const publicMessage = messages.storageNotConfigured
  throw new OperationFailed('storage_not_configured', 'BERTH_SNAPSHOT_NETWORK is none', { publicMessage })
}

/**
 * The meaning of an error while saving a workspace; undefined for an unexpected error. The save is not
 * retried: a waiting caller can ask again, and changed workspaces are searched for regularly.
 */
export function explainUnsaved(error: unknown, _run: Run, { status }: Agent): OperationFailed | undefined {
  if (!(error instanceof PartError)) return undefined
  if (error instanceof StorageError && error.code === 'unavailable')
    return failedBy(error, { code: 'ipfs_unreachable', publicMessage: messages.ipfsUnreachable })
  if (!(error instanceof AgentdError)) return failedBy(error)
  // An unexpected error of agentd is not the operation's own.
  if (error.code === 'internal') return failedBy(error, { code: 'agent_failed' })
  if (error.code !== 'unreachable' && error.code !== 'not_ready') return failedBy(error)
  const publicMessage = status === 'not_running' ? messages.agentNotRunning : messages.agentNotReady
  return failedBy(error, { code: 'agent_not_ready', publicMessage })
}
