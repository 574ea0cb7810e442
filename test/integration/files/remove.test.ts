import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { removeFile } from '../../../src/files/remove.ts'
import { useDatabase } from '../../support/database.ts'

const database = await useDatabase()
const workspaceId = await database.createWorkspace()

describe('removing a file', () => {
  const accepts = { pinned: ['pinned'], unpinned: ['searching', 'expired'], pending: ['searching'] } as const
  for (const [only, accepted] of Object.entries(accepts)) {
    it(`removing a file removes only ${only} files if told to`, async () => {
      const removed: string[] = []
      for (const status of ['pinned', 'searching', 'expired']) {
        const id = uuidv7()
        await database.pool.query(
          `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes)
           VALUES ($1, $2, 'public', $3, 'cid', 'cid', '{}', '{}')`,
          [id, workspaceId, status],
        )
        const what = { workspaceId, network: 'public', id, only: only as keyof typeof accepts }
        if (await removeFile(database.pool, what)) removed.push(status)
      }
      assert.deepEqual(removed, accepted)
    })
  }
})
