/** A folder on IPFS becomes the working tree of an agent. */
import { Readable } from 'node:stream'
import type { CID } from 'multiformats/cid'
import type { Agent } from '../../src/agents/agent.ts'
import { AgentdError, type AgentdTarget } from '../../src/agents/agentd-client.ts'
import {
  adoptCommit,
  commitHash,
  importStream,
  resetTo,
  treeOf,
} from '../../src/agents/snapshots/repository.ts'
import { crashPoint } from '../../src/lib/crash-point.ts'
import type { Run } from '../../src/operations/handler.ts'
import { walkFolder } from '../../src/storage/folder.ts'
import { type Network, StorageError } from '../../src/storage/port.ts'
import type { AgentWorkerServices } from '../services.ts'
import { diskBytesOf } from './disk.ts'
import { fastImport, UnfitFolder } from './fast-import.ts'

const IMPORT_MS = 900_000
/** agentd's refusals of a commit: it is too large, or git does not take it for one. */
const NO_COMMIT = ['too_large', 'bad_request']
/** More entries than a disk has room for, as what was saved has to come back: a workspace grows by many snapshots. */
const MAX_ENTRIES = 10_000_000

export interface TreeSource {
  network: Network
  cid: CID
  /** Paths of files that are executable. */
  executables: string[]
  /** The message of the commit, where `object` is not given. */
  message: string
  /**
   * The commit that the folder is the tree of, as git stores it without its header. It is made again where git's tree
   * of the folder is the same: it is not where names were left out that a folder on IPFS cannot have.
   */
  object?: Buffer
}

/**
 * Brings a folder from IPFS into the repository of an agent, and its working tree to it. What is ignored stays, and so
 * does the history that is there.
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
  const signal = AbortSignal.any([run.signal, AbortSignal.timeout(IMPORT_MS)])
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
  const imported = await importStream(access, stream, IMPORT_MS)
    .catch((error) => {
      // A failure to read from the storage is not agentd's: to agentd the stream only breaks off.
      throw failure instanceof StorageError || failure instanceof UnfitFolder ? failure : error
    })
    .finally(() => stream.destroy())
  let { commit } = imported
  if (object && treeOf(object) === imported.tree) {
    commit = await adoptCommit(access, object)
      .then(() => commitHash(object))
      .catch((error) => {
        // The files are all there.
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
