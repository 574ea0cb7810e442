/**
 * The door of this folder for all other code: the rows of a history, the agent's repository as agentd serves it, and
 * its trees as DAGs. The work itself, saving and restoring, is in `workers/agents/snapshots`.
 */
export { buildSnapshot } from './dag.ts'
export {
  adoptCommit,
  type CheckedCommit,
  commitAll,
  commitHash,
  commitLater,
  importStream,
  type RepositoryAccess,
  readChanges,
  readDiff,
  readFiles,
  readRepository,
  resetTo,
  restoreExtras,
  treeOf,
} from './repository.ts'
export { snapshot, snapshotOfHistory } from './snapshot-schema.ts'
export {
  type Content,
  type Difference,
  findSnapshot,
  idAfter,
  insertSnapshot,
  latestSnapshot,
  listSnapshots,
  noteExtras,
  pruneSnapshots,
  removeSnapshots,
  type StoredSnapshot,
} from './snapshot-store.ts'
