/** An agent's workspace becomes content on IPFS, and a row of its history. */
import { CID } from 'multiformats/cid'
import type { PoolClient } from 'pg'
import { type Agent, isoMillis } from '../../src/agents/agent.ts'
import { AgentdError, type AgentdTarget } from '../../src/agents/agentd-client.ts'
import { attachedSecrets } from '../../src/agents/secrets/attachments.ts'
import { attachedSkills } from '../../src/agents/skills/attach.ts'
import { readBlobs } from '../../src/agents/snapshots/blobs.ts'
import { Changes } from '../../src/agents/snapshots/changes.ts'
import { buildSnapshot } from '../../src/agents/snapshots/dag.ts'
import { MAX_CHANGES, TEXT_BYTES } from '../../src/agents/snapshots/limits.ts'
import {
  type CheckedCommit,
  commitAll,
  type RepositoryAccess,
  readChanges,
  readDiff,
  readFiles,
} from '../../src/agents/snapshots/repository.ts'
import {
  type Content,
  type Difference,
  insertSnapshot,
  latestSnapshot,
  type StoredSnapshot,
} from '../../src/agents/snapshots/store.ts'
import { crashPoint } from '../../src/crash-point.ts'
import { canonicalCid } from '../../src/files/cid.ts'
import { holdContent } from '../../src/files/held-content.ts'
import type { Run } from '../../src/operations/runner.ts'
import { type Network, type Storage, StorageError } from '../../src/storage/port.ts'
import type { AgentWorkerServices } from './services.ts'

/** The workspace as it is now: as a new snapshot, or as the newest one that there is. */
export interface Saved {
  content: Content
  /** Undefined where the newest snapshot is the same. */
  difference: Difference | undefined
  /** See `readFileManifest`. */
  fileManifest: string
  /** Files that were left out: a secret's value is in them, or git cannot keep them. */
  leftOut: string[]
}

/**
 * Commits an agent's workspace and stores the tree of the commit. Nothing is written into the database; what was stored
 * is collected again where nobody holds it.
 * @param network of the new snapshot.
 * @throws AgentdError, StorageError
 */
export async function saveWorkspace(
  { pool, agentd, storages, config }: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdTarget,
  { network, signal }: { network: Network; signal: AbortSignal },
): Promise<Saved> {
  const access = { agentd, target, epoch: agent.epoch, signal }
  await run.report('commit')
  const [skills, secrets, newest] = await Promise.all([
    attachedSkills(pool, agent),
    attachedSecrets(pool, agent),
    latestSnapshot(pool, agent),
  ])
  // What is there now is a part of it at most, and would pass for all.
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
  const { leftOut } = commit
  const fileManifest = await listFiles(access, commit.commit)
  if (newest?.commitSha === commit.commit)
    return { content: newest, difference: undefined, fileManifest, leftOut }
  await run.report('store')
  const maxBytes = config.BERTH_AGENT_DISK_MB * 1_048_576
  const stored = await store(access, storages[network], { commit, newest, maxBytes })
  crashPoint('snapshot-after-build')
  return { ...stored, fileManifest, leftOut }
}

const UNKNOWN: Difference = { changeSummary: null, contentDiff: null }

interface Job {
  commit: CheckedCommit
  newest: StoredSnapshot | undefined
  maxBytes: number
}

/** Stores what has changed since the newest snapshot; all of it where that is of no use any more. */
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
const isGone = (error: unknown): boolean =>
  (error instanceof AgentdError || error instanceof StorageError) && error.code === 'not_found'

async function storeSince(
  access: RepositoryAccess,
  storage: Storage,
  { commit, newest, base, maxBytes }: Job & { base: StoredSnapshot | undefined },
): Promise<{ content: Content; difference: Difference }> {
  const { commit: to, tree, object } = commit
  const changes = new Changes(base?.executables ?? [], { files: MAX_CHANGES, bytes: maxBytes })
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
  }
  // Without the commit before there is nothing to compare with: what is new is not known.
  if (newest && !base) return { content, difference: UNKNOWN }
  const contentDiff = await diffCommits(access, { from: base?.commitSha, to })
  return { content, difference: { changeSummary: changes.summary, contentDiff } }
}

/** What one commit has that another one has not, for people; unknown where one is not there. @throws AgentdError */
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
  try {
    const { text, truncated } = await readDiff(access, { ...commits, max: TEXT_BYTES })
    return truncated ? `${text}… cut after ${TEXT_BYTES / 1024} KiB\n` : text
  } catch (error) {
    // Comparing large files takes its time, and nothing is lost without it.
    if (error instanceof AgentdError && error.code === 'timeout') return null
    throw error
  }
}

/** The files of a commit, as the agent's record has them. @throws AgentdError */
export async function listFiles(access: RepositoryAccess, commit: string): Promise<string> {
  const { text, truncated } = await readFiles(access, { commit, max: TEXT_BYTES })
  return truncated ? `${text}… and more\n` : text
}

/**
 * Writes a saved workspace: the row of its snapshot where it is new, and when it was seen.
 * @param client in a transaction.
 * @returns when, undefined where the agent was deleted meanwhile, or another run has it.
 * @throws StorageError where its content is not to be had (any more).
 */
export async function writeSaved(
  client: PoolClient,
  { storages }: Pick<AgentWorkerServices, 'storages'>,
  agent: Agent,
  { content, difference, fileManifest }: Omit<Saved, 'leftOut'>,
): Promise<{ lastSync: string } | undefined> {
  if (difference) await holdContent(client, storages[content.network], CID.parse(content.cid))
  const { rows } = await client.query(
    `UPDATE agent SET synced_at = clock_timestamp(), file_manifest = $3
     WHERE id = $1 AND epoch = $2 AND deleted_at IS NULL RETURNING ${isoMillis('synced_at')} AS "lastSync"`,
    [agent.id, agent.epoch, fileManifest],
  )
  if (!rows[0]) return undefined
  if (difference) await insertSnapshot(client, agent, content, difference)
  return rows[0]
}
