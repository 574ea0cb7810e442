import { z } from 'zod'
import { ApiError } from '../../errors.ts'
import { canonicalCid, parseCid } from '../../files/cid.ts'
import { agentId, commitSha, contentCid, EXAMPLE_CID, like, timestamp, userId } from '../../http/fields.ts'
import { cid } from '../../http/shapes.ts'

/** A snapshot as clients see it. */
export const snapshot = z.object({
  agentId,
  snapshotCid: contentCid.describe('A folder on IPFS: the tree of the commit.'),
  userId,
  commitSha: commitSha.nullable().describe('The commit in the agent’s git repository.'),
  changeSummary: z
    .string()
    .nullable()
    .describe('A readable summary of the changes since the previous snapshot.'),
  contentDiff: z.string().nullable().describe('Unified diff against the previous snapshot, at most 64 KiB.'),
  createdAt: timestamp,
})
export type SnapshotRecord = z.output<typeof snapshot>

export const snapshotList = z.object({ agentId, snapshots: z.array(snapshot) })

export const syncStatus = z.object({
  agentId,
  configured: like(true).describe('Whether snapshots are taken.'),
  missing: z.array(z.string()).optional().describe('The missing settings, if snapshots are not configured.'),
  lastSync: timestamp.nullable(),
  message: like('A change is saved within about 60 seconds while the agent runs'),
})

export const synced = z.object({
  message: like('Snapshot taken'),
  lastSync: timestamp,
  snapshotCid: contentCid.describe('The newest snapshot, whether new or existing.'),
  commitSha,
  changeSummary: like('1 changed').nullable().describe('Null if nothing had changed.'),
  leftOut: z
    .array(z.string())
    .describe('Files that are not in the snapshot, each with the reason: `<path>: <reason>`.'),
  details: z.string().optional().describe('The same as one text.'),
})
export const syncing = synced.pick({ message: true })

/** CIDv1 in base32. */
export const snapshotOfHistory = cid
  .transform((text, context) => {
    try {
      return canonicalCid(parseCid(text))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      context.addIssue({ code: 'custom', message: error.message.replace(/^cid: /, '') })
      return z.NEVER
    }
  })
  .describe('A snapshot of this agent’s history; any CID version and base.')

const aDiff = like('diff --git a/MEMORY.md b/MEMORY.md\n@@ -1 +1,2 @@\n # Memory\n+The catalogue is due.\n')
export const diffQuery = z.object({ from: snapshotOfHistory, to: snapshotOfHistory })
export const diff = z.object({
  agentId,
  from: contentCid,
  to: contentCid,
  diff: aDiff.describe('Unified diff in git’s format; empty if both are the same. At most 256 KiB.'),
  truncated: z.boolean().describe('True if the diff was cut.'),
})

export const resetBody = z.object({ snapshotCid: snapshotOfHistory })

export const reset = z.object({
  message: like(`Workspace reset to ${EXAMPLE_CID}`),
  snapshotCid: contentCid,
  commitSha,
  lost: z
    .array(z.string())
    .optional()
    .describe('Empty folders and permissions that could not be restored, and why.'),
})
