import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Agent } from '../../../src/agents/agent.ts'
import { describeShortage } from '../../../src/lib/disk.ts'
import type { Run } from '../../../src/operations/handler.ts'
import { StorageError } from '../../../src/storage/port.ts'
import { explainUnsaved } from './save.ts'

test("a snapshot refused by a full disk fails with the contract's message, and names the disk", () => {
  const message = describeShortage('blocks')
  const failure = explainUnsaved(
    new StorageError('no_space', message),
    {} as Run,
    { status: 'running' } as Agent,
  )
  // `snapshot-routes.ts` does not map this code, so the status is 500, and the operation kind supplies `Sync failed`.
  assert.equal(failure?.code, 'no_space')
  assert.deepEqual(failure?.result, { detail: message })
})
