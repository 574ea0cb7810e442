/** Restores a folder on IPFS as the working tree of an agent. */
import { Readable } from 'node:stream'
import type { CID } from 'multiformats/cid'
import type { Agent } from '../../../src/agents/agent.ts'
import { AgentdError, type AgentdTarget } from '../../../src/agents/agentd-client.ts'
import {
  adoptCommit,
  commitHash,
  importStream,
  resetTo,
  treeOf,
} from '../../../src/agents/snapshots/index.ts'
import { crashPoint } from '../../../src/lib/crash-point.ts'
import { within } from '../../../src/lib/signals.ts'
import type { Run } from '../../../src/operations/handler.ts'
import { walkFolder } from '../../../src/storage/dag/folder.ts'
import { type Network, type Storage, StorageError } from '../../../src/storage/port.ts'
import type { AgentWorkerServices } from '../../services.ts'
import { diskBytesOf } from '../disk.ts'
import { fastImport, UnfitFolder } from './fast-import.ts'

const IMPORT_MS = 900_000
/** agentd's refusals of a commit: it is too large, or git does not accept it. */
const NO_COMMIT = ['too_large', 'bad_request']
/**
 * More entries than fit on a disk, because everything saved must be restorable: a workspace grows over many snapshots.
 */
const MAX_ENTRIES = 10_000_000

export interface TreeSource {
  network: Network
  cid: CID
  /** Paths of executable files. */
  executables: string[]
  /** The message of the commit if `object` is not given. */
  message: string
  /**
   * The commit whose tree is the folder, in git's stored form without its header. The commit is recreated if git's tree
   * of the folder is the same. It differs if the folder on IPFS lacks names that IPFS folders cannot contain.
   */
  object?: Buffer
}

/**
 * Imports a folder from IPFS into the repository of an agent, and resets its working tree to it. Ignored files and the
 * existing history stay.
 * @returns the commit.
 * @throws StorageError, AgentdError, and UnfitFolder for a folder that cannot be an agent's tree.
 */
export async function importTree(
  services: AgentWorkerServices,
  run: Run,
  agent: Agent,
  target: AgentdTarget,
  { network, cid, executables, message, object }: TreeSource,
): Promise<string> {
  const { agentd, storages } = services
  const signal = within(IMPORT_MS, run.signal)
  const access = { agentd, target, epoch: agent.epoch, signal }
  const source = fastImport(walkFolder(storages[network], cid, { signal, maxEntries: MAX_ENTRIES }), {
    executables,
    message,
    maxBytes: await diskBytesOf(services, agent),
  })
  let failure: unknown
  const stream = Readable.from(source, { objectMode: false }).on('error', (error) => {
    failure = error
  })
  const bytes = await sizeOf(storages[network], cid, signal)
  const imported = await importStream(access, stream, { bytes, timeoutMs: IMPORT_MS })
    .catch((error) => {
      // A failure to read from the storage is not agentd's fault: agentd only sees the stream break off.
      throw failure instanceof StorageError || failure instanceof UnfitFolder ? failure : error
    })
    .finally(() => stream.destroy())
  let { commit } = imported
  if (object && treeOf(object) === imported.tree) {
    commit = await adoptCommit(access, object)
      .then(() => commitHash(object))
      .catch((error) => {
        // All files were imported.
        if (!(error instanceof AgentdError) || !NO_COMMIT.includes(error.code)) throw error
        run.log.warn(
          { err: error, agentId: agent.agentId },
          'the commit of a snapshot is refused; it gets a new one',
        )
        return imported.commit
      })
  } else if (object) {
    run.log.warn(
      { agentId: agent.agentId, cid: `${cid}` },
      'a snapshot is not all of its commit; it gets a new one',
    )
  }
  crashPoint('restore-after-import')
  await resetTo(access, commit)
  return commit
}

/** Larger folders count as this large. */
const MOST_BYTES = 1e12

/** The size of a folder, as it declares it. */
async function sizeOf(storage: Storage, cid: CID, signal: AbortSignal): Promise<number> {
  let bytes = 0
  for await (const { size } of storage.ls(cid, { signal })) bytes += size
  return Math.min(bytes, MOST_BYTES)
}
