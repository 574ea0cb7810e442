/** Examples for the routes of an agent's history; see `examples.ts`. */
import type { Example } from './example.ts'

const AGENT = 'x7f3k2ab'
const CID = 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'
const OLDER = 'bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku'
const DIFF =
  'diff --git a/workspace/MEMORY.md b/workspace/MEMORY.md\n--- a/workspace/MEMORY.md\n' +
  '+++ b/workspace/MEMORY.md\n@@ -1 +1,2 @@\n # Memory\n+The catalogue is due on Friday.\n'
const COMMIT = '4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01'
const SAVED = '2026-11-21T11:20:41.377Z'

const saved = { snapshotCid: CID, commitSha: COMMIT }
const pending = { operation: { id: '0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41', state: 'running' } }

export const snapshotExamples: Record<string, Example> = {
  listSnapshots: {
    response: {
      agentId: AGENT,
      snapshots: [
        {
          agentId: AGENT,
          ...saved,
          userId: '0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60',
          changeSummary: '1 changed',
          contentDiff: DIFF,
          createdAt: SAVED,
        },
      ],
    },
  },
  compareSnapshots: {
    response: {
      agentId: AGENT,
      from: OLDER,
      to: CID,
      diff: DIFF,
      truncated: false,
    },
  },
  getSyncStatus: {
    response: {
      agentId: AGENT,
      configured: true,
      lastSync: SAVED,
      message: 'A change is saved within about 60 seconds while the agent runs',
    },
  },
  syncAgent: {
    response: {
      success: true,
      message: 'Snapshot taken',
      lastSync: SAVED,
      ...saved,
      changeSummary: '1 changed',
      leftOut: ['workspace/site/build/: excluded by the rule build/ of .gitignore'],
      details: 'Left out: workspace/site/build/: excluded by the rule build/ of .gitignore',
    },
    others: { 202: { success: true, message: 'The snapshot is being taken', ...pending } },
  },
  resetAgent: {
    request: { snapshotCid: CID },
    response: { success: true, message: `Workspace reset to ${CID}`, ...saved },
    others: {
      202: { success: true, message: `Workspace is being reset to ${CID}`, ...saved, ...pending },
    },
  },
}
