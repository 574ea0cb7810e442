import { closeSync, openSync } from 'node:fs'

/**
 * The places at which the torture tests kill a process: those of a pin, an upload and an agent, then of all else, each in
 * the order in which it passes them.
 */
export type CrashPoint =
  | 'before-commit'
  | 'after-commit'
  | 'after-dispatch'
  | 'after-claim'
  | 'mid-retrieval'
  | 'after-pin'
  | 'before-final-write'
  | 'mid-upload'
  | 'after-add'
  | 'after-keep'
  | 'agent-before-create'
  | 'agent-after-create'
  | 'agent-after-start'
  | 'agent-before-gateway'
  | 'agent-after-gateway'
  | 'agent-before-final-write'
  | 'agent-after-remove'
  /** In a sync, also that in a reset: agentd has committed; the tree is stored and pinned; all is ready to be written. */
  | 'snapshot-after-commit'
  | 'snapshot-after-build'
  | 'snapshot-before-final-write'
  /** The workspace is the snapshot's. */
  | 'reset-after-reset'
  /** In a restore of a home: the commit is in the repository, the working tree empty. */
  | 'restore-after-import'
  /** In a push: it is applied, and its scripts were started. */
  | 'push-after-scripts'
  /** In a backup: the blocks are there; all but the manifest is there. */
  | 'backup-after-blocks'
  | 'backup-before-manifest'
  /** In a restore of a backup: the content is pinned; the rows are in, and the schema is still the backup's. */
  | 'restore-after-content'
  | 'restore-after-rows'
  /** In a restore of a part: content and homes are there; the rows are written, and not yet anybody's. */
  | 'restore-part-after-homes'
  | 'restore-part-before-commit'
  /** In the disk helper's start: the image is half made; it has a loop device; it is mounted. */
  | 'disks-mid-image'
  | 'disks-after-attach'
  | 'disks-after-mount'
  /** While an agent's disk is made: its group has a limit; while it is removed: it is renamed, and complete. */
  | 'disk-after-limit'
  | 'disk-after-rename'
  /** In a batch of events: they have ids; what follows from them is written; it is committed. */
  | 'events-before-fan-out'
  | 'events-before-commit'
  | 'events-after-commit'
  /** In a request: its change is committed, and the audit does not say how it ended. */
  | 'audit-before-end'
  /** In a round of deliveries: they are sent; their results are written. */
  | 'webhook-before-note'
  | 'webhook-after-note'
  /** The runs of an agent's tasks have been read; they have been noted. */
  | 'task-runs-before-note'
  | 'task-runs-after-note'

const [point, once] = (process.env.BERTH_CRASH_AT ?? '').split('@')

/**
 * Kills this process at `name` when `BERTH_CRASH_AT=<name>@<file>` says so, once: the file is the
 * mark that it has happened. Costs one comparison otherwise.
 */
export function crashPoint(name: CrashPoint): void {
  if (name !== point || !once) return
  try {
    closeSync(openSync(once, 'wx'))
  } catch {
    return
  }
  process.kill(process.pid, 'SIGKILL')
}
