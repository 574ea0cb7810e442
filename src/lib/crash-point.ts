import { closeSync, openSync } from 'node:fs'

/**
 * The places at which the torture tests kill a process: first those of a pin, an upload and an agent, then all others,
 * each group in the order in which they are passed.
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
  /**
   * In a sync, including a reset's: agentd has committed; the tree is stored and pinned; everything is ready to be
   * written.
   */
  | 'snapshot-after-commit'
  | 'snapshot-after-build'
  | 'snapshot-before-final-write'
  /** The workspace has the snapshot's content. */
  | 'reset-after-reset'
  /** In a restore of a home: the commit is in the repository, and the working tree is empty. */
  | 'restore-after-import'
  /** In a push: it is applied, and its scripts have started. */
  | 'push-after-scripts'
  /** In a backup: the blocks exist; everything except the manifest exists. */
  | 'backup-after-blocks'
  | 'backup-before-manifest'
  /** In a restore of a backup: the content is pinned; the rows are written, and the schema is still the backup's. */
  | 'restore-after-content'
  | 'restore-after-rows'
  /** In a restore of a part: content and homes exist; the rows are written, but not visible to anyone yet. */
  | 'restore-part-after-homes'
  | 'restore-part-before-commit'
  /** In the disk helper's start: the image is half created; it has a loop device; it is mounted. */
  | 'disks-mid-image'
  | 'disks-after-attach'
  | 'disks-after-mount'
  /** While an agent's disk is created: its group has a limit; while it is removed: it is renamed, and complete. */
  | 'disk-after-limit'
  | 'disk-after-rename'
  /** In a batch of events: they have ids; their consequences are written; it is committed. */
  | 'events-before-fan-out'
  | 'events-before-commit'
  | 'events-after-commit'
  /** In a request: its change is committed, and the audit does not have the outcome. */
  | 'audit-before-end'
  /** In a round of deliveries: they are sent; their results are written. */
  | 'webhook-before-note'
  | 'webhook-after-note'
  /** A part of a resumable upload in S3 has an object, and no row. */
  | 'upload-part-before-row'
  /** A pack of blocks for S3: it has a row; it has an object; its blocks have rows. */
  | 'pack-before-put'
  | 'pack-after-put'
  | 'pack-after-commit'
  /** In a collection in S3: blocks have lost their rows; packs are given up; their objects are gone. */
  | 'gc-after-rows'
  | 'gc-after-give-up'
  | 'gc-after-objects'
  /** The runs of an agent's tasks have been read; they have been recorded. */
  | 'task-runs-before-note'
  | 'task-runs-after-note'

const [point, once] = (process.env.BERTH_CRASH_AT ?? '').split('@')

/**
 * Kills this process at `name` if `BERTH_CRASH_AT=<name>@<file>` requests it, once: the file marks that it has
 * happened. Otherwise costs one comparison.
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
